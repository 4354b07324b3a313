// A script in the page that acts while the cardholder types: what it can cause must not change what it is told.

import assert from "node:assert/strict";

import { attemptIn, CARD, changed, input, inside, payWith, SPLIT, suite, type, typeInto, waitEvent, withCheckout } from "./checkout.mjs";
import { attempt, management, publicKey, vault } from "./vault.mjs";

/** Its first 12 digits are a complete Maestro number too. */
const LONG_NUMBER = "6759000012715678";
/** Its first 13 digits are one, and the vault stores numbers from 13 digits. */
const STORABLE_BEGINNING = "6759000120019237";
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
    await typeUnderAttack(page, "number", STORABLE_BEGINNING, async () => {
      const name = names[turn++ % names.length];
      await attemptIn(page, `() => bt.tokens.create({ type: 'card_number', data: elements.${name} })`);
      await attemptIn(page, `() => bt.tokens.create({ type: 'token', data: elements.${name}, mask: '{{ data | reveal_last: 4 }}' })`);
      await attemptIn(page, `() => bt.tokenIntents.create({ type: 'card_number', data: elements.${name} })`);
    });
    await page.keyboard.press("Tab");
    await waitEvent(page, "number", "blur");
    // The first complete beginning is all that the page learns: the longer number is invalid until it is typed again.
    assert.deepEqual((await toldDigits(page)).last4, [STORABLE_BEGINNING.slice(9, 13)]);
    assert.equal(await page.evaluate(() => window.elements.number.metadata.valid), false);
    assert.ok(!(await page.evaluate(() => window.seen.join("\n"))).includes(`X${STORABLE_BEGINNING.slice(-4)}`));
    await input(page, "number").fill("");
    await type(page, "number", STORABLE_BEGINNING);
    await page.keyboard.press("Tab");
    await changed(page, "number", { complete: true, cardLast4: STORABLE_BEGINNING.slice(-4) });
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

/** A request of the page itself, with the public key that it has anyway. */
function fetchIn(page, path, body, headers = {}) {
  return page.evaluate(async ([path, body, headers, key]) => {
    const response = await fetch(`https://${window.settings.ELEMENTS}${path}`, {
      method: "POST", headers: { "Content-Type": "application/json", "BT-API-KEY": key, ...headers }, body: JSON.stringify(body),
    });
    return { status: response.status, body: await response.json() };
  }, [path, body, headers, publicKey]);
}

attempt("attack", "a text, four characters at a time while it is typed", async () => {
  await withCheckout({ text: ["text"] }, SETTINGS, async (page) => {
    const told = [];
    await typeUnderAttack(page, "text", "521-38-6204", async () => {
      for (const model of [
        "{ type: 'token', data: elements.text, mask: '{{ data | reveal_last: 4 }}' }",
        "{ type: 'token', data: { a: elements.text }, mask: { a: '{{ data.a | reveal_last: 4 }}' } }",
        "{ type: 'us_bank_account_number', data: elements.text }",
        "{ type: 'card', data: { number: '4242424242424242', holder: elements.text }, mask: { holder: '{{ data.holder | reveal_last: 4 }}' } }",
      ]) {
        const { value, error } = await attemptIn(page, `() => bt.tokens.create(${model})`);
        told.push(JSON.stringify(value?.data ?? error?.message));
      }
    });
    assert.deepEqual(told.filter((text) => /5\D*2\D*1|38|6204|6\D*2\D*0\D*4|"[^"]*-[^"]*"/.test(text) && !/must|mask|can/.test(text)), []);
  });
});

