// What cardholders and issuers may do otherwise, and the ways in which a shop may call the package.

import assert from "node:assert/strict";
import { after, before } from "node:test";

import { RIGHT, WRONG, approve, cancel, enter, issuer, outcome, startPaying } from "./cardholder.mjs";
import { picture, startBrowser, watched } from "./chromium.mjs";
import { openShop } from "./shop.mjs";
import { attempt, vault } from "./vault.mjs";

const FRICTIONLESS = "5204247750001471";
const FRICTIONLESS_FAILED = "4264281511112228";
const CHALLENGE = "4000020000000000";
const OUT_OF_BAND = "4000000000000341";
const WITHOUT_METHOD = "4005562231212123";
const CO_BADGED = "4150580996517927";
/** Of the simulated issuer's systematic range: a method that never answers, then a frictionless success. */
const SILENT_METHOD = "9000100000070200";
/** A challenge whose result arrives, but whose page never comes back. */
const WITHOUT_RETURN = "9000100000090075";
/** A challenge whose page comes back before its result arrives. */
const RETURN_FIRST = "9000100000080076";

let browser;
let shop;
before(async () => {
  [browser, shop] = await Promise.all([startBrowser(), openShop()]);
});
after(async () => {
  await browser?.close();
  shop?.close();
});

/** Whether the issuer had looked at the browser before it was asked, as the vault told it. */
async function methodOf(told) {
  const { method } = await vault.threeds.sessions.get(told.session.id);
  return method.methodCompletionIndicator;
}

attempt("createSession", "frictionless: nobody is asked", async () => {
  await watched(browser, {}, async (page) => {
    await startPaying(page, shop, FRICTIONLESS);
    const told = await outcome(page, "frictionless");

    assert.match(told.session.correlationId, /./);
    assert.equal(told.session.cardBrand, "Mastercard");
    assert.equal(told.authentication.authenticationStatus, "successful");
    assert.equal(await methodOf(told), "Y");
    assert.equal(await page.locator("#outcome").textContent(), "Thank you, it is paid.");
  });
});

attempt("createSession", "frictionless failed: it is not paid", async () => {
  await watched(browser, {}, async (page) => {
    await startPaying(page, shop, FRICTIONLESS_FAILED);
    const told = await outcome(page, "frictionless failed");

    assert.equal(told.authentication.authenticationStatus, "failed");
    assert.equal(await page.locator("#outcome").textContent(), "Not paid: failed.");
  });
});

attempt("createSession", "a card without a method is not looked at", async () => {
  await watched(browser, {}, async (page) => {
    const framed = [];
    page.on("frameattached", (frame) => framed.push(frame));
    await startPaying(page, shop, WITHOUT_METHOD);
    await issuer(page).locator("#code").waitFor();

    const told = await page.evaluate(() => window.told);
    assert.equal(await methodOf(told), "U");
    // Only the challenge: its helper page and the issuer's.
    assert.equal(framed.length, 2);
  });
});

attempt("createSession", "a method that never answers is waited for ten seconds", async () => {
  await watched(browser, {}, async (page) => {
    const started = Date.now();
    await startPaying(page, shop, SILENT_METHOD);
    const told = await outcome(page, "method that never answers");

    const seconds = (Date.now() - started) / 1000;
    assert.ok(seconds > 9.5 && seconds < 20, `${seconds} s`);
    assert.equal(told.authentication.authenticationStatus, "successful");
    assert.equal(await methodOf(told), "N");
  });
});

attempt("createSession", "a method that the shop skips was not done", async () => {
  await watched(browser, {}, async (page) => {
    await startPaying(page, shop, FRICTIONLESS, { session: { skipMethodRequest: true } });
    const told = await outcome(page, "method skipped");

    assert.equal(await methodOf(told), "N");
  });
});

attempt("createSession", "a method in a window of its own, which closes by itself", async () => {
  await watched(browser, {}, async (page) => {
    const opened = page.context().waitForEvent("page", (other) => other !== page);
    await startPaying(page, shop, FRICTIONLESS, { session: { methodRequestMode: "redirect" } });
    const told = await outcome(page, "method in a window");

    assert.ok((await opened).isClosed());
    assert.equal(told.authentication.authenticationStatus, "successful");
    assert.equal(await methodOf(told), "Y");
  });
});

attempt("createSession", "a co-badged card names both brands, and goes the way the shop chooses", async () => {
  await watched(browser, {}, async (page) => {
    const authentication = { cardBrand: "Cartes Bancaires" };
    await startPaying(page, shop, CO_BADGED, { authentication });
    await enter(issuer(page), RIGHT);
    const told = await outcome(page, "co-badged");

    assert.equal(told.session.cardBrand, "Visa");
    assert.deepEqual(told.session.additionalCardBrands, ["Visa", "Cartes Bancaires"]);
    assert.match(told.authentication.dsReferenceNumber, /cartes-bancaires/);
    assert.equal(told.result.authenticationStatus, "successful");
  });
});

attempt("createSession", "telemetry would be noticed, and stays off", async () => {
  await watched(browser, {}, async (page, watch) => {
    await startPaying(page, shop, FRICTIONLESS, { telemetry: true, path: "/unguarded" });
    await outcome(page, "telemetry");

    // Asked for, and not found: the browser knows no names but its own.
    const [noticed] = [watch.outside.splice(0), watch.complaints.splice(0)];
    assert.ok(noticed.length > 0);
  });
});

