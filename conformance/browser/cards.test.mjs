// Every documented test card, paid with in the shop by a cardholder who does what the issuer asks for.

import assert from "node:assert/strict";
import { after, before, suite } from "node:test";

import { comply, issuer, outcome, startPaying } from "./cardholder.mjs";
import { SCENARIOS } from "./cards.mjs";
import { startBrowser, watched } from "./chromium.mjs";
import { openShop } from "./shop.mjs";
import { attempt, vault } from "./vault.mjs";

const SUCCESSFUL = ["successful", "attempted"];

let browser;
let shop;
before(async () => {
  [browser, shop] = await Promise.all([startBrowser(), openShop()]);
});
after(async () => {
  await browser?.close();
  shop?.close();
});

// Mostly a browser's pages are waited for: side by side that takes half as long.
suite("cards", { concurrency: 3 }, () => {
  for (const scenario of SCENARIOS) {
    for (const number of [...scenario.numbers, ...(scenario.earlier ?? [])]) {
      const method = scenario.authenticated === "challenge" ? "startChallenge" : "createSession";
      attempt(method, `card ${number}: ${scenario.name}`, () => payWith(number, scenario));
    }
  }
});

async function payWith(number, scenario) {
  const expected = scenario.refused ? [424] : [];
  await watched(browser, { expected }, async (page) => {
    await startPaying(page, shop, number);
    if (scenario.authenticated === "challenge") {
      await comply(issuer(page));
    }
    const told = await outcome(page, `card ${number} ${scenario.name}`);
    if (scenario.refused) {
      assertRefused(told, scenario.refused);
    } else {
      await assertOutcome(told, scenario);
    }
  });
}

function assertRefused(told, call) {
  assert.notEqual(told.error, undefined);
  // The official package only hands on what the vault said about itself.
  assert.equal(told.session === undefined, call === "create", told.error);
  if (call === "authenticate") {
    assert.equal(told.problem.status, 424);
    assert.equal(told.problem.error.error_source, "Directory Server");
  }
}

async function assertOutcome(told, scenario) {
  const { authenticated, status, reasonCode, method, brands, challengeType, isMandated } = scenario;
  assert.equal(told.error, undefined);
  assert.equal(told.authentication.authenticationStatus, authenticated);
  assert.deepEqual(told.session.additionalCardBrands, brands);
  const { id } = told.session;
  const last = authenticated === "challenge" ? told.result : told.authentication;
  assert.equal(last.authenticationStatus, status);
  assert.equal(last.authenticationStatusReasonCode ?? undefined, reasonCode);
  assert.equal(typeof last.authenticationValue === "string", SUCCESSFUL.includes(status));
  if (authenticated === "challenge") {
    const shown = SUCCESSFUL.includes(status) ? "successful" : "failed";
    assert.deepEqual(told.challenge, { id, isCompleted: true, authenticationStatus: shown });
    assert.equal(told.authentication.acsChallengeMandated === "Y", isMandated === true);
    const isOutOfBand = told.authentication.authenticationChallengeType === "out-of-band";
    assert.equal(isOutOfBand, challengeType === "out-of-band");
  }
  const session = await vault.threeds.sessions.get(id);
  assert.equal(session.method.methodCompletionIndicator, method);
  assert.equal(session.authentication.authenticationStatus, status);
}
