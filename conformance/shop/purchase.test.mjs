// Purchases in the demo shop, with each of its servers.

import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { after, before } from "node:test";

import { enterCode, fill, issuer, pay, problem, receipt, startBrowser, withPage } from "./cardholder.mjs";
import { request, startServer, until } from "./server.mjs";
import { ask, attempt, shop } from "./vault.mjs";

/** Without long runs of zeros, so that nine digits in a row are found nowhere by accident. */
const FRICTIONLESS = "4539148803436467";
const CHALLENGE = "4761369980320253";
const NOT_AUTHENTICATED = "4264281511112228";
const CHALLENGE_FAILS = "5427660064241339";
const DECLINED = "4000000000000002";
const WITHOUT_THREEDS = "4264281500001119";
const CODE = "1234";

let browser;
before(async () => {
  browser = await startBrowser();
});
after(() => browser?.close());

for (const language of ["node", "python"]) {
  let server;
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

  test("the server starts", async () => {
    server = await startServer(language);
  });

  test("frictionless: paid, and the webhook says that the card is saved", async () => {
    await visit(async (page) => {
      await fill(page, FRICTIONLESS);
      await pay(page);
      await receipt(page, "Thank you. Your order is paid.");
      await receipt(page, `Ending in ${FRICTIONLESS.slice(-4)}`);
      await receipt(page, "Ready for your next order");
    });
    const [event] = webhookEvents(server);
    assert.equal(event.type, "token.created");
    const token = await ask(`/tokens/${event.data.token.id}`);
    assert.equal(token.body.data.number, FRICTIONLESS);
  });

  test("challenge: paid after the right code", async () => {
    await visit(async (page) => {
      await fill(page, CHALLENGE);
      await pay(page);
      await enterCode(page, CODE);
      await receipt(page, "Thank you. Your order is paid.");
      await receipt(page, "Ready for your next order");
    });
    assert.equal(charges(server).length, 2);
    const { "3ds": threeds, source } = charges(server).at(-1);
    assert.equal(threeds.eci, "05");
    assert.ok(threeds.cryptogram && threeds.xid && threeds.version);
    assert.match(source.number, /^\{\{ [0-9a-f-]{36} \| json: '\$\.number' \}\}$/);
  });

  test("declined: told in plain words, not kept, and another card works", async () => {
    await visit(async (page) => {
      await fill(page, DECLINED);
      await pay(page);
      await problem(page, "Your card was declined, and you were not charged.");
      const { data } = await until(() => webhookEvents(server)[2]);
      assert.equal((await ask(`/tokens/${data.token.id}`)).status, 404);

      await page.evaluate(() => document.activeElement?.blur());
      await fillAgain(page, FRICTIONLESS);
      await pay(page);
      await receipt(page, "Thank you. Your order is paid.");
    });
  });

  test("not authenticated: the issuer rejects, with and without a challenge; nothing is charged", async () => {
    const before = charges(server).length;
    await visit(async (page) => {
      await fill(page, NOT_AUTHENTICATED);
      await pay(page);
      await problem(page, "Your bank did not confirm this payment, and you were not charged.");
    });
    await visit(async (page) => {
      await fill(page, CHALLENGE_FAILS);
      await pay(page);
      await enterCode(page, CODE);
      await problem(page, "Your bank did not confirm this payment, and you were not charged.");
    });
    await visit(async (page) => {
      await fill(page, CHALLENGE);
      await pay(page);
      await issuer(page).getByRole("button", { name: "Cancel" }).click();
      await problem(page, "Your bank did not confirm this payment, and you were not charged.");
    });
    assert.equal(charges(server).length, before);
  });

  test("a card without 3-D Secure: told in plain words", async () => {
    await visit(
      async (page) => {
        await fill(page, WITHOUT_THREEDS);
        await pay(page);
        await problem(page, "This card cannot be confirmed online, and you were not charged.");
      },
      { expected: ["status of 424"] },
    );
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

  test("concurrent ends of a challenge charge once", async () => {
    let id;
    const before = charges(server).length;
    await visit(async (page) => {
      const placed = page.waitForResponse((response) => response.url().endsWith("/orders"));
      await page.route("**/orders/*/challenge", async (route) => {
        // The same request, eight times at once.
        const path = new URL(route.request().url()).pathname;
        await Promise.all(Array.from({ length: 8 }, () => request(path, { body: {} })));
        await route.continue();
      });
      await fill(page, CHALLENGE);
      await pay(page);
      ({ id } = await (await placed).json());
      await enterCode(page, CODE);
      await receipt(page, "Thank you. Your order is paid.");
    });
    const references = charges(server).slice(before).map(({ reference }) => reference);
    assert.deepEqual(references, [id]);
  });

  test("a request with anything but ids is rejected", async () => {
    const valid = { token_intent_id: crypto.randomUUID(), session_id: crypto.randomUUID() };
    for (const wrong of [
      { token_intent_id: "{{ x }}" }, { session_id: "../../tokens" }, { name: "" }, { name: "x".repeat(46) }, { email: "ada" },
      { email: undefined }, { name: 1 }, { token_intent_id: null }, { session_id: [valid.session_id] },
    ]) {
      const { status, body } = await request("/orders", { body: order({ ...valid, ...wrong }) });
      assert.deepEqual([status, body], [400, { error: "invalid" }], JSON.stringify(wrong));
    }
    assert.equal((await request("/orders", { body: order({ padding: "x".repeat(70_000) }) })).status, 413);
    assert.equal((await request(`/orders/${crypto.randomUUID()}`, { method: "GET" })).status, 404);
    assert.equal((await request("/../server/node/main.mjs", { method: "GET" })).status, 404);
    assert.equal((await request("/__proto__", { method: "GET" })).status, 404);
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
  });

  test("the server's key cannot read a card, and sends it to the processor only", async () => {
    const { VAULT_PRIVATE_KEY: key, VAULT_PUBLIC_KEY: publicKey } = shop.environment;
    const { id } = webhookEvents(server)[0].data.token;
    for (const one of [key, publicKey]) {
      const read = await ask(`/tokens/${id}`, { key: one });
      assert.equal(read.status, 403);
    }
    const elsewhere = await fetch(`${process.env.BT_API_URL}/proxy/x`, {
      method: "POST",
      headers: { "BT-API-KEY": key, "BT-PROXY-URL": "https://evil.example", "Content-Type": "application/json" },
      body: JSON.stringify({ number: `{{ ${id} }}` }),
    });
    assert.equal(elsewhere.status, 403);
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

/** Replaces the number in a field that has one. */
async function fillAgain(page, number) {
  await page.frameLocator("#number iframe").locator("input").first().click();
  await page.keyboard.press("Control+A");
  await page.keyboard.type(number);
}

/** What the shop's page creates before it places an order. */
async function intentAndSession(number) {
  const key = shop.environment.VAULT_PUBLIC_KEY;
  const data = { number, expiration_month: 12, expiration_year: 2031, cvc: "739" };
  const intent = await ask("/token-intents", { key, method: "POST", body: { type: "card", data } });
  const device_info = {
    browser_javascript_enabled: true, browser_java_enabled: false, browser_language: "en-US", browser_color_depth: "24",
    browser_screen_height: "900", browser_screen_width: "1440", browser_tz: "0", browser_user_agent: "Mozilla/5.0",
  };
  const session = await ask("/3ds/sessions", {
    key, method: "POST", body: { token_intent_id: intent.body.id, type: "customer", device: "browser", device_info },
  });
  return { token_intent_id: intent.body.id, session_id: session.body.id };
}

const order = (ids) => ({ name: "Ada Example", email: "ada@shop.example", ...ids });

/** Nine digits in a row, and the number as people write it. */
function parts(number) {
  const runs = Array.from({ length: number.length - 8 }, (_, at) => number.slice(at, at + 9));
  return [...runs, number.replace(/(.{4})(?=.)/g, "$1 "), number.replace(/(.{4})(?=.)/g, "$1-")];
}

function sign(body, timestamp, secret = shop.environment.WEBHOOK_SECRET) {
  const key = Buffer.from(secret.replace("whsec_", ""), "base64");
  const text = `msg_1.${timestamp}.${JSON.stringify(body)}`;
  const signature = createHmac("sha256", key).update(text).digest("base64");
  return { "webhook-id": "msg_1", "webhook-timestamp": String(timestamp), "webhook-signature": `v1,${signature}` };
}

/** Bodies of the webhook's deliveries, by the first line of their JSON. */
function webhookEvents(server) {
  const bodies = server.toShop.text().match(/\{"delivered_at":.*\}/g) ?? [];
  return bodies.map((body) => JSON.parse(body).event);
}

/** Bodies that the server sent to the vault's proxy. */
function charges(server) {
  const bodies = server.toVault.text().match(/\{"source":\s?\{.*?"3ds":\s?\{[^}]*\}\}/g) ?? [];
  return bodies.map((body) => JSON.parse(body));
}

function orders(server) {
  return server.toShop.text().split("POST /orders HTTP").length - 1;
}
