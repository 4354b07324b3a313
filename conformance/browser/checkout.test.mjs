// Hosted pages in Chromium: the card form, branding, languages, accessibility, and pictures of every page.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before } from "node:test";
import { crc32, deflateSync } from "node:zlib";

import { RIGHT, enter, hostedIssuer } from "./cardholder.mjs";
import { picture, startBrowser, watched } from "./chromium.mjs";
import { openShop, purchase } from "./shop.mjs";
import { attempt, baseUrl, call, publicKey, vault } from "./vault.mjs";

const AXE = readFileSync(new URL("node_modules/axe-core/axe.min.js", import.meta.url), "utf8");
/** A PNG in one color, in Base64. */
function square(color, size) {
  const chunk = (kind, content) => {
    const body = Buffer.concat([Buffer.from(kind), content]);
    const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
    length.writeUInt32BE(content.length);
    sum.writeUInt32BE(crc32(body));
    return Buffer.concat([length, body, sum]);
  };
  const header = Buffer.from([0, 0, 0, size, 0, 0, 0, size, 8, 2, 0, 0, 0]);
  const row = Buffer.from([0, ...Array(size).fill(color).flat()]);
  const pixels = deflateSync(Buffer.concat(Array(size).fill(row)));
  const chunks = [chunk("IHDR", header), chunk("IDAT", pixels), chunk("IEND", Buffer.alloc(0))];
  return Buffer.concat([Buffer.from([137, 80, 78, 71, 13, 10, 26, 10]), ...chunks]).toString("base64");
}

const BRANDING = {
  name: "Coat & Hat",
  colors: { accent: "#7a1f5c", accent_text: "#ffffff" },
  dark_colors: { accent: "#f0a6d8", accent_text: "#2b0a20" },
  logo: square([122, 31, 92], 48),
};
const LOOKS = [
  { name: "phone light", viewport: { width: 390, height: 844 }, colorScheme: "light", isMobile: true, hasTouch: true },
  { name: "phone dark", viewport: { width: 390, height: 844 }, colorScheme: "dark", isMobile: true, hasTouch: true },
  { name: "desktop light", viewport: { width: 1280, height: 800 }, colorScheme: "light" },
  { name: "desktop dark", viewport: { width: 1280, height: 800 }, colorScheme: "dark" },
];
const CHALLENGED = "4000020000000000";

let browser;
let shop;
before(async () => {
  [browser, shop] = await Promise.all([startBrowser(), openShop()]);
  await call("PUT", "/tenants/self/branding", BRANDING, "management");
});
after(async () => {
  await call("DELETE", "/tenants/self/branding", undefined, "management");
  await browser?.close();
  shop?.close();
});

async function openSession(more = {}) {
  const urls = { return_url: `${shop.url}/success`, cancel_url: `${shop.url}/failure` };
  return call("POST", "/checkout/sessions", { ...urls, amount: 4250, currency: "EUR", reference: "Order 1001", ...more });
}

async function openAuthentication(number) {
  const token = await vault.tokens.create({ type: "card", data: { number } });
  const session = await vault.threeds.sessions.create({
    tokenId: token.id,
    device: "browser",
    authenticationRequest: purchase(),
    callbackUrls: { success: `${shop.url}/success`, failure: `${shop.url}/failure` },
  });
  const address = new URL(session.redirectUrl);
  address.searchParams.set("apiKey", publicKey);
  return address.href;
}

/** Violations that matter. The debugger runs axe, since the page's policy allows no other script. */
async function violations(page) {
  await page.evaluate(AXE);
  const { violations } = await page.evaluate(() => window.axe.run(document, { iframes: false, resultTypes: ["violations"] }));
  return violations
    .filter(({ impact }) => ["serious", "critical"].includes(impact))
    .map(({ id, nodes }) => `${id}: ${nodes.map(({ html, failureSummary }) => html + failureSummary).join(" ")}`);
}

async function fill(page, { number = "4242424242424242", date = "1240", code = "123" } = {}) {
  await page.getByLabel("Card number").pressSequentially(number);
  await page.getByLabel("Expiration date").pressSequentially(date);
  await page.getByLabel("Security code").pressSequentially(code);
}

