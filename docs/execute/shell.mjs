// One shell per page: its blocks share a working folder and variables, as in the terminal of a reader.

import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

const blockTimeout = 300_000;
const stopTimeout = 30_000;
const poll = 50;

/** Runs a command of another language as the shell of the page would. */
const commands = {
  sh: (file) => `. ${file}`,
  js: (file) => `node ${file}`,
  python: (file) => `python ${file}`,
};
const extensions = { sh: "sh", js: "mjs", python: "py" };

export class Shell {
  constructor(folder, path) {
    this.folder = folder;
    this.count = 0;
    mkdirSync(folder, { recursive: true });
    // An error status of HTTP fails the block, as a reader would stop there.
    writeFileSync(join(folder, ".curlrc"), "fail-with-body\nshow-error\n");
    const environment = {
      ...process.env,
      PATH: `${path}:${process.env.PATH}`,
      CURL_HOME: folder,
      HOME: folder,
      // Packages are downloaded once, not by every run.
      npm_config_cache: process.env.npm_config_cache ?? join(homedir(), ".npm"),
      npm_config_prefer_offline: "true",
    };
    // In a process group of its own, so that background processes can be stopped.
    this.process = spawn("bash", [], { cwd: folder, env: environment, detached: true, stdio: ["pipe", "ignore", "ignore"] });
    this.exited = new Promise((resolve) => this.process.on("exit", resolve));
    this.process.stdin.on("error", () => {});
    this.process.stdin.write("set -euo pipefail\n");
  }

  /** Runs a block and returns `{ output, error }`; `error` is undefined if it succeeded. */
  async run({ language, text, until, mayFail }) {
    this.count += 1;
    const name = join(this.folder, `.block-${this.count}`);
    const file = `${name}.${extensions[language]}`;
    // Modules of Node.js are resolved from the folder of the file.
    writeFileSync(file, `${text}\n`);
    const redirect = `>${name}.out 2>${name}.err`;
    const command = mayFail ? `{ ${commands[language](file)} || true; }` : commands[language](file);
    const line = until ? `(${command}) ${redirect} & echo 0 >${name}.done` : `${command} ${redirect}; echo 0 >${name}.done`;
    this.process.stdin.write(`${line}\n`);
    const isDone = () => existsSync(`${name}.done`) && (!until || existsSync(join(this.folder, until)));
    const failure = await this.wait(isDone);
    const read = (extension) => (existsSync(name + extension) ? readFileSync(name + extension, "utf8") : "");
    const output = read(".out");
    return { output, error: failure && `${failure}\n${output.trim()}\n${read(".err").trim()}`.trim() };
  }

  async wait(isDone) {
    const started = Date.now();
    while (!isDone()) {
      if (this.process.exitCode !== null) return `the command exited with ${this.process.exitCode}`;
      if (Date.now() - started > blockTimeout) return "the command takes too long";
      await sleep(poll);
    }
    return undefined;
  }

  /** Stops the shell and what it started. */
  async stop() {
    this.process.stdin.end();
    const signal = (name) => {
      try {
        process.kill(-this.process.pid, name);
        return true;
      } catch {
        return false;
      }
    };
    const started = Date.now();
    signal("SIGTERM");
    // All processes of the group have exited when it cannot be signaled.
    while (signal(0) && Date.now() - started < stopTimeout) await sleep(poll);
    signal("SIGKILL");
    await this.exited;
  }
}
