// Debian's Chromium, without a window, and a watch over what its pages ask for and complain about.

import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";

import { chromium } from "playwright-core";

const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  // What is not on this machine does not exist, whoever asks for it.
  "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
];
const LOOPBACK = ["127.0.0.1", "localhost"];
const PATIENCE_MS = 60_000;

export function startBrowser() {
  const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
  return chromium.launch({ executablePath, args: FLAGS, headless: true });
}

/**
 * A new page in a profile of its own, handed to `body`. Afterwards nothing may have been asked for outside
 * of this machine, and nobody may have complained, but for answers with the `expected` statuses, which
 * Chromium calls errors, and for messages that match `ignored`. `context` has options of the profile.
 */
export async function watched(browser, { expected = [], ignored = /(?!)/, context: options = {} }, body) {
  const context = await browser.newContext({ viewport: { width: 1000, height: 900 }, ...options });
  context.setDefaultTimeout(PATIENCE_MS);
  const watch = { outside: [], complaints: [] };
  context.on("request", (request) => {
    const { protocol, hostname } = new URL(request.url());
    if (protocol.startsWith("http") && !LOOPBACK.includes(hostname)) {
      watch.outside.push(hostname);
    }
  });
  const isExpected = (text) => ignored.test(text) || expected.some((status) => text.includes(`status of ${status} `));
  context.on("console", (message) => {
    if (["error", "warning"].includes(message.type()) && !isExpected(message.text())) {
      watch.complaints.push(message.text());
    }
  });
  context.on("weberror", (problem) => watch.complaints.push(String(problem.error())));
  const page = await context.newPage();
  try {
    await body(page, watch);
  } catch (error) {
    error.message += await circumstances(page, watch);
    throw error;
  } finally {
    await context.close();
  }
  assert.deepEqual(watch, { outside: [], complaints: [] });
}

/** What was on the screen when something went wrong, and what the shop had been told by then. */
async function circumstances(page, watch) {
  await picture(page, `failed ${Date.now()}`).catch(() => {});
  const told = await page.evaluate(() => window.told ?? null).catch(() => null);
  return `\n${JSON.stringify({ at: page.url(), told, ...watch }, null, 2)}`;
}

/** Keeps what a page looks like, for people. */
export async function picture(page, name) {
  const folder = process.env.CONFORMANCE_SCREENSHOTS;
  if (folder) {
    mkdirSync(folder, { recursive: true });
    const file = `${name.replaceAll(/[^a-z0-9]+/gi, "-").toLowerCase()}.png`;
    await page.screenshot({ path: join(folder, file) });
  }
}
