// Services: what reaches the API, and what comes back to the page.

import assert from "node:assert/strict";

import { attemptIn, CARD, payWith, SPLIT, suite, type, typeInto, withCheckout, withPage } from "./checkout.mjs";
import { EVIL, MERCHANT, openDestination } from "./sites.mjs";
import { attempt, management, vault } from "./vault.mjs";

const sent = (pathname) => suite.sites.requests.filter((request) => request.pathname === pathname).at(-1);
const DATA = "{ number: elements.number, expiration_month: elements.date.month(), expiration_year: elements.date.year(), cvc: elements.code }";

attempt("tokens.create", "a card of three elements", async () => {
  await withCheckout(SPLIT, {}, async (page) => {
    await payWith(page);
    const { value, error } = await attemptIn(page, `() => bt.tokens.create({ type: 'card', data: ${DATA}, metadata: { orderId: 'A1' }, expiresAt: '2031-01-01T00:00:00Z' }, { idempotencyKey: 'key-' + Math.random(), correlationId: 'trace-1' })`);
    assert.equal(error, undefined);
    // What the page sent would be compared with the values.
    assert.equal(value.metadata, undefined);
    assert.match(value.createdAt, /^20/);
    assert.equal(sent("/tokens").headers["bt-trace-id"], "trace-1");
    const token = await vault.tokens.get(value.id);
    assert.deepEqual(token.metadata, { orderId: "A1" });
    assert.deepEqual([token.data.number, token.data.expiration_month, token.data.expiration_year], [CARD.number, 12, 2031]);
    assert.ok(!JSON.stringify(value).includes(CARD.number));
  });
});

attempt("tokens.create", "a card of one element, a formatted date, a transformed text", async () => {
  await withCheckout({ card: ["card"], ...SPLIT, ssn: ["text", { transform: { regex: "-" } }] }, {}, async (page) => {
    await type(page, "card", `${CARD.number}`, "cardNumber");
    await type(page, "card", CARD.date, "expirationDate");
    await type(page, "card", CARD.code, "cvc");
    await page.waitForFunction(() => window.elements.card.metadata.complete);
    const card = await attemptIn(page, "() => bt.tokens.create({ type: 'card', data: elements.card })");
    assert.equal((await vault.tokens.get(card.value.id)).data.number, CARD.number);
    await payWith(page);
    await type(page, "ssn", "123-45-6789");
    const mixed = await attemptIn(page, "() => bt.tokens.create({ type: 'token', data: { date: elements.date, exp: elements.date.format('yyyy-MM'), deep: [{ ssn: elements.ssn }] } })");
    assert.deepEqual((await vault.tokens.get(mixed.value.id)).data, { date: "12/31", exp: "2031-12", deep: [{ ssn: "123456789" }] });
    assert.equal(mixed.value.fingerprint, undefined);
  });
});

attempt("tokens.create", "rejects incomplete elements, in the shape of the payload", async () => {
  await withCheckout({ ...SPLIT, card: ["card"] }, {}, async (page) => {
    await type(page, "number", "4242424242424241");
    const before = suite.sites.requests.filter(({ pathname }) => pathname === "/tokens").length;
    const { error } = await attemptIn(page, `() => bt.tokens.create({ type: 'card', data: ${DATA} })`);
    assert.equal(error.name, "BasisTheoryValidationError");
    assert.deepEqual(error.details, {
      data: {
        number: { type: "invalid" }, expiration_month: { type: "incomplete" },
        expiration_year: { type: "incomplete" }, cvc: { type: "incomplete" },
      },
    });
    const whole = await attemptIn(page, "() => bt.tokens.create({ type: 'card', data: elements.card })");
    assert.deepEqual(whole.error.details.data.number, { type: "incomplete" });
    assert.equal(suite.sites.requests.filter(({ pathname }) => pathname === "/tokens").length, before);
  });
});

attempt("tokens.create", "an API error has status and data", async () => {
  const expected = ["status of 400"];
  await withCheckout({ text: ["text"] }, { expected }, async (page) => {
    await type(page, "text", "hello");
    const { error } = await attemptIn(page, "() => bt.tokens.create({ type: 'us_bank_routing_number', data: elements.text })");
    assert.equal(error.name, "BasisTheoryApiError");
    assert.equal(error.status, 400);
    assert.ok(error.data.errors);
  });
});