attempt("checkout page", "a card becomes a token intent, and the cardholder returns", async () => {
  const session = await openSession({ collect_cardholder_name: true });
  await watched(browser, {}, async (page) => {
    const sent = [];
    page.on("request", (request) => sent.push({ url: request.url(), body: request.postData() ?? "" }));
    await page.goto(session.url);
    await fill(page);
    await page.getByLabel("Name on card").fill("Ada Example");
    assert.equal(await page.getByLabel("Card number").inputValue(), "4242 4242 4242 4242");
    assert.equal(await page.getByLabel("Expiration date").inputValue(), "12 / 40");
    await page.getByText("Card brand: Visa").waitFor({ state: "attached" });
    const stored = () => page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie]));
    assert.equal(await stored(), '[{},{},""]');
    await page.getByRole("button", { name: "Submit card" }).click();
    await page.waitForURL(`${shop.url}/success*`);
    // The number is sent once, in the body of the request to the vault, and is in no URL.
    const carriers = sent.filter(({ url, body }) => (url + body).includes("4242424242424242"));
    assert.deepEqual(carriers.map(({ url }) => url), [`${session.url}/card`]);
    const query = new URL(page.url()).searchParams;
    assert.equal(query.get("checkout_session_id"), session.id);
    const read = await call("GET", `/checkout/sessions/${session.id}`);
    assert.equal(read.status, "complete");
    assert.equal(read.cardholder_name, "Ada Example");
    assert.equal(query.get("token_intent_id"), read.token_intent_id);
    const intent = await vault.tokenIntents.get(read.token_intent_id);
    assert.equal(intent.card.last4, "4242");
    // The form is not in the history, and its URL shows neither the form nor the card.
    await page.goBack();
    assert.equal(page.url(), "about:blank");
    await page.goto(session.url);
    await page.getByText("Card details received").waitFor();
    assert.equal(await page.locator("input").count(), 0);
  });
});

attempt("checkout page", "errors are announced at their fields, with the keyboard alone", async () => {
  const session = await openSession();
  await watched(browser, {}, async (page) => {
    await page.goto(session.url);
    await page.keyboard.press("Tab");
    assert.equal(await page.evaluate(() => document.activeElement.id), "number");
    await page.keyboard.type("4242424242424241");
    await page.keyboard.press("Tab");
    await page.getByText("Card number is invalid.").waitFor();
    assert.equal(await page.getByLabel("Card number").getAttribute("aria-invalid"), "true");
    await page.keyboard.type("1320");
    await page.keyboard.press("Tab");
    await page.getByText("Expiration date is invalid.").waitFor();
    await page.keyboard.press("Enter");
    await page.getByRole("alert").getByText("Please correct the marked fields.").waitFor();
    await page.getByText("Security code is required.").waitFor();
    assert.equal(await page.evaluate(() => document.activeElement.id), "number");
    assert.deepEqual(await violations(page), []);
    await page.keyboard.press("ControlOrMeta+A");
    await page.keyboard.type("378282246310005");
    await page.getByText("4 digits").waitFor({ state: "attached" });
    assert.equal(await page.getByLabel("Card number").inputValue(), "3782 822463 10005");
    const order = [];
    for (let step = 0; step < 5; step++) {
      order.push(await page.evaluate(() => document.activeElement.id || document.activeElement.className));
      await page.keyboard.press("Tab");
    }
    assert.deepEqual(order, ["number", "expiration", "code", "submit", "quiet"]);
  });
  assert.equal((await call("GET", `/checkout/sessions/${session.id}`)).status, "open");
});

attempt("checkout page", "cancel leads to the shop's page, and the session stays open", async () => {
  const session = await openSession();
  await watched(browser, {}, async (page) => {
    await page.goto(session.url);
    await page.getByRole("link", { name: "Cancel and return to Coat & Hat" }).click();
    await page.waitForURL(`${shop.url}/failure?checkout_session_id=${session.id}`);
  });
  assert.equal((await call("GET", `/checkout/sessions/${session.id}`)).status, "open");
});

attempt("checkout page", "another site can neither frame the page nor submit its form", async () => {
  const session = await openSession();
  await watched(browser, { expected: [403], ignored: /frame-ancestors|X-Frame-Options/ }, async (page) => {
    await page.goto(shop.url + "/success");
    const outcome = await page.evaluate(async (url) => {
      const frame = document.createElement("iframe");
      const loaded = new Promise((resolve) => frame.addEventListener("load", resolve, { once: true }));
      frame.src = url;
      document.body.append(frame);
      await loaded;
      const data = { number: "4242424242424242", expiration_month: 12, expiration_year: 2040, cvc: "123" };
      const init = { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ data }) };
      return (await fetch(`${url}/card`, init)).status;
    }, session.url);
    assert.equal(outcome, 403);
    assert.ok(page.frames().slice(1).every((frame) => !frame.url().startsWith(baseUrl)));
  });
  assert.equal((await call("GET", `/checkout/sessions/${session.id}`)).status, "open");
});

attempt("checkout page", "without JavaScript, nothing is sent and the page says why", async () => {
  const session = await openSession();
  const context = await browser.newContext({ javaScriptEnabled: false });
  const page = await context.newPage();
  await page.goto(session.url);
  assert.match(await page.content(), /This page requires JavaScript/);
  const requests = [];
  page.on("request", (request) => requests.push(request.url()));
  await page.locator("#number").fill("4242424242424242");
  // The policy of the page prevents the navigation that a click would wait for.
  await page.locator("#submit").click({ noWaitAfter: true });
  await page.waitForTimeout(500);
  assert.deepEqual(requests, []);
  assert.equal(page.url(), session.url);
  await context.close();
});