attempt("attack", "a transform of a text, and a mask of the result", async () => {
  const transform = [{ regex: "^(\\d{3})-(\\d{2})-(\\d{4})$" }, "$1$2x1x$3"];
  const month = [{ regex: "^.*(\\d)$" }, "0$1"];
  await withCheckout({ text: ["text", { transform }], digit: ["text", { transform: month }] }, SETTINGS, async (page) => {
    await type(page, "text", "521-38-6204");
    await type(page, "digit", "521-38-6204");
    await changed(page, "digit", { empty: false });
    for (const model of [
      "{ type: 'token', data: elements.text, mask: \"{{ data | card_mask: 'true', 'true' }}\" }",
      "{ type: 'token', data: elements.text, mask: '{{ data | reveal_last: 4 }}' }",
      "{ type: 'card', data: { number: '4242424242424242', expiration_month: elements.digit, expiration_year: 2031 } }",
      "{ type: 'card_number', data: elements.text }",
      "{ type: 'us_bank_routing_number', data: elements.digit }",
    ]) {
      const { value, error } = await attemptIn(page, `() => bt.tokens.create(${model})`);
      assert.equal(error?.name, "BasisTheoryConfigurationError", `${model} ${JSON.stringify(value)}`);
    }
    const { value } = await attemptIn(page, "() => bt.tokens.create({ type: 'token', data: elements.text })");
    assert.equal(value.data, undefined);
    assert.equal((await vault.tokens.get(value.id)).data, "52138x1x6204");
  });
});

attempt("attack", "a security code outside of a card", async () => {
  await withCheckout({ ...SPLIT, card: ["card"] }, SETTINGS, async (page) => {
    await payWith(page);
    await type(page, "card", CARD.number, "cardNumber");
    await type(page, "card", CARD.date, "expirationDate");
    await type(page, "card", CARD.code, "cvc");
    await changed(page, "card", { complete: true });
    const before = suite.sites.requests.length;
    const keyId = (await management.keys.create({})).keyId;
    for (const call of [
      "bt.tokens.create({ type: 'token', data: elements.code })",
      "bt.tokens.create({ type: 'token', data: { cvc: elements.code } })",
      "bt.tokens.create({ type: 'token', data: { a: elements.card } })",
      "bt.tokens.create({ type: 'card', data: { number: elements.number, holder: elements.code } })",
      "bt.tokens.create({ type: 'card', data: { number: elements.number, x: { cvc: elements.code } } })",
      "bt.tokens.update('x', { data: elements.code })",
      "bt.tokenize(elements.code)",
      "bt.tokenize({ a: elements.code })",
      "bt.tokenize({ a: { type: 'token', data: elements.code } })",
      "bt.tokenIntents.create({ type: 'token', data: elements.code })",
      `bt.tokens.encrypt({ tokenRequests: { type: 'token', data: elements.code }, keyId: '${keyId}' })`,
      `bt.tokens.encrypt({ tokenRequests: { a: { type: 'token', data: { cvc: elements.code } } }, keyId: '${keyId}' })`,
    ]) {
      const { value, error } = await attemptIn(page, `() => ${call}`);
      assert.equal(value, undefined, call);
      assert.match(error.message, /cvc/, call);
    }
    assert.deepEqual(suite.sites.requests.slice(before).filter(({ method }) => method !== "GET"), []);
    for (const mask of ["{{ data.cvc | reveal_last: 2 }}", "{{ data.cvc | last4 }}"]) {
      const { error } = await attemptIn(page, `(mask) => bt.tokens.create({ type: 'card', data: { number: elements.number, cvc: elements.code }, mask: { cvc: mask } })`, mask);
      assert.match(error.message, /mask/, mask);
    }
    const { value, error } = await attemptIn(page, "() => bt.tokens.create({ type: 'card', data: { number: elements.number, cvc: elements.code }, mask: { number: '{{ data.number | card_mask }}' } })");
    assert.equal(error, undefined);
    assert.equal(value.data.cvc, undefined);
  });
});

attempt("attack", "a security code by replaying guesses under the idempotency key of its request", async () => {
  await withCheckout(SPLIT, SETTINGS, async (page) => {
    await payWith(page);
    const known = { type: "card", data: { number: "4242424242424242", expiration_month: 12, expiration_year: 2031 } };
    const first = await attemptIn(page, `(known) => {
      const model = { ...known, data: { ...known.data, cvc: elements.code } };
      return bt.tokens.create(model, { idempotencyKey: 'guess' });
    }`, known);
    assert.equal(first.error, undefined);
    const model = { ...known, data: { ...known.data, cvc: CARD.code } };
    const guess = await fetchIn(page, "/tokens", model, { "BT-IDEMPOTENCY-KEY": "guess" });
    assert.notEqual(guess.body.id, first.value.id);
  });
});