attempt("tokens.update", "replaces the data", async () => {
  await withCheckout({ text: ["text"] }, {}, async (page) => {
    await type(page, "text", "first");
    const { value } = await attemptIn(page, "() => bt.tokens.create({ type: 'token', data: elements.text })");
    await page.evaluate(() => window.elements.text.clear());
    await type(page, "text", "second");
    const updated = await attemptIn(page, "(id) => bt.tokens.update(id, { data: elements.text })", value.id);
    assert.equal(updated.error, undefined);
    assert.deepEqual((await vault.tokens.get(value.id)).data, "second");
  });
});

attempt("tokenize", "tokens and plain values of elements", async () => {
  await withCheckout({ ...SPLIT, name: ["text"] }, {}, async (page) => {
    await payWith(page);
    await type(page, "name", "Ada");
    const { value, error } = await attemptIn(page, `() => bt.tokenize({ card: { type: 'card', data: ${DATA} }, name: elements.name, list: [{ type: 'token', data: elements.name }] })`);
    assert.equal(error, undefined);
    assert.equal(typeof value.name, "string");
    assert.equal((await vault.tokens.get(value.name)).data, "Ada");
    assert.equal((await vault.tokens.get(value.card.id)).data.number, CARD.number);
    assert.equal((await vault.tokens.get(value.list[0].id)).data, "Ada");
  });
});

attempt("tokenIntents.create", "returns card details without the number", async () => {
  await withCheckout(SPLIT, {}, async (page) => {
    await payWith(page);
    const { value, error } = await attemptIn(page, `() => bt.tokenIntents.create({ type: 'card', data: ${DATA} })`);
    assert.equal(error, undefined);
    assert.equal(value.card.last4, CARD.number.slice(-4));
    assert.equal(value.card.expirationMonth, 12);
    const token = await vault.tokens.create({ tokenIntentId: value.id });
    assert.equal((await vault.tokens.get(token.id)).data.number, CARD.number);
  });
});

/** A session of the page, authorized by the merchant's server for one token. */
async function authorize(page, tokenId) {
  const { value } = await attemptIn(page, "() => bt.sessions.create()");
  assert.ok(value.sessionKey && value.nonce && value.expiresAt);
  await vault.sessions.authorize({
    nonce: value.nonce,
    rules: [{
      description: "Read one token",
      priority: 1,
      conditions: [{ attribute: "id", operator: "equals", value: tokenId }],
      transform: "reveal",
      permissions: ["token:read", "token:use"],
    }],
  });
  return value.sessionKey;
}

attempt("tokens.retrieve", "with a session: references to data, which elements show", async () => {
  const card = await vault.tokens.create({ type: "card", data: { number: CARD.number, expiration_month: 12, expiration_year: 2031 } });
  const elements = { number: ["cardNumber", { readOnly: true }], date: ["cardExpirationDate"], card: ["card"], text: ["text", { validation: { regex: "^x$" } }] };
  await withCheckout(elements, {}, async (page) => {
    const apiKey = await authorize(page, card.id);
    const { value, error } = await attemptIn(page, `async ({ id, apiKey }) => {
      const token = await bt.tokens.retrieve(id, { apiKey });
      elements.number.setValue(token.data.number);
      elements.date.setValue({ month: token.data.expiration_month, year: token.data.expiration_year });
      elements.card.setValue({ number: token.data.number, expiration_month: token.data.expiration_month, expiration_year: token.data.expiration_year });
      elements.text.setValue(token.data.number);
      return token;
    }`, { id: card.id, apiKey });
    assert.equal(error, undefined);
    assert.deepEqual(Object.keys(value.data.number).sort(), ["correlationId", "elementId", "path"]);
    await page.waitForFunction(() => window.elements.number.metadata.complete && window.elements.date.metadata.complete && !window.elements.text.metadata.empty);
    const shown = page.frameLocator("#box-number iframe").locator("input");
    assert.equal(await shown.inputValue(), "4539 1488 0343 6467");
    // A rule of the page does not judge a value of the vault.
    assert.equal(await page.evaluate(() => window.elements.text.metadata.valid), true);
    const thrown = await page.evaluate(() => {
      try { window.elements.number.setValue("4242424242424242"); return null; } catch (error) { return error.message; }
    });
    assert.match(thrown, /reference/);
  });
});