attempt("hosted page", "cancel during a challenge leads to the shop's page for failure", async () => {
  const address = await openAuthentication(CHALLENGED);
  await watched(browser, {}, async (page) => {
    await page.goto(address);
    await hostedIssuer(page).locator("#code").waitFor();
    await page.getByText("€42.50").waitFor();
    await page.getByRole("button", { name: "Cancel and return to Coat & Hat" }).click();
    await page.getByRole("button", { name: "Continue with payment" }).click();
    await hostedIssuer(page).locator("#code").waitFor();
    await page.getByRole("button", { name: "Cancel and return to Coat & Hat" }).click();
    await page.getByRole("button", { name: "Cancel payment" }).click();
    await page.waitForURL(`${shop.url}/failure*`);
  });
});

for (const [language, title, amount] of [
  ["de-DE", "Kartendaten eingeben", "42,50 €"],
  ["fr-FR", "Saisissez les informations de votre carte", "42,50 €"],
  ["es-ES", "Introduzca los datos de su tarjeta", "42,50 €"],
  ["pt-BR", "Introduza os dados do seu cartão", "42,50 €"],
]) {
  attempt("languages", `${language}: the card form and the hosted page`, async () => {
    const session = await openSession();
    const address = await openAuthentication(CHALLENGED);
    await watched(browser, { context: { locale: language, viewport: LOOKS[0].viewport } }, async (page) => {
      await page.goto(session.url);
      await page.getByRole("heading", { name: title }).waitFor();
      await page.getByText(amount).waitFor();
      assert.equal(await page.evaluate(() => document.documentElement.lang), language.slice(0, 2));
      assert.deepEqual(await violations(page), []);
      await picture(page, `checkout ${language}`);
      await page.goto(address);
      const frame = page.locator("#challenge iframe");
      await frame.waitFor();
      assert.notEqual(await frame.getAttribute("title"), "Payment authentication by your bank");
      await picture(page, `hosted challenge ${language}`);
    });
  });
}

for (const { name, ...look } of LOOKS) {
  attempt("design", `${name}: every page, without serious violations`, async () => {
    await watched(browser, { expected: [404, 410], context: { ...look, reducedMotion: "reduce" } }, async (page) => {
      const check = async (title) => {
        assert.deepEqual(await violations(page), [], title);
        const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
        assert.equal(overflow, 0, `${title} scrolls sideways`);
        await picture(page, `page ${title} ${name}`);
      };
      const session = await openSession({ collect_cardholder_name: true });
      await page.goto(session.url);
      await check("card form");
      await page.getByRole("button", { name: "Submit card" }).click();
      await page.getByText("Card number is required.").waitFor();
      await check("card form errors");
      await fill(page, { code: "12" });
      await check("card form filled");
      await page.getByLabel("Security code").pressSequentially("3");
      await page.getByLabel("Name on card").fill("Ada Example");
      await page.getByRole("button", { name: "Submit card" }).click();
      await page.waitForURL(`${shop.url}/success*`);
      await page.goto(session.url);
      await check("card form complete");
      const expired = await openSession({ expires_at: new Date(Date.now() + 1_500).toISOString() });
      await page.waitForTimeout(2_000);
      await page.goto(expired.url);
      await check("card form expired");
      await page.goto(`${baseUrl}/checkout/unknown`);
      await check("error");
      await page.goto(`${baseUrl}/pages/challenge.html`);
      await check("challenge wrapper");

      const address = await openAuthentication(CHALLENGED);
      // Holds the request to the bank, so that the progress can be seen.
      let release;
      const held = new Promise((resolve) => (release = resolve));
      await page.route("**/authenticate?*", async (route) => {
        await held;
        await route.continue();
      });
      await page.goto(address);
      await page.getByText("Contacting your bank to confirm this payment...").waitFor();
      await check("authentication progress");
      await page.getByRole("button", { name: "Cancel and return to Coat & Hat" }).click();
      await check("authentication cancel");
      await page.getByRole("button", { name: "Continue with payment" }).click();
      release();
      await hostedIssuer(page).locator("#code").waitFor();
      await check("authentication challenge");
      const other = await page.context().newPage();
      await other.goto(address);
      await other.getByText("It was already opened in another window").waitFor();
      await picture(other, `page authentication elsewhere ${name}`);
      await other.close();
      await enter(hostedIssuer(page), RIGHT);
      await page.waitForURL(`${shop.url}/success*`);
    });
  });
}
