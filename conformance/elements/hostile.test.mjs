// A script in the page that acts while the cardholder types: what it can cause must not change what it is told.

import assert from "node:assert/strict";

import { attemptIn, CARD, changed, input, inside, payWith, SPLIT, suite, type, typeInto, waitEvent, withCheckout } from "./checkout.mjs";
import { attempt, management, vault } from "./vault.mjs";

/** Its first 12 digits are a complete Maestro number too. */
const LONG_NUMBER = "6759000012715678";
const SETTINGS = { path: "/unguarded", expected: [""] };
const ANY_LENGTH = {
  skipLuhnValidation: true,
  cardTypes: [{
    type: "any", niceType: "Any", patterns: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9], gaps: [4, 8, 12],
    lengths: Array.from({ length: 19 }, (_, index) => index + 1), code: { name: "CVC", size: 3 },
  }],
};

/** Types one character after the other; after each, the page attacks and the cardholder returns to the field. */
async function typeUnderAttack(page, name, text, attack) {
  for (const letter of text) {
    await input(page, name).click();
    await page.keyboard.press("End");
    await typeInto(page, inside(page, name), letter);
    await attack();
  }
  await input(page, name).click();
}

/** Everything that the page was told about digits of a number. */
function toldDigits(page) {
  return page.evaluate(() => {
    const text = window.seen.filter((line) => !line.startsWith("sent")).join("\n").replaceAll("\\", "");
    const all = (pattern) => [...new Set([...text.matchAll(pattern)].map(([, digits]) => digits))];
    return { last4: all(/"(?:cardLast4|last4|data)":"X*(\d{4})"/g), bin: all(/"(?:cardBin|bin)":"(\d+)"/g) };
  });
}

/** Ways to take the focus from a field and give it back. */
const FLIPS = {
  "blur and focus": "elements.number.blur(); elements.number.focus();",
  "focus of an input of the page": "own.focus(); elements.number.focus();",
  "focus of another field": "elements.other.focus(); elements.number.focus();",
  "update, validate and blur": "elements.number.update({ placeholder: 'x' }); elements.number.validate(); elements.number.blur(); elements.number.focus();",
};

for (const [name, flip] of Object.entries(FLIPS)) {
  attempt("attack", `while a number is typed: ${name}`, async () => {
    for (const [number, options] of [[CARD.number, ANY_LENGTH], [LONG_NUMBER, {}]]) {
      await withCheckout({ number: ["cardNumber", options], other: ["text"] }, SETTINGS, async (page) => {
        await page.evaluate(() => document.body.insertAdjacentHTML("beforeend", "<input id='own'>"));
        await typeUnderAttack(page, "number", number, async () => {
          await page.evaluate(`(async () => { ${flip} await new Promise((resolve) => setTimeout(resolve, 30)); })()`);
        });
        assert.deepEqual(await toldDigits(page), { last4: [], bin: [] });
        await page.keyboard.press("Tab");
        await waitEvent(page, "number", "blur");
        await changed(page, "number", { complete: true, cardLast4: number.slice(-4), cardBin: number.slice(0, 8) });
        assert.deepEqual((await toldDigits(page)).last4, [number.slice(-4)]);
      });
    }
  });
}

attempt("attack", "while a number is typed: a token of every beginning, through the field and through followers", async () => {
  await withCheckout({ number: ["cardNumber", ANY_LENGTH], a: ["cardNumber"], b: ["cardNumber"] }, SETTINGS, async (page) => {
    await page.evaluate(() => ["a", "b"].forEach((name) => window.elements[name].setValueRef(window.elements.number)));
    const names = ["a", "b", "number"];
    let turn = 0;
    await typeUnderAttack(page, "number", LONG_NUMBER, async () => {
      const name = names[turn++ % names.length];
      await attemptIn(page, `() => bt.tokens.create({ type: 'card_number', data: elements.${name} })`);
      await attemptIn(page, `() => bt.tokens.create({ type: 'token', data: elements.${name}, mask: '{{ data | reveal_last: 4 }}' })`);
      await attemptIn(page, `() => bt.tokenIntents.create({ type: 'card_number', data: elements.${name} })`);
    });
    await page.keyboard.press("Tab");
    await waitEvent(page, "number", "blur");
    // The first complete beginning is all that the page learns: the longer number is invalid until it is typed again.
    assert.deepEqual((await toldDigits(page)).last4, [LONG_NUMBER.slice(8, 12)]);
    assert.equal(await page.evaluate(() => window.elements.number.metadata.valid), false);
    assert.ok(!(await page.evaluate(() => window.seen.join("\n"))).includes(`X${LONG_NUMBER.slice(-4)}`));
    await input(page, "number").fill("");
    await type(page, "number", LONG_NUMBER);
    await page.keyboard.press("Tab");
    await changed(page, "number", { complete: true, cardLast4: LONG_NUMBER.slice(-4) });
  });
});

