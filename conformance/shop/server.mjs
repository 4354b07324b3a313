// The shop's servers, started as developers start them, with everything that they receive, send and log recorded.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, existsSync, openSync, readFileSync, readSync } from "node:fs";
import { connect, createServer } from "node:net";
import { fileURLToPath } from "node:url";

import { openTap } from "./tap.mjs";
import { baseUrl, shop } from "./vault.mjs";

const folder = fileURLToPath(new URL("../../examples/shop/", import.meta.url));
const COMMANDS = {
  node: ["node", `${folder}server/node/main.mjs`],
  python: [`${folder}.venv/bin/python`, `${folder}server/python/main.py`],
};

/** Starts a server behind two taps: one for browsers and webhooks, one for its requests to the vault. */
export async function startServer(language, more = {}) {
  const port = await freePort();
  const toShop = await openTap(Number(shop.environment.PORT), port);
  const toVault = await openTap(0, Number(new URL(baseUrl).port));
  const [program, file] = COMMANDS[language];
  const child = spawn(program, [file], {
    env: {
      ...process.env,
      ...shop.environment,
      PORT: String(port),
      VAULT_API_URL: `http://127.0.0.1:${toVault.port}`,
      PYTHONDONTWRITEBYTECODE: "1",
      ATTEMPTS_MAX: "1000",
      ...more,
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const log = [];
  child.stdout.on("data", (chunk) => log.push(chunk));
  child.stderr.on("data", (chunk) => log.push(chunk));
  const server = {
    toShop,
    toVault,
    log: () => Buffer.concat(log).toString("latin1"),
    memoryContains: (texts) => memoryContains(child.pid, texts),
    async stop() {
      // A process that a signal ended has no exit code.
      if (child.exitCode === null && child.signalCode === null) {
        child.kill();
        await once(child, "exit");
      }
      toShop.close();
      toVault.close();
    },
  };
  await until(async () => {
    if (child.exitCode !== null) {
      throw new Error(`the ${language} server exited: ${server.log()}`);
    }
    const response = await fetch(`http://127.0.0.1:${port}/settings.json`).catch(() => undefined);
    return response?.ok;
  });
  return server;
}

/** A request to the shop's server, past the browser. */
export async function request(path, { method = "POST", headers = {}, body } = {}) {
  const response = await fetch(`http://127.0.0.1:${shop.environment.PORT}${path}`, {
    method,
    headers: { "Content-Type": "application/json", ...headers },
    body: body && JSON.stringify(body),
  });
  const text = await response.text();
  return { status: response.status, body: text && JSON.parse(text) };
}

/** Sends bytes to the shop's server, and returns the statuses of its responses. */
export async function statusesOf(text) {
  const socket = connect(Number(shop.environment.PORT), "127.0.0.1");
  socket.setTimeout(1_000, () => socket.destroy());
  socket.on("error", () => {});
  const chunks = [];
  socket.on("data", (chunk) => chunks.push(chunk));
  socket.write(text);
  await once(socket, "close");
  const responses = Buffer.concat(chunks).toString("latin1").matchAll(/HTTP\/1\.1 (\d{3}) /g);
  return [...responses].map(([, status]) => Number(status));
}

/** Waits until a condition holds. */
export async function until(condition, timeoutMs = 30_000) {
  const deadline = Date.now() + timeoutMs;
  for (;;) {
    const value = await condition();
    if (value) {
      return value;
    }
    if (Date.now() > deadline) {
      throw new Error(`not within ${timeoutMs} ms: ${condition}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** Which of the texts are in the writable memory of a process, in one or two bytes per character. */
function memoryContains(pid, texts) {
  if (!existsSync(`/proc/${pid}/mem`)) {
    throw new Error("the memory of a process can be read on Linux only");
  }
  const needles = texts.map((text) => [text, Buffer.from(text, "latin1"), Buffer.from(text, "utf16le")]);
  const found = new Set();
  const memory = openSync(`/proc/${pid}/mem`, "r");
  const STEP = 1 << 24;
  const OVERLAP = 128;
  for (const line of readFileSync(`/proc/${pid}/maps`, "latin1").split("\n")) {
    const match = /^([0-9a-f]+)-([0-9a-f]+) rw/.exec(line);
    if (!match) {
      continue;
    }
    const [start, end] = [BigInt(`0x${match[1]}`), BigInt(`0x${match[2]}`)];
    for (let at = start; at < end; at += BigInt(STEP - OVERLAP)) {
      const chunk = Buffer.alloc(Number(end - at < STEP ? end - at : STEP));
      let size = 0;
      try {
        size = readSync(memory, chunk, 0, chunk.length, at);
      } catch {
        // Reserved pages without content.
        continue;
      }
      const part = chunk.subarray(0, size);
      needles.filter(([, ...forms]) => forms.some((form) => part.includes(form))).forEach(([text]) => found.add(text));
    }
  }
  closeSync(memory);
  return [...found];
}

async function freePort() {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}