attempt("tokens.encrypt", "encrypts to a key of the vault, which decrypts it", async () => {
  const key = await management.keys.create({});
  await withCheckout(SPLIT, {}, async (page) => {
    await payWith(page);
    const model = `{ tokenRequests: { card: { type: 'card', data: ${DATA} } }, publicKeyPem: 'ignored', keyId: '${key.id ?? key.keyId}' }`;
    const { value, error } = await attemptIn(page, `() => bt.tokens.encrypt(${model})`);
    assert.equal(error, undefined);
    const token = await vault.tokens.create({ type: "card", encrypted: value.card.encrypted });
    assert.equal((await vault.tokens.get(token.id)).data.number, CARD.number);
    const one = await attemptIn(page, `() => bt.tokens.encrypt({ tokenRequests: { type: 'token', data: elements.number }, public_key: 'x', key_id: '${key.id ?? key.keyId}' })`);
    assert.equal(one.value.type, "token");
  });
});

attempt("proxy", "every method through the vault's proxy, with references to the response", async () => {
  const destination = await openDestination();
  const { key } = await management.proxies.create({ name: "Elements", destinationUrl: destination.url, requireAuth: false });
  try {
    await withCheckout({ number: ["cardNumber"] }, {}, (page) => invoke(page, key, destination));
  } finally {
    destination.close();
  }
});

async function invoke(page, key, { received }) {
  await type(page, "number", CARD.number);
  await page.waitForFunction(() => window.elements.number.metadata.complete);
  const headers = `{ 'BT-PROXY-KEY': '${key}' }`;
  for (const method of ["post", "put", "patch", "delete"]) {
    const { value, error } = await attemptIn(page, `() => bt.proxy.${method}({ headers: ${headers}, path: '/charges', query: { a: '1' }, body: { card: elements.number } })`);
    assert.equal(error, undefined);
    assert.equal(value.echo.card.path, "echo.card");
    const expected = { method: method.toUpperCase(), url: "/charges?a=1", body: JSON.stringify({ card: CARD.number }) };
    assert.deepEqual(received.at(-1), expected);
  }
  const { value } = await attemptIn(page, `() => bt.proxy.get({ headers: ${headers} })`);
  assert.equal(value.method.elementId, "data");
  const raw = await attemptIn(page, `() => bt.proxy.post({ headers: ${headers}, path: '/raw', body: { card: elements.number, note: 'x' }, includeResponseHeaders: true })`);
  assert.deepEqual(raw.value.data.echo, { card: "[redacted]", note: "x" });
  assert.equal(raw.value.headers["x-merchant"], "yes");
  const refused = await attemptIn(page, `() => bt.proxy.post({ headers: { 'BT-PROXY-URL': 'https://${EVIL}/' }, body: { card: elements.number } })`);
  assert.match(refused.error.message, /elements_hosts/);
}

attempt("client", "sends values to hosts that the tenant lists, and to no other", async () => {
  const tenant = await management.tenants.self.get();
  const set = (settings) => management.tenants.self.update({ name: tenant.name, settings });
  await set({ elements_hosts: MERCHANT });
  try {
    // Nodes cache the settings of a tenant for up to five seconds.
    for (let tries = 0; tries < 20; tries++) {
      const isListed = await withListedHost();
      if (isListed) {
        return;
      }
      await new Promise((resolve) => setTimeout(resolve, 500));
    }
    assert.fail("the setting did not take effect");
  } finally {
    await set({ elements_hosts: "" });
  }
});

