// What a cardholder does in the shop, in Debian's Chromium.

import assert from "node:assert/strict";
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { chromium } from "playwright-core";

import { shop } from "./vault.mjs";

const AXE = readFileSync(new URL("node_modules/axe-core/axe.min.js", import.meta.url), "utf8");
const TIMEOUT_MS = 20_000;
const ALLOWED = [...shop.hosts, "127.0.0.1"];

/** Finds the shop and the vault as the command that `cloakroom dev --shop` prints does. All other names lead nowhere. */
export function startBrowser() {
  const rules = shop.hosts.map((host) => `MAP ${host}:443 ${shop.front}`);
  return chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-background-networking",
      "--disable-component-update",
      `--host-resolver-rules=${rules.join(", ")}, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1`,
      `--ignore-certificate-errors-spki-list=${shop.public_key_sha256}`,
    ],
  });
}

/** Runs `body` with a new page. Afterwards the page must not have logged errors, nor contacted other hosts. */
export async function withPage(browser, body, { expected = [], ...options } = {}) {
  const context = await browser.newContext({ viewport: { width: 390, height: 844 }, ...options });
  context.setDefaultTimeout(TIMEOUT_MS);
  const seen = { outside: [], errors: [], received: [] };
  context.on("request", (request) => {
    const { hostname, protocol } = new URL(request.url());
    if (protocol.startsWith("http") && !ALLOWED.includes(hostname)) {
      seen.outside.push(hostname);
    }
  });
  context.on("console", (message) => {
    seen.received.push(message.text());
    if (["error", "warning"].includes(message.type()) && !expected.some((text) => message.text().includes(text))) {
      seen.errors.push(message.text());
    }
  });
  context.on("weberror", (problem) => seen.errors.push(String(problem.error())));
  const page = await context.newPage();
  await page.addInitScript(record);
  try {
    await page.goto(shop.url);
    await page.locator("#pay:enabled").waitFor();
    await body(page);
    seen.received.push(await page.content(), ...(await page.evaluate(() => window.received)));
  } catch (error) {
    await picture(page, `failed-${Date.now()}`).catch(() => {});
    error.message += `\n${JSON.stringify({ outside: seen.outside, errors: seen.errors })}`;
    throw error;
  } finally {
    await context.close();
  }
  assert.deepEqual({ outside: seen.outside, errors: seen.errors }, { outside: [], errors: [] });
  return seen.received.join("\n");
}

/** Runs in the page before its scripts: records messages to the window, messages on ports, and responses. */
function record() {
  window.received = [];
  const note = (value) => {
    try {
      window.received.push(JSON.stringify(value) ?? "");
    } catch {
      window.received.push(String(value));
    }
  };
  window.addEventListener("message", ({ data }) => note(data), true);
  const { set } = Object.getOwnPropertyDescriptor(MessagePort.prototype, "onmessage");
  Object.defineProperty(MessagePort.prototype, "onmessage", {
    set(handler) {
      set.call(this, handler && ((event) => {
        note(event.data);
        handler(event);
      }));
    },
  });
  const nativeFetch = window.fetch;
  window.fetch = async (...words) => {
    const response = await nativeFetch(...words);
    response.clone().text().then(note, () => {});
    return response;
  };
}

export const field = (page, id) => page.frameLocator(`#${id} iframe`).locator("input").first();

/** Clicks into a field and waits: frames have processes of their own, and keys sent earlier reach another one. */
async function focus(page, id) {
  await field(page, id).click();
  await page.frameLocator(`#${id} iframe`).locator("input:focus").waitFor();
}

export async function fill(page, number, { date = "1231", code = "739" } = {}) {
  await page.getByLabel("Name on card").fill("Ada Example");
  await page.getByLabel("Email").fill("ada@shop.example");
  for (const [id, text] of [["number", number], ["date", date], ["code", code]]) {
    await focus(page, id);
    await page.keyboard.type(text);
  }
}

/** Replaces the number of a card that failed. */
export async function retype(page, number) {
  await focus(page, "number");
  await page.keyboard.press("Control+A");
  await page.keyboard.type(number);
}

export const pay = (page) => page.getByRole("button", { name: "Pay" }).click();

/** Pays, and returns the order as the page receives it. */
export async function payAndRead(page) {
  const placed = page.waitForResponse((response) => response.url().endsWith("/orders"));
  await pay(page);
  return (await placed).json();
}

/** The issuer's page: in the vault's frame, in a frame of the shop's page. */
export const issuer = (page) =>
  page.frameLocator("#challenge-frame iframe").frameLocator('iframe[title="Payment authentication by your bank"]');

export async function enterCode(page, code) {
  await issuer(page).locator("#code").fill(code);
  await issuer(page).getByRole("button", { name: "Continue" }).click();
}

export const receipt = (page, text) => page.locator("#receipt").getByText(text).waitFor();
export const problem = (page, text) => page.getByRole("alert").getByText(text).waitFor();

/** Saves a screenshot for developers. */
export async function picture(page, name) {
  const folder = process.env.CONFORMANCE_SCREENSHOTS;
  if (folder) {
    mkdirSync(folder, { recursive: true });
    await page.screenshot({ path: join(folder, `${name}.png`), fullPage: true });
  }
}

/** Serious violations in the shop's own document. The fields are tested by `conformance/elements`. */
export async function violations(page) {
  await page.evaluate(AXE);
  const { violations } = await page.evaluate(() => window.axe.run(document, { iframes: false, resultTypes: ["violations"] }));
  return violations
    .filter(({ impact }) => ["serious", "critical"].includes(impact))
    .map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" ")}`);
}