attempt("attack", "a short text by deduplication of guesses, by id and by fingerprint", async () => {
  await withCheckout({ text: ["text"] }, SETTINGS, async (page) => {
    await type(page, "text", "0417");
    await changed(page, "text", { empty: false });
    const guesses = [
      ["token", "elements.text", "0417"],
      ["token", "{ pin: elements.text }", { pin: "0417" }],
    ];
    for (const [type, data, guess] of guesses) {
      const { value: token, error } = await attemptIn(page, `() => bt.tokens.create({ type: '${type}', data: ${data}, deduplicateToken: true })`);
      assert.equal(error, undefined);
      const found = await fetchIn(page, "/tokens", { type, data: guess, deduplicate_token: true });
      assert.notEqual(found.body.id, token.id);
      assert.equal(found.body.fingerprint, undefined);
      const tokenized = await fetchIn(page, "/tokenize", { a: { type, data: guess, deduplicate_token: true } });
      assert.ok(![token.id, found.body.id].includes(tokenized.body.a.id));
      assert.equal(tokenized.body.a.fingerprint, undefined);
    }
    // An intent is converted by a request of the page's own.
    const { value: intent } = await attemptIn(page, "() => bt.tokenIntents.create({ type: 'token', data: elements.text })");
    const converted = await fetchIn(page, "/tokens", { token_intent_id: intent.id, deduplicate_token: true });
    const guess = await fetchIn(page, "/tokens", { type: "token", data: "0417", deduplicate_token: true });
    assert.notEqual(converted.body.id, guess.body.id);
    assert.equal(converted.body.fingerprint, undefined);
    // A member of a card, by a fingerprint of that member alone.
    const card = "{ number: '4242424242424242', holder: elements.text }";
    const { value: held } = await attemptIn(page, `() => bt.tokens.create({ type: 'card', data: ${card}, fingerprintExpression: '{{ data.holder }}', deduplicateToken: true })`);
    const same = { type: "card", data: { number: "4242424242424242", holder: "0417" }, fingerprint_expression: "{{ data.holder }}", deduplicate_token: true };
    const other = await fetchIn(page, "/tokens", same);
    assert.ok(!held || other.body.id !== held.id);
    assert.ok(!held?.fingerprint || other.body.fingerprint !== held.fingerprint);
  });
});

attempt("proxy", "a path that leaves the proxy reaches no other operation", async () => {
  await withCheckout(SPLIT, {}, async (page) => {
    await payWith(page);
    for (const path of ["../tokens", "a/../../tokens", "%2e%2e/tokens", "..\\tokens"]) {
      const call = `() => bt.proxy.post({ path: ${JSON.stringify(path)}, body: { type: 'token', data: elements.code } })`;
      const { value, error } = await attemptIn(page, call);
      assert.match(error?.message ?? JSON.stringify(value), /leaves the proxy/, path);
    }
  });
});

attempt("tokenize", "what could be a token or a structure is neither", async () => {
  await withCheckout(SPLIT, {}, async (page) => {
    await payWith(page);
    const { error } = await attemptIn(page, "() => bt.tokenize({ a: { encrypted: 1, data: { b: elements.number } } })");
    assert.match(error.message, /must be text/);
  });
});

attempt("tokens.create", "ids of the page, and metadata in responses, compare nothing", async () => {
  await withCheckout(SPLIT, {}, async (page) => {
    await payWith(page);
    const create = (more) => attemptIn(page, `() => bt.tokens.create({ type: 'card', data: { number: elements.number }, ...${more} })`);
    const chosen = await create("{ id: 'x{{ data.number | last4 }}' }");
    assert.match(chosen.error.message, /chooses the id/);
    const guessed = await create(`{ metadata: { guess: '${CARD.code}' } }`);
    assert.equal(guessed.error, undefined);
    assert.equal(guessed.value.metadata, undefined);
  });
});
