// A temporary vault, started with `cloakroom dev`.

import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

const startTimeout = 120_000;
const poll = 50;

export class Vault {
  static async start(program, folder, more = []) {
    mkdirSync(folder, { recursive: true });
    const file = join(folder, "vault.env");
    // That of an earlier run names a vault that has stopped.
    rmSync(file, { force: true });
    const words = ["dev", "--processors", "--listen", "127.0.0.1:0", "--env-file", file, ...more];
    const child = spawn(program, words, { stdio: "ignore" });
    const vault = new Vault(child, file);
    const started = Date.now();
    while (!existsSync(file)) {
      if (child.exitCode !== null) throw new Error(`the vault exited with ${child.exitCode}`);
      if (Date.now() - started > startTimeout) {
        await vault.stop();
        throw new Error("the vault is not ready");
      }
      await sleep(poll);
    }
    // The file is written at once, but exists before.
    while (!readFileSync(file, "utf8").endsWith("'\n")) await sleep(poll);
    return vault;
  }

  constructor(child, file) {
    this.child = child;
    this.file = file;
    this.exited = new Promise((resolve) => child.on("exit", resolve));
  }

  /** Commands that set the variables that the pages use. */
  get setup() {
    return { language: "sh", text: `. ${this.file}` };
  }

  get variables() {
    const lines = readFileSync(this.file, "utf8").matchAll(/^export (\w+)='(.*)'$/gm);
    return Object.fromEntries([...lines].map(([, name, value]) => [name, value]));
  }

  async stop() {
    this.child.kill("SIGTERM");
    await this.exited;
  }
}