attempt("attack", "counting keystrokes", async () => {
  const elements = { number: ["cardNumber", { validateOnChange: true }], code: ["cardVerificationCode", { validateOnChange: true }] };
  await withCheckout(elements, SETTINGS, async (page) => {
    await page.evaluate(() => { window.seen.length = 0; });
    await type(page, "code", "7");
    await changed(page, "code", { empty: false });
    const before = await page.evaluate(() => window.seen.filter((line) => line.startsWith("port")).length);
    await type(page, "number", CARD.number.slice(0, 11));
    await page.waitForTimeout(100);
    const after = await page.evaluate(() => window.seen.filter((line) => line.startsWith("port")).length);
    assert.ok(after - before <= 4, String(after - before));
  });
});

attempt("attack", "comparing an expiration date with dates of the page", async () => {
  await withCheckout({ date: ["cardExpirationDate", { maxElapsedExpirationYear: -2 }] }, SETTINGS, async (page) => {
    const year = String(new Date().getFullYear() + 1).slice(-2);
    await type(page, "date", `12${year}`);
    await changed(page, "date", { complete: true });
    for (const years of [-1, -3, -1.5]) {
      await page.evaluate((years) => window.elements.date.update({ maxElapsedExpirationYear: years }), years);
      assert.equal(await page.evaluate(() => window.elements.date.metadata.valid), true);
    }
  });
});

attempt("attack", "the API key of another application, for typed values", async () => {
  const { key } = await management.applications.create({ name: "Mallory", type: "public", permissions: ["token:create", "token-intent:create"] });
  await withCheckout(SPLIT, SETTINGS, async (page) => {
    await payWith(page);
    const before = suite.sites.requests.length;
    for (const call of [
      "bt.tokens.create({ type: 'card', data: { number: elements.number, cvc: elements.code } }, { apiKey })",
      "bt.tokens.update('x', { data: { number: elements.number } }, { apiKey })",
      "bt.tokenize({ a: { type: 'card_number', data: elements.number } }, { apiKey })",
      "bt.tokenIntents.create({ type: 'card_number', data: elements.number }, { apiKey })",
      "bt.proxy.post({ headers: { 'BT-PROXY-KEY': 'key-of-mallory' }, body: { a: elements.number }, apiKey })",
    ]) {
      const { value, error } = await attemptIn(page, `(apiKey) => ${call}`, key);
      assert.equal(value, undefined, call);
      assert.match(error.message, /sessions\.create/, call);
    }
    assert.deepEqual(suite.sites.requests.slice(before).filter(({ headers }) => headers["bt-api-key"] === key), []);
    // A session of the page itself has the same tenant; one of another key has not.
    const forged = await attemptIn(page, "(apiKey) => bt.sessions.create({ apiKey })", key);
    const refused = await attemptIn(page, "(apiKey) => bt.tokens.create({ type: 'card_number', data: elements.number }, { apiKey })", forged.value.sessionKey);
    assert.match(refused.error.message, /sessions\.create/);
    const { value: session } = await attemptIn(page, "() => bt.sessions.create()");
    await vault.sessions.authorize({ nonce: session.nonce, permissions: ["token:create"] });
    const { value, error } = await attemptIn(page, "(apiKey) => bt.tokens.create({ type: 'card_number', data: elements.number }, { apiKey })", session.sessionKey);
    assert.equal(error, undefined);
    assert.equal((await vault.tokens.get(value.id)).data, CARD.number);
  });
});
