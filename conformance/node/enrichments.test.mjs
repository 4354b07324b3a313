// Enrichments: what is known about a bank account and about a card's first digits.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";

import { BasisTheory, BasisTheoryError } from "@basis-theory/node-sdk";

import { attempt, browser, management, refusal, vault } from "./vault.mjs";

const { BadRequestError, ForbiddenError } = BasisTheory;
const INVALID = "One or more validation errors occurred.";
const ROUTING = "021000021";

const bank = (account_number) => ({ type: "bank", data: { routing_number: ROUTING, account_number } });
const account = (data) => ({ type: "us_bank_account_number", data });

const ACCOUNTS = [
  ["the test account", bank("00001"), undefined, "enabled"],
  ["the second test account", bank("00002"), undefined, "inconclusive"],
  ["another account", bank("12345678"), undefined, "inconclusive"],
  ["an account number and a routing number", account("00001"), ROUTING, "enabled"],
  ["the routing number that no bank has", account("00000"), "021000020", "disabled"],
];

for (const [name, request, routingNumber, status] of ACCOUNTS) {
  attempt("enrichments.bankAccountVerify", `${name} is ${status}`, async () => {
    const { id: tokenId } = await vault.tokens.create(request);

    const verified = await vault.enrichments.bankAccountVerify({ tokenId, routingNumber });

    assert.deepEqual(verified, { status });
  });
}

const INVALID_ACCOUNTS = [
  ["a token of another type", { type: "token", data: "x" }, undefined],
  ["an account number alone", account("00001"), undefined],
];

for (const [name, request] of INVALID_ACCOUNTS) {
  attempt("enrichments.bankAccountVerify", `cannot be verified: ${name}`, async () => {
    const { id: tokenId } = await vault.tokens.create(request);

    const refused = vault.enrichments.bankAccountVerify({ tokenId });

    await refusal(refused, BadRequestError, 400, INVALID);
  });
}

attempt("enrichments.bankAccountVerify", "an unknown token is named as the reason", async () => {
  const refused = vault.enrichments.bankAccountVerify({ tokenId: randomUUID() });

  const { body } = await refusal(refused, BadRequestError, 400, INVALID);
  assert.deepEqual(Object.keys(body.errors), ["token_id"]);
});

attempt("enrichments.bankAccountVerify", "only for those who may use tokens", async () => {
  const { id: tokenId } = await vault.tokens.create(bank("00001"));

  for (const key of [browser, management]) {
    const refused = key.enrichments.bankAccountVerify({ tokenId });
    await refusal(refused, ForbiddenError, 403, "Forbidden");
  }
});

attempt("enrichments.getcarddetails", "a brand, in display case, for private and public keys", async () => {
  const forPrivate = await vault.enrichments.getcarddetails({ bin: "424242" });
  const forPublic = await browser.enrichments.getcarddetails({ bin: "424242" });

  assert.equal(forPrivate.brand, "Visa");
  assert.deepEqual(forPublic, forPrivate);
});

attempt("enrichments.getcarddetails", "nothing is known of an unknown BIN", async () => {
  const details = await vault.enrichments.getcarddetails({ bin: "999999" });

  assert.equal(details.brand ?? undefined, undefined);
  assert.equal(details.funding ?? undefined, undefined);
});

for (const bin of ["42424", "424242424", "42424x"]) {
  attempt("enrichments.getcarddetails", `is no BIN: ${bin}`, async () => {
    // The client has no class of its own for this one.
    const refused = vault.enrichments.getcarddetails({ bin });
    const { body } = await refusal(refused, BasisTheoryError, 400, INVALID);

    assert.deepEqual(Object.keys(body.errors), ["bin"]);
  });
}

attempt("enrichments.getcarddetails", "not for management keys", async () => {
  const refused = management.enrichments.getcarddetails({ bin: "424242" });

  await refusal(refused, ForbiddenError, 403, "Forbidden");
});
