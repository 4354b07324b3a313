// Token intents: data that waits to become a token, or to be forgotten.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";

import { BasisTheory } from "@basis-theory/node-sdk";

import {
  FINGERPRINT,
  UUID_V4,
  assertFromNow,
  attempt,
  browser,
  cardBasics,
  management,
  ownContainer,
  refusal,
  tenantId,
  vault,
} from "./vault.mjs";

const { BadRequestError, ForbiddenError, NotFoundError } = BasisTheory;
const INVALID = "One or more validation errors occurred.";
const DAY = 24 * 3_600;
const NUMBER = "4242424242424242";
const CARD = {
  type: "card",
  data: { number: NUMBER, expiration_month: 12, expiration_year: 2030, cvc: "123" },
};
const BANK = { type: "bank", data: { routing_number: "021000021", account_number: "00001" } };

attempt("tokenIntents.create", "a card shows itself, and never its data", async () => {
  const { data: created, rawResponse } = await vault.tokenIntents.create(CARD).withRawResponse();
  const read = await vault.tokenIntents.get(created.id);

  const { id, card, fingerprint, createdBy, createdAt, expiresAt, ...rest } = created;
  assert.equal(rawResponse.status, 201);
  assert.match(id, UUID_V4);
  assert.match(createdBy, UUID_V4);
  assert.match(fingerprint, FINGERPRINT);
  assertFromNow(createdAt, 0);
  assertFromNow(expiresAt, DAY);
  assert.deepEqual(rest, { type: "card", tenantId });
  assert.deepEqual(cardBasics(card), {
    bin: "42424242",
    last4: "4242",
    expirationMonth: 12,
    expirationYear: 2030,
  });
  assert.deepEqual(read, created);
});

attempt("tokenIntents.create", "its fingerprint is that of the token with the same data", async () => {
  const intent = await vault.tokenIntents.create(CARD);
  const token = await vault.tokens.create(CARD);

  assert.equal(intent.fingerprint, token.fingerprint);
});

attempt("tokenIntents.create", "a bank account shows itself too", async () => {
  const intent = await vault.tokenIntents.create(BANK);

  assert.deepEqual(intent.bank, { routingNumber: "021000021", accountNumberLast4: "0001" });
  assert.equal(intent.card, undefined);
});

attempt("tokenIntents.create", "public keys make them, and neither read nor delete", async () => {
  const { id } = await browser.tokenIntents.create(CARD);

  await refusal(browser.tokenIntents.get(id), ForbiddenError, 403, "Forbidden");
  await refusal(browser.tokenIntents.delete(id), ForbiddenError, 403, "Forbidden");
  assert.equal((await vault.tokenIntents.get(id)).id, id);
  await refusal(management.tokenIntents.create(CARD), ForbiddenError, 403, "Forbidden");
});

const INVALID_INTENTS = [
  ["a number that fails the Luhn check", { ...CARD, data: { number: "4242424242424241" } }, ["data.number"]],
  ["a network token", { ...CARD, type: "network_token" }, ["type"]],
  ["an unknown type", { type: "passport", data: "x" }, ["type"]],
];

for (const [name, request, attributes] of INVALID_INTENTS) {
  attempt("tokenIntents.create", `what is invalid is named: ${name}`, async () => {
    const refused = vault.tokenIntents.create(request);
    const { body } = await refusal(refused, BadRequestError, 400, INVALID);

    assert.deepEqual(Object.keys(body.errors), attributes);
  });
}

attempt("tokenIntents.delete", "it is gone", async () => {
  const { id } = await vault.tokenIntents.create(CARD);

  const { rawResponse } = await vault.tokenIntents.delete(id).withRawResponse();

  assert.equal(rawResponse.status, 204);
  await refusal(vault.tokenIntents.get(id), NotFoundError, 404, "Not Found");
  await refusal(vault.tokenIntents.delete(id), NotFoundError, 404, "Not Found");
});

attempt("tokenIntents.get", "an unknown one is not found", async () => {
  await refusal(vault.tokenIntents.get(randomUUID()), NotFoundError, 404, "Not Found");
});

attempt("tokens.create", "an intent becomes a token, once, and without its security code", async () => {
  const { id: tokenIntentId } = await browser.tokenIntents.create(CARD);
  const containers = [ownContainer()];
  const request = { tokenIntentId, containers, metadata: { from: "intent" } };

  const token = await vault.tokens.create(request);
  const read = await vault.tokens.get(token.id);

  assert.equal(token.type, "card");
  assert.deepEqual(token.containers, containers);
  assert.deepEqual(token.metadata, { from: "intent" });
  const { cvc, ...data } = CARD.data;
  assert.deepEqual(read.data, data);
  await refusal(vault.tokenIntents.get(tokenIntentId), NotFoundError, 404, "Not Found");
  const { body } = await refusal(vault.tokens.create(request), BadRequestError, 400, INVALID);
  assert.deepEqual(Object.keys(body.errors), ["token_intent_id"]);
});

attempt("tokens.create", "an intent of what is there updates that token", async () => {
  const containers = [ownContainer()];
  const first = await vault.tokens.create({ ...CARD, containers });
  const changed = { ...CARD, data: { ...CARD.data, expiration_year: 2035 } };
  const intent = await vault.tokenIntents.create(changed);

  const token = await vault.tokens.create({
    tokenIntentId: intent.id,
    containers,
    deduplicateToken: true,
  });

  assert.equal(token.id, first.id);
  assert.equal(token.extras.deduplicated, true);
  assert.equal((await vault.tokens.get(first.id)).data.expiration_year, 2035);
});

attempt("tokens.create", "an intent with a type or data beside it is refused", async () => {
  const { id: tokenIntentId } = await vault.tokenIntents.create(CARD);

  const refused = vault.tokens.create({ tokenIntentId, type: "card", data: CARD.data });
  await refusal(refused, BadRequestError, 400, INVALID);

  // And is there still.
  assert.equal((await vault.tokenIntents.get(tokenIntentId)).id, tokenIntentId);
});

attempt("tokens.tokenize", "an intent becomes a token inside a document", async () => {
  const { id } = await vault.tokenIntents.create(CARD);

  const made = await vault.tokens.tokenize({ name: "Ada", card: { token_intent_id: id } });

  assert.equal(made.card.type, "card");
  assert.equal((await vault.tokens.get(made.card.id)).data.number, NUMBER);
  await refusal(vault.tokenIntents.get(id), NotFoundError, 404, "Not Found");
});

attempt("tokens.detokenize", "an intent gives its data to callers that may see it revealed", async () => {
  const { id } = await vault.tokenIntents.create(CARD);

  const shown = await vault.tokens.detokenize({
    number: `{{ token_intent: ${id} | json: '$.data.number' }}`,
  });

  assert.equal(shown.number, NUMBER);
});
