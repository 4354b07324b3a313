// The hosted page: the shop's server makes a session, sends the cardholder there, and gets them back.

import assert from "node:assert/strict";
import { after, before } from "node:test";

import { RIGHT, cancel, enter, hostedIssuer } from "./cardholder.mjs";
import { picture, startBrowser, watched } from "./chromium.mjs";
import { openShop, purchase } from "./shop.mjs";
import { attempt, publicKey, vault } from "./vault.mjs";

const CASES = [
  { name: "frictionless", number: "5204247750001471", end: "success", status: "successful" },
  { name: "frictionless failed", number: "4264281511112228", end: "failure", status: "failed" },
  { name: "challenge success", number: "4000020000000000", act: enterRight, end: "success", status: "successful" },
  { name: "without a method", number: "4005562231212123", act: enterRight, end: "success", status: "successful" },
  { name: "cancel", number: "4000020000000000", act: cancel, end: "failure", status: "failed" },
  { name: "challenge failed", number: "4055011111111111", act: enterRight, end: "failure", status: "failed" },
  { name: "attempted after a challenge", number: "4005571701111111", act: enterRight, end: "success", status: "attempted" },
];
/** Long enough for a message and what would follow from it. */
const A_WHILE_MS = 1000;

let browser;
let shop;
before(async () => {
  [browser, shop] = await Promise.all([startBrowser(), openShop()]);
});
after(async () => {
  await browser?.close();
  shop?.close();
});

function enterRight(frame) {
  return enter(frame, RIGHT);
}

/** A session whose browser part the vault does by itself, and where to send the cardholder. */
async function start(number) {
  const token = await vault.tokens.create({ type: "card", data: { number } });
  const session = await vault.threeds.sessions.create({
    tokenId: token.id,
    device: "browser",
    authenticationRequest: purchase(),
    callbackUrls: { success: `${shop.url}/success`, failure: `${shop.url}/failure` },
  });
  const address = new URL(session.redirectUrl);
  address.searchParams.set("apiKey", publicKey);
  return { id: session.id, address: address.href };
}

for (const { name, number, act, end, status } of CASES) {
  attempt("hosted page", `${name}: on to the shop's page for ${end}`, async () => {
    const { id, address } = await start(number);
    await watched(browser, {}, async (page) => {
      await page.goto(address);
      if (act) {
        await hostedIssuer(page).getByRole("button").first().waitFor();
        await picture(page, `hosted ${name}`);
        await act(hostedIssuer(page));
      }
      await page.waitForURL(`${shop.url}/${end}*`);
      await picture(page, `hosted ${name} done`);
    });
    const { authentication } = await vault.threeds.sessions.get(id);
    assert.equal(authentication.authenticationStatus, status);
  });
}

attempt("hosted page", "a directory server that fails: on to the shop's page for failure", async () => {
  const { address } = await start("4264281500003339");
  await watched(browser, {}, async (page) => {
    await page.goto(address);
    await page.waitForURL(`${shop.url}/failure*`);
  });
});

attempt("hosted page", "an issuer's page cannot say that it is done: the vault's own page does", async () => {
  const { id, address } = await start("4000020000000000");
  await watched(browser, {}, async (page) => {
    await page.goto(address);
    const code = hostedIssuer(page).locator("#code");
    await code.waitFor();
    const forged = { type: "challenge", isCompleted: true, id, authenticationStatus: "successful" };
    await code.evaluate((_, forged) => window.parent.postMessage(forged, "*"), forged);
    await page.waitForTimeout(A_WHILE_MS);
    assert.equal(page.url(), address);
    await enterRight(hostedIssuer(page));
    await page.waitForURL(`${shop.url}/success*`);
  });
});

attempt("hosted page", "another browser cannot take over a page that has begun; a reload goes on", async () => {
  const { address } = await start("4000020000000000");
  await watched(browser, {}, async (page) => {
    await page.goto(address);
    await hostedIssuer(page).locator("#code").waitFor();
    await watched(browser, {}, async (other) => {
      await other.goto(address);
      await other.getByText("We could not confirm this payment.").waitFor();
    });
    await enterRight(hostedIssuer(page));
    await page.waitForURL(`${shop.url}/success*`);
    await page.goto(address);
    await page.waitForURL(`${shop.url}/success*`);
  });
});

attempt("hosted page", "a second run is not another authentication", async () => {
  const { id, address } = await start("5204247750001471");
  await watched(browser, { expected: [404, 409] }, async (page) => {
    await page.goto(address);
    await page.waitForURL(`${shop.url}/success*`);
    const { authentication } = await vault.threeds.sessions.get(id);
    await page.goto(address);
    await page.waitForTimeout(A_WHILE_MS);
    const again = await vault.threeds.sessions.get(id);
    assert.deepEqual(again.authentication, authentication);
  });
});
