// A browser, the sites, and a checkout page whose elements tests fill as a cardholder does.

import assert from "node:assert/strict";
import { after, before } from "node:test";

import { openPage, startBrowser } from "./chromium.mjs";
import { openSites, SHOP } from "./sites.mjs";

/** Valid, and unlike any other number in a response. */
export const CARD = { number: "4539148803436467", date: "1231", code: "739" };

export const suite = {};

before(async () => {
  suite.sites = await openSites();
  suite.browser = await startBrowser(suite.sites.port);
});

after(async () => {
  await suite.browser?.close();
  suite.sites?.close();
});

/** Runs `body` with a new page. Afterwards the page must not have complained, nor asked other hosts. */
export async function withPage(path, { expected = [], options } = {}, body) {
  const opened = await openPage(suite.browser, `https://${SHOP}${path}`, options);
  try {
    await body(opened.page, opened);
  } catch (error) {
    error.message += `\n${JSON.stringify({ complaints: opened.complaints, outside: opened.outside })}`;
    throw error;
  } finally {
    await opened.context.close();
  }
  const unexpected = opened.complaints.filter((text) => !expected.some((known) => text.includes(known)));
  assert.deepEqual({ outside: opened.outside, unexpected }, { outside: [], unexpected: [] });
}

/** A checkout with elements by name: `{ number: ["cardNumber", options] }`. */
export function withCheckout(elements, settings, body) {
  return withPage(settings.path ?? "/", settings, async (page, opened) => {
    await page.evaluate((options) => window.start(options), settings.init ?? {});
    for (const [name, [type, options]] of Object.entries(elements)) {
      await add(page, name, type, options);
    }
    await body(page, opened);
  });
}

/** Options with regular expressions cannot cross into the page: they are given as source text. */
export function add(page, name, type, options = {}) {
  return page.evaluate(
    ([name, type, options]) => {
      const revive = (value) => {
        if (Array.isArray(value)) {
          return value.map(revive);
        }
        return value && typeof value === "object"
          ? "regex" in value ? new RegExp(value.regex) : Object.fromEntries(Object.entries(value).map(([k, v]) => [k, revive(v)]))
          : value;
      };
      return window.add(name, type, revive(options));
    },
    [name, type, options],
  );
}

export function inside(page, name) {
  return page.frameLocator(`#box-${name} iframe`);
}

export function input(page, name, label) {
  return label ? inside(page, name).locator(`#${label}`) : inside(page, name).locator("input.input").first();
}

export async function type(page, name, text, label) {
  await input(page, name, label).click();
  await typeInto(page, inside(page, name), text);
}

/** Types in a frame once it has the focus: frames have processes of their own, and keys sent earlier reach another one. */
export async function typeInto(page, frame, text) {
  await frame.locator("input:focus").waitFor();
  await page.keyboard.type(text);
}

/** The last change event of an element, once it matches. */
export async function changed(page, name, facts) {
  await page.waitForFunction(
    ([name, facts]) => {
      const last = window.events.filter((event) => event.name === name && event.type === "change").at(-1);
      return last && Object.entries(facts).every(([key, value]) => JSON.stringify(last[key]) === JSON.stringify(value));
    },
    [name, facts],
  );
  return page.evaluate((name) => window.events.filter((event) => event.name === name && event.type === "change").at(-1), name);
}

export async function waitEvent(page, name, type) {
  await page.waitForFunction(([name, type]) => window.events.some((event) => event.name === name && event.type === type), [name, type]);
  return page.evaluate(([name, type]) => window.events.filter((event) => event.name === name && event.type === type).at(-1), [name, type]);
}


/** Evaluates an expression in the page and returns its value or its error. */
export function attemptIn(page, body, argument) {
  return page.evaluate(
    `window.attemptCall(() => (${body})(${argument === undefined ? "" : JSON.stringify(argument)}))`,
  );
}

/** Fills number, date and code. */
export async function payWith(page, { number, date, code } = CARD) {
  await type(page, "number", number);
  await type(page, "date", date);
  await type(page, "code", code);
  await page.waitForFunction(() =>
    ["number", "date", "code"].every((name) => window.elements[name].metadata.complete)
  );
}

export const SPLIT = { number: ["cardNumber"], date: ["cardExpirationDate"], code: ["cardVerificationCode"] };
