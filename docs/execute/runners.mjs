// Runs samples of the API reference in one language, and returns the status and the body of the response.

import { execFile, execFileSync, spawn } from "node:child_process";
import { cpSync, existsSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

import { clientVersion } from "../.vitepress/samples.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const timeout = 120_000;

/** Runs each sample as a command. */
export class CurlRunner {
  constructor(folder) {
    this.folder = folder;
  }

  run(command, environment) {
    const options = { cwd: this.folder, env: environment, timeout, maxBuffer: 64e6 };
    return new Promise((resolve) => {
      execFile("bash", ["-c", command], options, (_, stdout, stderr) => resolve({ stdout, stderr }));
    });
  }

  async send(command, environment) {
    const { stdout, stderr } = await this.run(`${command} -w '\\n%{http_code}'`, environment);
    const end = stdout.lastIndexOf("\n");
    const status = stdout.slice(end + 1);
    return { status, body: stdout.slice(0, end), error: status ? "" : stderr };
  }

  stop() {}
}

/** Runs all samples in one process of an interpreter, so that the client is loaded once. */
export class ClientRunner {
  constructor(folder, extension, program, words) {
    Object.assign(this, { folder, extension, count: 0 });
    this.process = spawn(program, words, { cwd: folder, stdio: ["pipe", "pipe", "inherit"] });
    this.lines = createInterface({ input: this.process.stdout })[Symbol.asyncIterator]();
  }

  static node(folder) {
    const version = clientVersion("node");
    if (!existsSync(join(folder, `node_modules/installed-${version}`))) {
      mkdirSync(folder, { recursive: true });
      writeFileSync(join(folder, "package.json"), "{}");
      execFileSync("npm", ["install", "--silent", `@basis-theory/node-sdk@${version}`], { cwd: folder });
      writeFileSync(join(folder, `node_modules/installed-${version}`), "");
    }
    // Modules are resolved from the folder of the file.
    cpSync(join(here, "clients/run.mjs"), join(folder, "run.mjs"));
    return new ClientRunner(folder, "mjs", "node", ["run.mjs"]);
  }

  static python(folder) {
    const version = clientVersion("python");
    const stamp = join(folder, `environment/installed-${version}`);
    if (!existsSync(stamp)) {
      mkdirSync(folder, { recursive: true });
      execFileSync("python3", ["-m", "venv", join(folder, "environment")]);
      execFileSync(join(folder, "environment/bin/pip"), ["install", "--quiet", `BasisTheoryClient==${version}`]);
      writeFileSync(stamp, "");
    }
    return new ClientRunner(folder, "py", join(folder, "environment/bin/python"), [join(here, "clients/run.py")]);
  }

  async send(text, environment) {
    this.count += 1;
    const file = join(this.folder, `sample-${process.pid}-${this.count}.${this.extension}`);
    writeFileSync(file, `${text}\n`);
    this.process.stdin.write(`${JSON.stringify({ file, environment })}\n`);
    const { value, done } = await this.lines.next();
    if (done) throw new Error(`the runner of ${file} exited`);
    return { status: "", body: "", ...JSON.parse(value) };
  }

  stop() {
    this.process.stdin.end();
  }
}