attempt("startChallenge", "the right code", async () => {
  await watched(browser, {}, async (page) => {
    await startPaying(page, shop, CHALLENGE);
    await issuer(page).locator("#code").waitFor();
    await picture(page, "challenge");
    await enter(issuer(page), RIGHT);
    const told = await outcome(page, "challenge success");

    const { id } = told.session;
    const expected = { id, isCompleted: true, authenticationStatus: "successful" };
    assert.deepEqual(told.challenge, expected);
    assert.equal(told.result.authenticationStatus, "successful");
    assert.equal(told.result.directoryStatusCode, "C");
    assert.equal(await page.locator("#outcome").textContent(), "Thank you, it is paid.");
  });
});

attempt("startChallenge", "a wrong code, then the right one", async () => {
  await watched(browser, {}, async (page) => {
    await startPaying(page, shop, CHALLENGE);
    await enter(issuer(page), WRONG);
    await issuer(page).getByRole("alert").waitFor();
    await enter(issuer(page), RIGHT);
    const told = await outcome(page, "challenge success at the second try");

    assert.equal(told.result.authenticationStatus, "successful");
    assert.equal(told.result.challengeAttempts, "02");
  });
});

attempt("startChallenge", "a wrong code three times", async () => {
  await watched(browser, {}, async (page) => {
    await startPaying(page, shop, CHALLENGE);
    for (const left of ["2 tries left", "1 try left"]) {
      await enter(issuer(page), WRONG);
      await issuer(page).getByText(left).waitFor();
    }
    await picture(page, "challenge with a wrong code");
    await enter(issuer(page), WRONG);
    const told = await outcome(page, "challenge failure");

    assert.equal(told.challenge.authenticationStatus, "failed");
    assert.equal(told.result.authenticationStatus, "failed");
    assert.equal(told.result.authenticationStatusReason, "max-challenges-exceeded");
    assert.equal(await page.locator("#outcome").textContent(), "Not paid: failed.");
  });
});

attempt("startChallenge", "cancelled by the cardholder", async () => {
  await watched(browser, {}, async (page) => {
    await startPaying(page, shop, CHALLENGE);
    await cancel(issuer(page));
    const told = await outcome(page, "cancel");

    assert.equal(told.challenge.authenticationStatus, "failed");
    assert.equal(told.result.authenticationStatus, "failed");
    assert.equal(told.result.challengeCancelReason, "cardholder-canceled");
  });
});

attempt("startChallenge", "approved out of band", async () => {
  await watched(browser, {}, async (page) => {
    await startPaying(page, shop, OUT_OF_BAND);
    await issuer(page).getByRole("button", { name: "Approve" }).waitFor();
    await picture(page, "out of band");
    await approve(issuer(page));
    const told = await outcome(page, "out of band success");

    assert.equal(told.authentication.authenticationChallengeType, "out-of-band");
    assert.equal(told.result.authenticationStatus, "successful");
  });
});

attempt("startChallenge", "time-out: nobody answers the issuer", async () => {
  await watched(browser, {}, async (page) => {
    await startPaying(page, shop, CHALLENGE, { challenge: { timeout: 3000 } });
    await issuer(page).locator("#code").waitFor();
    const told = await outcome(page, "time-out");

    assert.match(told.error, /^Timed out/);
    // The package took the issuer's page away, and nothing is known about a result.
    assert.equal(await page.locator("#challengeIframe").count(), 0);
    const { authentication } = await vault.threeds.sessions.get(told.session.id);
    assert.equal(authentication.authenticationStatus, "challenge");
  });
});

attempt("startChallenge", "a page that never comes back: the server knows the result all the same", async () => {
  await watched(browser, {}, async (page) => {
    await startPaying(page, shop, WITHOUT_RETURN, { challenge: { timeout: 4000 } });
    const told = await outcome(page, "challenge without a return");

    assert.match(told.error, /^Timed out/);
    const result = await vault.threeds.sessions.getChallengeResult(told.session.id);
    assert.equal(result.authenticationStatus, "successful");
  });
});

attempt("startChallenge", "a page that comes back before the result: the result is waited for", async () => {
  await watched(browser, {}, async (page) => {
    await startPaying(page, shop, RETURN_FIRST);
    const told = await outcome(page, "challenge with a late result");

    assert.equal(told.challenge.authenticationStatus, "successful");
    assert.equal(told.result.authenticationStatus, "successful");
  });
});

attempt("startChallenge", "in a window of its own, which closes by itself", async () => {
  await watched(browser, {}, async (page) => {
    const opened = page.context().waitForEvent("page", (other) => other !== page);
    const wanted = { session: { challengeMode: "redirect" }, challenge: { mode: "redirect" } };
    await startPaying(page, shop, CHALLENGE, wanted);
    const other = await opened;
    const closed = other.waitForEvent("close");
    await enter(other, RIGHT);
    const told = await outcome(page, "challenge in a window");

    await closed;
    assert.equal(told.challenge.authenticationStatus, "successful");
    assert.equal(told.result.authenticationStatus, "successful");
  });
});

for (const windowSize of ["01", "02", "03", "04", "05"]) {
  attempt("startChallenge", `in a frame of size ${windowSize}`, async () => {
    await watched(browser, {}, async (page) => {
      await startPaying(page, shop, CHALLENGE, { challenge: { windowSize } });
      await issuer(page).locator("#code").waitFor();
      await picture(page, `challenge in size ${windowSize}`);
      const { x, y, width, height } = await issuer(page).locator("#code").boundingBox();
      const frame = await page.locator("#challengeIframe").boundingBox();
      // All of what has to be filled in is seen without moving anything.
      assert.ok(x >= frame.x && x + width <= frame.x + frame.width);
      assert.ok(y >= frame.y && y + height <= frame.y + frame.height);
      await enter(issuer(page), RIGHT);
      const told = await outcome(page, `challenge done in size ${windowSize}`);

      assert.equal(told.result.authenticationStatus, "successful");
    });
  });
}