async function withListedHost() {
  let isListed = false;
  await withCheckout({ number: ["cardNumber"] }, { expected: ["status of 422"] }, async (page) => {
    await type(page, "number", CARD.number);
    await page.waitForFunction(() => window.elements.number.metadata.complete);
    const call = (method, url) => attemptIn(page, `() => bt.client.${method}('${url}', ${method === "get" || method === "delete" ? "" : "{ card: elements.number },"} { headers: { 'X-Order': '1' } })`);
    const first = await call("post", `https://${MERCHANT}/charge`);
    isListed = first.error === undefined;
    if (!isListed) {
      return;
    }
    assert.deepEqual(first.value, { ok: true, echo: { card: "[redacted]" } });
    assert.equal(suite.sites.received.at(-1).body, JSON.stringify({ card: CARD.number }));
    assert.equal(suite.sites.received.at(-1).headers["x-order"], "1");
    for (const method of ["put", "patch", "get", "delete"]) {
      assert.equal((await call(method, `https://${MERCHANT}/x`)).error, undefined, method);
    }
    const failed = await call("post", `https://${MERCHANT}/fail`);
    assert.deepEqual([failed.error.name, failed.error.status], ["HttpClientError", 422]);
    assert.ok(!JSON.stringify(failed).includes(CARD.number));
    const received = suite.sites.received.length;
    for (const url of [`https://${EVIL}/`, `https://${MERCHANT}:8443/`, `http://${MERCHANT}/`, `https://${MERCHANT}@${EVIL}/`, "javascript:1"]) {
      const { error } = await call("post", url);
      assert.equal(error.name, "BasisTheoryConfigurationError", url);
    }
    assert.equal(suite.sites.received.length, received);
  });
  suite.sites.received.length = 0;
  return isListed;
}

attempt("debug", "adds the trace id of the response", async () => {
  await withCheckout({ text: ["text"] }, { init: { debug: true } }, async (page) => {
    await type(page, "text", "x");
    const { value } = await attemptIn(page, "() => bt.tokens.create({ type: 'token', data: elements.text })");
    assert.ok(value._debug.btTraceId);
  });
});

attempt("react-elements", "all components in strict mode, with updates, references and removal", async () => {
  await withPage("/react", {}, async (page) => {
    await page.waitForFunction(() => window.reactReady >= 1 && document.querySelectorAll("#root iframe").length >= 6);
    const fill = async (id, text) => {
      const frame = page.frameLocator(`#${id} iframe`);
      await frame.locator("input.input").first().click();
      await typeInto(page, frame, text);
    };
    await fill("number", "378282246310005");
    await page.waitForFunction(() => window.react.brand === "american-express");
    await fill("date", "1231");
    await fill("code", "1234");
    await fill("name", "a1");
    await page.waitForFunction(() => window.react.code.current.metadata.complete && window.react.name.current.metadata.complete);
    await page.frameLocator("#mirror iframe").locator("input.input").first().evaluate((node) =>
      new Promise((resolve) => {
        const check = () => (node.value === "a-1" ? resolve() : setTimeout(check, 20));
        check();
      })
    );
    const id = await page.evaluate(async () => {
      const { bt, number, date, code } = window.react;
      const token = await bt.tokens.create({
        type: "card",
        data: { number: number.current, expiration_month: date.current.month(), expiration_year: date.current.year(), cvc: code.current },
      });
      return token.id;
    });
    assert.equal((await vault.tokens.get(id)).data.number, "378282246310005");
    await page.evaluate(() => window.react.setDisabled(true));
    await page.waitForFunction(() => document.querySelector("#number iframe"));
    await page.frameLocator("#number iframe").locator("input.input:disabled").first().waitFor();
    const gone = await page.evaluate(async () => {
      const { bt, number, setOpen } = window.react;
      const element = number.current;
      setOpen(false);
      await new Promise((resolve) => setTimeout(resolve, 100));
      return bt.tokens.create({ type: "token", data: element }).catch((error) => error.message);
    });
    assert.match(gone, /removed from the DOM/);
  });
});

attempt("basis-theory-js", "the older package: init with six arguments, tokens and tokenize through elements", async () => {
  await withPage("/legacy", {}, async (page) => {
    await page.evaluate(() => window.legacy());
    await page.frameLocator("#number iframe").locator("input").click();
    await typeInto(page, page.frameLocator("#number iframe"), CARD.number);
    await page.waitForFunction(() => window.number.metadata.complete);
    const ids = await page.evaluate(async () => {
      const token = await window.bt.tokens.create({ type: "card_number", data: window.number });
      const tokenized = await window.bt.tokenize({ card: { type: "card_number", data: window.number } });
      const plain = await window.bt.tokens.create({ type: "token", data: "no element" });
      return [token.id, tokenized.card.id, plain.id];
    });
    assert.equal((await vault.tokens.get(ids[0])).data, CARD.number);
    assert.equal((await vault.tokens.get(ids[1])).data, CARD.number);
    assert.equal((await vault.tokens.get(ids[2])).data, "no element");
  });
});
