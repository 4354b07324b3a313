// 3-D Secure: sessions that a merchant creates, authenticates and reads.

import assert from "node:assert/strict";

import { BasisTheory, BasisTheoryError } from "@basis-theory/node-sdk";

import { UUID_V4, assertFromNow, attempt, browser, refusal, tenantId, vault } from "./vault.mjs";

const { BadRequestError, NotFoundError } = BasisTheory;
const INVALID = "One or more validation errors occurred.";
const HOUR = 3_600;
const SUCCESS = "4200000000000002";
const CHALLENGE = "4200000000000004";
const NOT_ENROLLED = "4100000000000003";

const DEVICE = {
  browserJavascriptEnabled: true,
  browserJavaEnabled: false,
  browserLanguage: "en-US",
  browserColorDepth: "24",
  browserScreenHeight: "900",
  browserScreenWidth: "1440",
  browserTz: "-120",
  browserUserAgent: "Mozilla/5.0",
};

const PAYMENT = {
  authenticationCategory: "payment",
  authenticationType: "payment-transaction",
  purchaseInfo: {
    amount: "80000",
    currency: "826",
    exponent: "2",
    date: "20300109141010",
    transactionType: "purchase",
  },
  merchantInfo: {
    mid: "9876543210001",
    acquirerBin: "000000999",
    name: "Example 3DS Merchant",
    countryCode: "826",
    categoryCode: "7922",
  },
  requestorInfo: { id: "example-3ds-merchant", name: "Example 3DS Merchant", url: "https://www.example.com" },
  cardholderInfo: { name: "John Doe", email: "john@example.com" },
};

const RECURRING = {
  ...PAYMENT,
  authenticationType: "recurring-transaction",
  decoupledChallengeMaxTime: 10,
  purchaseInfo: { ...PAYMENT.purchaseInfo, recurringExpiration: "20310101", recurringFrequency: "30" },
};

async function token(number) {
  const data = { number, expiration_month: 12, expiration_year: 2030 };
  const { id } = await vault.tokens.create({ type: "card", data });
  return id;
}

async function customer(number) {
  const tokenId = await token(number);
  return browser.threeds.sessions.create({
    tokenId,
    type: "customer",
    device: "browser",
    deviceInfo: DEVICE,
  });
}

attempt("threeds.sessions.create", "a merchant's session names the card's network", async () => {
  const tokenId = await token(SUCCESS);
  const { data: session, rawResponse } = await vault.threeds.sessions
    .create({ type: "merchant", tokenId })
    .withRawResponse();

  assert.equal(rawResponse.status, 201);
  assert.match(session.id, UUID_V4);
  assert.equal(session.type, "merchant");
  assert.equal(session.cardBrand, "Visa");
  assert.match(session.methodUrl, /^https?:/);
  assert.equal(session.directoryServerId, "A000000003");
  assert.equal(session.recommendedVersion, "2.2.0");
});

attempt("threeds.sessions.create", "a card that no network knows is a failed dependency", async () => {
  const tokenId = await token(NOT_ENROLLED);
  const error = await vault.threeds.sessions.create({ type: "merchant", tokenId }).catch((error) => error);

  assert.equal(error.statusCode, 424);
  assert.equal(error.body.title, "3DS Service Error");
  assert.equal(error.body.error.service_status, "404");
});

attempt("threeds.sessions.create", "a reference to nothing is refused", async () => {
  const asked = vault.threeds.sessions.create({ type: "merchant", tokenId: "nothing" });
  await refusal(asked, BadRequestError, 400, INVALID);
});

attempt("threeds.sessions.get", "a session tells what is known of it", async () => {
  const { id } = await customer(SUCCESS);
  const session = await vault.threeds.sessions.get(id);

  assert.equal(session.id, id);
  assert.equal(session.tenantId, tenantId);
  assert.equal(session.type, "customer");
  assert.equal(session.device, "browser");
  assert.equal(session.deviceInfo.browserLanguage, "en-US");
  assert.deepEqual(session.version.availableVersions, ["2.1.0", "2.2.0"]);
  assert.equal(session.authentication, undefined);
  assertFromNow(session.expirationDate, HOUR);
});

attempt("threeds.sessions.get", "there is none for a stranger, and none for a public key", async () => {
  const unknown = "c06d0789-0a38-40be-b7cc-c28a718f76f1";
  await refusal(vault.threeds.sessions.get(unknown), NotFoundError, 404, "Not Found");
  const { id } = await customer(SUCCESS);
  // The client has no class of its own for this status here.
  await refusal(browser.threeds.sessions.get(id), BasisTheoryError, 403, "Forbidden");
});

attempt("threeds.sessions.authenticate", "a customer passes without friction", async () => {
  const { id } = await customer(SUCCESS);
  const authentication = await vault.threeds.sessions.authenticate(id, PAYMENT);

  assert.equal(authentication.authenticationStatus, "successful");
  assert.equal(authentication.threedsVersion, "2.2.0");
  assert.equal(authentication.eci, "05");
  assert.equal(Buffer.from(authentication.authenticationValue, "base64").length, 20);
  const session = await vault.threeds.sessions.get(id);
  assert.equal(session.authentication.authenticationStatus, "successful");
  assertFromNow(session.expirationDate, 90 * 24 * HOUR);
});

attempt("threeds.sessions.authenticate", "a merchant passes without the cardholder", async () => {
  const tokenId = await token(SUCCESS);
  const { id } = await vault.threeds.sessions.create({ type: "merchant", tokenId });
  const authentication = await vault.threeds.sessions.authenticate(id, RECURRING);

  assert.equal(authentication.authenticationStatus, "successful");
});

attempt("threeds.sessions.authenticate", "what is missing is named", async () => {
  const { id } = await customer(SUCCESS);
  const incomplete = { ...PAYMENT, purchaseInfo: undefined };
  const asked = vault.threeds.sessions.authenticate(id, incomplete);
  const { body } = await refusal(asked, BasisTheoryError, 400, INVALID);
  assert.deepEqual(Object.keys(body.errors), ["purchase_info"]);
});

attempt("threeds.sessions.getChallengeResult", "a result is given as often as it is asked for", async () => {
  const { id } = await customer(SUCCESS);
  const authentication = await vault.threeds.sessions.authenticate(id, PAYMENT);
  const first = await vault.threeds.sessions.getChallengeResult(id);
  const second = await vault.threeds.sessions.getChallengeResult(id);

  assert.deepEqual(first, authentication);
  assert.deepEqual(second, first);
});

attempt("threeds.sessions.getChallengeResult", "there is none before the cardholder was asked", async () => {
  const { id } = await customer(CHALLENGE);
  const authentication = await vault.threeds.sessions.authenticate(id, PAYMENT);
  const error = await vault.threeds.sessions.getChallengeResult(id).catch((error) => error);

  assert.equal(authentication.authenticationStatus, "challenge");
  assert.ok(authentication.acsChallengeUrl);
  assert.equal(error.statusCode, 424);
});
