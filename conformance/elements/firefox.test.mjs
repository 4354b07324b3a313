// The core of typing, members, services and attacks, in Firefox. Without Firefox, nothing is tried.

import assert from "node:assert/strict";
import { after, before } from "node:test";

import { isInstalled, startFirefox } from "./firefox.mjs";
import { NUMBERS } from "./numbers.mjs";
import { openSites, SHOP } from "./sites.mjs";
import { attempt, vault } from "./vault.mjs";

const CARD = "4539148803436467";
const SPLIT = { number: "cardNumber", date: "cardExpirationDate", code: "cardVerificationCode" };

let sites;
let firefox;
before(async () => {
  if (isInstalled) {
    sites = await openSites();
    firefox = await startFirefox(sites.port);
  }
});
after(async () => {
  await firefox?.close();
  sites?.close();
});

if (isInstalled) {
  attempt("firefox", "typing: recognizes, groups and completes numbers of 12 brands", async () => {
    await withCheckout({ number: "cardNumber" }, async (page) => {
      for (const [brand, number, shown] of NUMBERS) {
        await page.evaluate(() => window.elements.number.clear());
        await type(page, "number", number);
        await page.keyboard.press("Tab");
        const last = await lastChange(page, "number", { complete: true, cardBrand: brand });
        assert.equal(last.cardLast4, number.slice(-4));
        assert.equal(await value(page, "number"), shown);
      }
    });
  });

  attempt("firefox", "typing: dates, and errors when a field is left", async () => {
    await withCheckout({ date: "cardExpirationDate", number: "cardNumber" }, async (page) => {
      await type(page, "date", "12");
      await lastChange(page, "date", { empty: false, complete: false });
      await page.keyboard.type("31");
      await lastChange(page, "date", { complete: true });
      assert.equal(await value(page, "date"), "12/31");
      await type(page, "number", "4242424242424241");
      await page.evaluate(() => window.elements.number.blur());
      await lastChange(page, "number", { valid: false, errors: [{ targetId: "number", type: "invalid" }] });
    });
  });

  attempt("firefox", "members: every member and event, and methods of an element", async () => {
    await withCheckout({ text: "text" }, async (page) => {
      assert.deepEqual(
        await page.evaluate(() => Object.keys(window.bt).sort()),
        ["client", "createElement", "device", "getElement", "hasElement", "init", "proxy", "sessions", "tokenIntents", "tokenize", "tokens"],
      );
      await page.evaluate(() => window.elements.text.focus());
      await happened(page, "text", "focus");
      await page.keyboard.type("hello");
      await lastChange(page, "text", { empty: false });
      await page.keyboard.press("Escape");
      await happened(page, "text", "keydown");
      await page.evaluate(() => window.elements.text.blur());
      await happened(page, "text", "blur");
      await page.evaluate(() => window.elements.text.update({ disabled: true }));
      const frame = await field(page, "text");
      await frame.waitForSelector("input:disabled");
      await page.evaluate(() => window.elements.text.clear());
      await lastChange(page, "text", { empty: true });
      await page.evaluate(() => window.elements.text.unmount());
      assert.equal(await page.$("#box-text iframe"), null);
    });
  });

  attempt("firefox", "services: an intent of three elements, and nothing of the number in the page", async () => {
    await withCheckout(SPLIT, async (page) => {
      await type(page, "number", CARD);
      await type(page, "date", "1231");
      await type(page, "code", "739");
      await page.waitForFunction(() => Object.values(window.elements).every((element) => element.metadata.complete));
      const { value: intent, error } = await page.evaluate(() => {
        const { number, date, code } = window.elements;
        const data = { number, expiration_month: date.month(), expiration_year: date.year(), cvc: code };
        return window.attemptCall(() => window.bt.tokenIntents.create({ type: "card", data }));
      });
      assert.equal(error, undefined);
      const token = await vault.tokens.create({ tokenIntentId: intent.id });
      assert.equal((await vault.tokens.get(token.id)).data.number, CARD);

      const stolen = await page.evaluate(() =>
        [...document.querySelectorAll("iframe")].map((frame) => {
          try {
            return frame.contentDocument?.body.innerHTML ?? "closed";
          } catch (error) {
            return String(error);
          }
        }).join("\n") + window.seen.join("\n") + document.documentElement.outerHTML
      );
      const parts = Array.from({ length: CARD.length - 8 }, (_, at) => CARD.slice(at, at + 9));
      assert.deepEqual(parts.filter((part) => stolen.includes(part)), []);
    });
  });
} else {
  console.log("Firefox is not installed: its tests are left out (apt-get install firefox-esr)");
}

async function withCheckout(elements, body) {
  const page = await firefox.newPage();
  const errors = [];
  page.on("pageerror", (error) => errors.push(String(error)));
  try {
    await page.goto(`https://${SHOP}/`);
    await page.evaluate(() => window.start());
    for (const [name, kind] of Object.entries(elements)) {
      await page.evaluate((name, kind) => window.add(name, kind), name, kind);
    }
    await body(page);
  } finally {
    await page.close();
  }
  assert.deepEqual(errors, []);
}

async function field(page, name) {
  const frame = await page.waitForSelector(`#box-${name} iframe`);
  return frame.contentFrame();
}

async function input(page, name) {
  return (await field(page, name)).waitForSelector("input.input");
}

async function type(page, name, text) {
  await (await input(page, name)).click();
  await page.keyboard.type(text);
}

async function value(page, name) {
  return (await input(page, name)).evaluate((node) => node.value);
}

async function lastChange(page, name, facts) {
  const handle = await page.waitForFunction(
    (name, facts) => {
      const last = window.events.filter((event) => event.name === name && event.type === "change").at(-1);
      const isMatch = last && Object.entries(facts).every(([key, value]) => JSON.stringify(last[key]) === JSON.stringify(value));
      return isMatch ? last : false;
    },
    {},
    name,
    facts,
  );
  return handle.jsonValue();
}

function happened(page, name, kind) {
  return page.waitForFunction(
    (name, kind) => window.events.some((event) => event.name === name && event.type === kind), {}, name, kind,
  );
}
