// Debian's Chromium without a window; all names of the tests lead to this machine, and all others nowhere.

import { mkdirSync } from "node:fs";
import { join } from "node:path";

import { chromium } from "playwright-core";

import { HOSTS } from "./sites.mjs";

const TIMEOUT_MS = 30_000;

export function startBrowser(port) {
  const mapped = HOSTS.map((host) => `MAP ${host}:443 127.0.0.1:${port}`).join(", ");
  return chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    headless: true,
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
      "--ignore-certificate-errors",
      `--host-resolver-rules=${mapped}, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1`,
    ],
  });
}

/** A page in a profile of its own. What goes wrong in its console is collected in `complaints`. */
export async function openPage(browser, path, options = {}) {
  const context = await browser.newContext({ ignoreHTTPSErrors: true, viewport: { width: 900, height: 700 }, ...options });
  context.setDefaultTimeout(TIMEOUT_MS);
  const complaints = [];
  const outside = [];
  context.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) {
      complaints.push(message.text());
    }
  });
  context.on("weberror", (problem) => complaints.push(String(problem.error())));
  context.on("request", (request) => {
    const { hostname, protocol } = new URL(request.url());
    if (protocol.startsWith("http") && !HOSTS.includes(hostname)) {
      outside.push(hostname);
    }
  });
  const page = await context.newPage();
  await page.goto(path);
  return { page, context, complaints, outside };
}

/** Saves a screenshot for developers. */
export async function picture(page, name) {
  const folder = process.env.CONFORMANCE_SCREENSHOTS;
  if (folder) {
    mkdirSync(folder, { recursive: true });
    await page.screenshot({ path: join(folder, `${name}.png`) });
  }
}
