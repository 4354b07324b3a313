// What the official integration tests of the client assert, one after the other, in one tenant.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";

import { BasisTheory } from "@basis-theory/node-sdk";

import { attempt, client, management, refusal, vault } from "./vault.mjs";

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[1-5][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const VISA = "4242424242424242";
const MASTERCARD = "5555555555554444";
const BANK = { routing_number: "021000021", account_number: "00001" };

const card = (number = VISA) => ({
  type: "card",
  data: { number, expiration_month: 4, expiration_year: 2025, cvc: 123 },
});

attempt("tenants.self.get", "the tenant's name is SDK Integration Tests", async () => {
  const tenant = await management.tenants.self.get();

  assert.equal(tenant.name, "SDK Integration Tests");
});

attempt("tokens.get", "a private key reads a card back whole", async () => {
  const { id } = await vault.tokens.create(card());

  const { data } = await vault.tokens.get(id);

  assert.equal(data.number, VISA);
  assert.equal(data.expiration_month, 4);
  assert.equal(data.expiration_year, 2025);
});

attempt("tokens.detokenize", "a private key detokenizes a card", async () => {
  const { id } = await vault.tokens.create(card());

  const shown = await vault.tokens.detokenize({ card: `{{ ${id} }}` });

  assert.equal(shown.card.number, VISA);
});

attempt("tokens.create", "an expired card, a numeric code, indexes and a malformed mask are created", async () => {
  const created = await vault.tokens.create({
    ...card(),
    metadata: { nonSensitiveField: "Non-Sensitive Value" },
    searchIndexes: ["{{ data.expiration_month }}", "{{ data.number | last4 }}"],
    fingerprintExpression: "{{ data.number }}",
    mask: { number: "{{ data.number, reveal_last: 4 }}", cvc: "{{ data.cvc }}" },
    deduplicateToken: false,
    containers: ["/general/high/"],
  });
  const read = await vault.tokens.get(created.id);

  assert.match(created.id, UUID);
  assert.equal(created.metadata.nonSensitiveField, "Non-Sensitive Value");
  assert.doesNotMatch(JSON.stringify(created), /42424242424242/);
  assert.equal(read.data.number, VISA);
  assert.equal(read.mask.number, "{{ data.number, reveal_last: 4 }}");
});

attempt("tokens.update", "a deduplicated token with an expiry is created again and again, and updated with its own data", async () => {
  const request = {
    type: "token",
    data: "Sensitive Value",
    mask: "{{ data | reveal_last: 4 }}",
    containers: ["/general/high/"],
    metadata: { nonSensitiveField: "Non-Sensitive Value" },
    searchIndexes: ["{{ data }}", "{{ data | last4 }}"],
    fingerprintExpression: "{{ data }}",
    deduplicateToken: true,
    expiresAt: "8/26/2030 7:23:57 PM -07:00",
  };

  const first = await vault.tokens.create(request);
  const again = await vault.tokens.create(request);
  const { type, ...change } = request;
  const updated = await vault.tokens.update(first.id, change);

  assert.equal(again.id, first.id);
  assert.equal(updated.id, first.id);
  assert.equal(first.fingerprint, again.fingerprint);
  assert.equal((await vault.tokens.get(first.id)).data, "Sensitive Value");
});

attempt("tokens.update", "another number is merged into a card and read back", async () => {
  const { id } = await vault.tokens.create(card());

  await vault.tokens.update(id, { data: { number: MASTERCARD } });
  const { data } = await vault.tokens.get(id);

  assert.equal(data.number, MASTERCARD);
  assert.equal(data.expiration_month, 4);
});

attempt("tokens.delete", "what was deleted is not found", async () => {
  const { id } = await vault.tokens.create(card());

  await vault.tokens.delete(id);

  await refusal(vault.tokens.get(id), BasisTheory.NotFoundError, 404, "Not Found");
});

attempt("tokens.create", "two cards with one idempotency key are one token", async () => {
  const options = { idempotencyKey: randomUUID() };

  const first = await vault.tokens.create(card(VISA), options);
  const second = await vault.tokens.create(card(MASTERCARD), options);

  assert.equal(second.id, first.id);
  assert.equal((await vault.tokens.get(first.id)).data.number, VISA);
});

attempt("tokens.listV2", "pages of three go on past the first", async () => {
  await Promise.all([1, 2, 3, 4].map((n) => vault.tokens.create({ type: "token", data: n })));
  const seen = new Set();

  for await (const { id } of await vault.tokens.listV2({ size: 3 })) {
    seen.add(id);
    if (seen.size > 3) {
      break;
    }
  }

  assert.equal(seen.size, 4);
});

attempt("tokens.tokenize", "an object", async () => {
  const made = await vault.tokens.tokenize({ first_name: "John", last_name: "Doe" });

  assert.match(made.first_name, UUID);
  assert.match(made.last_name, UUID);
});

attempt("tokens.tokenize", "one token", async () => {
  const made = await vault.tokens.tokenize({
    type: "token",
    data: "Sensitive Value",
    metadata: { nonSensitiveField: "Non-Sensitive Value" },
    search_indexes: ["{{ data }}"],
    fingerprint_expression: "{{ data }}",
  });

  assert.match(made.id, UUID);
  assert.equal(made.type, "token");
  assert.equal(made.metadata.nonSensitiveField, "Non-Sensitive Value");
});

attempt("tokens.tokenize", "a card", async () => {
  const made = await vault.tokens.tokenize(card());

  assert.match(made.id, UUID);
  assert.equal(made.type, "card");
  assert.equal((await vault.tokens.get(made.id)).data.number, VISA);
});

attempt("tokens.tokenize", "an array of four", async () => {
  const made = await vault.tokens.tokenize(["John", "Doe", card(), { type: "token", data: "x" }]);

  assert.equal(made.length, 4);
  [made[0], made[1], made[2].id, made[3].id].forEach((id) => assert.match(id, UUID));
  assert.equal(made[2].type, "card");
});

attempt("tokens.tokenize", "a composite of five tokens", async () => {
  const made = await vault.tokens.tokenize({
    first_name: "John",
    last_name: "Doe",
    primary_card: card(),
    sensitive_tags: ["preferred", { type: "token", data: "vip" }],
  });

  const ids = [made.first_name, made.last_name, made.primary_card.id];
  ids.push(made.sensitive_tags[0], made.sensitive_tags[1].id);
  ids.forEach((id) => assert.match(id, UUID));
  assert.equal(new Set(ids).size, 5);
});

attempt("tokens.detokenize", "one value of a card", async () => {
  const { id } = await vault.tokens.create(card());

  const shown = await vault.tokens.detokenize({ number: `{{ ${id} | json: '$.number' }}` });

  assert.deepEqual(shown, { number: VISA });
});

attempt("tokens.detokenize", "an array, with blanks behind an expression", async () => {
  const first = await vault.tokens.create({ type: "token", data: "John" });
  const second = await vault.tokens.create({ type: "token", data: "Doe" });

  const shown = await vault.tokens.detokenize([`{{ ${first.id} }}`, `{{ ${second.id} }}  `]);

  assert.equal(shown[0], "John");
  assert.equal(shown[1].trim(), "Doe");
});

attempt("enrichments.bankAccountVerify", "the test account is enabled", async () => {
  const { id } = await vault.tokens.create({ type: "bank", data: BANK });

  const verified = await vault.enrichments.bankAccountVerify({ tokenId: id });

  assert.equal(verified.status, "enabled");
});

attempt("tokenIntents.create", "a private key makes an intent, with a UUID for an id", async () => {
  const intent = await vault.tokenIntents.create(card());

  assert.match(intent.id, UUID);
});

attempt("keys.create", "a key is made without arguments, found, deleted and not found", async () => {
  const created = await management.keys.create();
  const read = await management.keys.get(created.keyId);
  await management.keys.delete(created.keyId);

  assert.ok(created.keyId);
  assert.match(created.publicKeyPem, /^-----BEGIN PUBLIC KEY-----/);
  assert.equal(read.keyId, created.keyId);
  assert.ok(read.expiresAt instanceof Date);
  const gone = management.keys.get(created.keyId);
  await refusal(gone, BasisTheory.NotFoundError, 404, "Not Found");
});

attempt("applications.create", "an application with token:use is made, renamed and deleted", async () => {
  const request = { name: "(Deletable) node-SDK", type: "private", permissions: ["token:use"] };

  const { id } = await management.applications.create(request);
  await management.applications.update(id, { ...request, name: "(Deletable) node-SDK renamed" });
  const { name } = await management.applications.get(id);
  await management.applications.delete(id);

  assert.equal(name, "(Deletable) node-SDK renamed");
  const gone = management.applications.get(id);
  await refusal(gone, BasisTheory.NotFoundError, 404, "Not Found");
});

attempt("tokens.get", "a key that is none is unauthorized", async () => {
  const stranger = client("not-a-key");

  const refused = stranger.tokens.get(randomUUID());

  await refusal(refused, BasisTheory.UnauthorizedError, 401, "Unauthorized");
});
