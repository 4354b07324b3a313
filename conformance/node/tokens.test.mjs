// Tokens: created, read back, deleted.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";

import { BasisTheory } from "@basis-theory/node-sdk";

import {
  UUID_V4,
  attempt,
  browser,
  cardBasics,
  given,
  refusal,
  vault,
  withoutSecurityCode,
} from "./vault.mjs";

const CARD_MASK = {
  number: "{{ data.number | reveal_last: 4 }}",
  expiration_month: "{{ data.expiration_month }}",
  expiration_year: "{{ data.expiration_year }}",
};

/** What a token of the type `token` has without being asked. */
const KEPT = { type: "token", containers: ["/general/high/"], searchIndexes: [] };
/** And this as well, unless there is nothing to make a fingerprint of. */
const PRINTED = { fingerprintExpression: "{{ data | stringify }}" };

const VALUES = [
  ["a string", "Sensitive Value"],
  ["an empty string", ""],
  ["text of many alphabets", "naïve Ω 名前 ☃ 𝄞 \"\\\n"],
  ["an object", { firstName: "Ada", last_name: "L", "Zip-Code": { Inner: [1, null] } }],
  ["an empty object", {}],
  ["an array", [1, "two", null, { Three: 3 }, [true]]],
  ["an empty array", []],
  ["an integer", 9007199254740991],
  ["a decimal number", -12.5],
  ["zero", 0],
  ["true", true],
  ["false", false],
];

for (const [name, data] of VALUES) {
  attempt("tokens.create", `data is kept and read back as it was: ${name}`, async () => {
    const created = await vault.tokens.create({ type: "token", data });
    const read = await vault.tokens.get(created.id);

    // Without a mask there is nothing of the data that a masked answer could show.
    const kept = { ...KEPT, ...(data === "" ? {} : PRINTED) };
    assert.deepEqual(given(created), { ...kept, extras: { deduplicated: false } });
    assert.deepEqual(given(read), { ...kept, data });
    assert.equal(read.id, created.id);
    assert.equal(read.createdBy, created.createdBy);
    assert.deepEqual(read.createdAt, created.createdAt);
  });
}

attempt("tokens.create", "a card is answered masked and read back whole", async () => {
  const data = { number: "4242424242424242", expiration_month: 12, expiration_year: 2030 };

  const created = await vault.tokens.create({ type: "card", data });
  const read = await vault.tokens.get(created.id);

  const { card, ...answered } = given(created);
  assert.deepEqual(answered, {
    type: "card",
    data: { ...data, number: "XXXXXXXXXXXX4242" },
    mask: CARD_MASK,
    containers: ["/pci/high/"],
    searchIndexes: [],
    fingerprintExpression: "{{ data.number }}",
    extras: { deduplicated: false },
  });
  const { card: cardRead, ...rest } = given(read);
  assert.deepEqual(rest, {
    type: "card",
    data,
    mask: CARD_MASK,
    containers: ["/pci/high/"],
    searchIndexes: [],
    fingerprintExpression: "{{ data.number }}",
  });
  assert.deepEqual(cardBasics(card), {
    bin: "42424242",
    last4: "4242",
    expirationMonth: 12,
    expirationYear: 2030,
  });
  assert.deepEqual(cardRead, card);
});

attempt("tokens.create", "month and year as strings become numbers", async () => {
  const data = { number: "4242424242424242", expiration_month: "02", expiration_year: "2031" };

  const created = await vault.tokens.create({ type: "card", data });
  const read = await vault.tokens.get(created.id);

  assert.deepEqual(read.data, { ...data, expiration_month: 2, expiration_year: 2031 });
  assert.equal(created.card.expirationMonth, 2);
  assert.equal(created.card.expirationYear, 2031);
});

for (const cvc of [123, "0123"]) {
  attempt("tokens.create", `a security code is accepted and not shown: ${typeof cvc}`, async () => {
    const data = { number: "4242424242424242", expiration_month: 4, expiration_year: 2030 };

    const created = await vault.tokens.create({ type: "card", data: { ...data, cvc } });
    const read = await vault.tokens.get(created.id);

    assert.deepEqual(created.data, { ...data, number: "XXXXXXXXXXXX4242" });
    assert.deepEqual(withoutSecurityCode(read.data, cvc), data);
  });
}

attempt("tokens.create", "a card of fifteen digits has a BIN of six", async () => {
  const created = await vault.tokens.create({ type: "card", data: { number: "378282246310005" } });
  const read = await vault.tokens.get(created.id);

  assert.equal(created.data.number, "XXXXXXXXXXX0005");
  assert.equal(created.card.bin, "378282");
  assert.equal(created.card.last4, "0005");
  assert.equal(created.card.expirationMonth, undefined);
  assert.deepEqual(read.data, { number: "378282246310005" });
});

attempt("tokens.create", "a test tenant takes the 3-D Secure test numbers", async () => {
  const created = await vault.tokens.create({ type: "card", data: { number: "4200000000000002" } });
  const read = await vault.tokens.get(created.id);

  assert.deepEqual(read.data, { number: "4200000000000002" });
});

attempt("tokens.create", "a mask shows what it says and no more", async () => {
  const created = await vault.tokens.create({
    type: "token",
    data: "123-45-6789",
    mask: "{{ data | reveal_last: 4 }}",
  });
  const read = await vault.tokens.get(created.id);

  assert.equal(created.data, "XXX-XX-6789");
  assert.equal(created.mask, "{{ data | reveal_last: 4 }}");
  assert.equal(read.data, "123-45-6789");
  assert.equal(read.mask, "{{ data | reveal_last: 4 }}");
});

attempt("tokens.create", "names inside data, mask and metadata keep their case", async () => {
  const data = { camelCase: "a", snake_case: "b", "Kebab-Case": "c" };
  const mask = { camelCase: "{{ data.camelCase }}", snake_case: "*", "Kebab-Case": "***" };
  const metadata = { camelCase: "1", snake_case: "2", "Kebab-Case": "3" };

  const created = await vault.tokens.create({ type: "token", data, mask, metadata });
  const read = await vault.tokens.get(created.id);

  assert.deepEqual(created.data, { camelCase: "a", snake_case: "*", "Kebab-Case": "***" });
  assert.deepEqual(created.mask, mask);
  assert.deepEqual(created.metadata, metadata);
  assert.deepEqual(read.data, data);
  assert.deepEqual(read.mask, mask);
  assert.deepEqual(read.metadata, metadata);
});

attempt("tokens.create", "a container is kept in lower case", async () => {
  const created = await vault.tokens.create({
    type: "token",
    data: "x",
    containers: ["/Customers/VIP-1/e_u/"],
  });
  const read = await vault.tokens.get(created.id);

  assert.deepEqual(created.containers, ["/customers/vip-1/e_u/"]);
  assert.deepEqual(read.containers, ["/customers/vip-1/e_u/"]);
});

attempt("tokens.create", "the older privacy attribute chooses the container", async () => {
  const created = await vault.tokens.create({
    type: "token",
    data: "x",
    privacy: { classification: "pii", impactLevel: "low" },
  });

  assert.deepEqual(created.containers, ["/pii/low/"]);
  assert.equal(created.privacy, undefined);
});

attempt("tokens.create", "an attribute given as null counts as absent", async () => {
  const created = await vault.tokens.create({
    id: null,
    type: "token",
    data: "x",
    mask: null,
    containers: null,
    metadata: null,
    expiresAt: null,
    searchIndexes: null,
    fingerprintExpression: null,
    deduplicateToken: null,
  });

  assert.deepEqual(given(created), { ...KEPT, ...PRINTED, extras: { deduplicated: false } });
});

attempt("tokens.create", "metadata without a value is dropped", async () => {
  const metadata = { kept: "yes", dropped: null };

  const created = await vault.tokens.create({ type: "token", data: "x", metadata });
  const read = await vault.tokens.get(created.id);

  assert.deepEqual(created.metadata, { kept: "yes" });
  assert.deepEqual(read.metadata, { kept: "yes" });
});

const EXPIRIES = [
  ["8/26/2030 7:23:57 PM -07:00", "2030-08-27T02:23:57Z"],
  ["8/26/2030 7:23:57 AM", "2030-08-26T07:23:57Z"],
  ["8/26/2030", "2030-08-26T00:00:00Z"],
  ["2030-08-26T19:23:57+05:30", "2030-08-26T13:53:57Z"],
  ["2030-08-26T19:23:57Z", "2030-08-26T19:23:57Z"],
  ["2030-08-26T19:23:57", "2030-08-26T19:23:57Z"],
  ["2030-08-26", "2030-08-26T00:00:00Z"],
];

for (const [expiresAt, instant] of EXPIRIES) {
  attempt("tokens.create", `expires when asked: ${expiresAt}`, async () => {
    const created = await vault.tokens.create({ type: "token", data: "x", expiresAt });
    const read = await vault.tokens.get(created.id);

    assert.deepEqual(created.expiresAt, new Date(instant));
    assert.deepEqual(read.expiresAt, new Date(instant));
  });
}

attempt("tokens.create", "the id may be chosen, and stays reserved after deletion", async () => {
  const id = randomUUID();

  const first = await vault.tokens.create({ id, type: "token", data: "first" });
  await vault.tokens.delete(id);
  const second = vault.tokens.create({ id, type: "token", data: "second" });

  assert.equal(first.id, id);
  await assert.rejects(second, (error) => error.statusCode === 409);
});

attempt("tokens.create", "a public key creates what a private key reads", async () => {
  const data = { number: "5555555555554444", expiration_month: 1, expiration_year: 2032 };

  const created = await browser.tokens.create({ type: "card", data });
  const read = await vault.tokens.get(created.id);

  assert.deepEqual(created.data, { ...data, number: "XXXXXXXXXXXX4444" });
  assert.deepEqual(read.data, data);
  assert.equal(read.createdBy, created.createdBy);
});

attempt("tokens.create", "tokens of two applications name different creators", async () => {
  const [first, second, third] = await Promise.all([
    vault.tokens.create({ type: "token", data: "x" }),
    vault.tokens.create({ type: "token", data: "x" }),
    browser.tokens.create({ type: "token", data: "x" }),
  ]);

  assert.equal(first.createdBy, second.createdBy);
  assert.match(third.createdBy, UUID_V4);
  assert.notEqual(first.createdBy, third.createdBy);
});

attempt("tokens.create", "an idempotency key is accepted", async () => {
  const idempotencyKey = randomUUID();

  const created = await vault.tokens.create({ type: "token", data: "x" }, { idempotencyKey });
  const read = await vault.tokens.get(created.id);

  assert.equal(read.data, "x");
});

attempt("tokens.create", "twenty at once are twenty different tokens", async () => {
  const numbers = Array.from({ length: 20 }, (_, number) => number);

  const created = await Promise.all(
    numbers.map((number) => vault.tokens.create({ type: "token", data: { number } })),
  );
  const read = await Promise.all(created.map((token) => vault.tokens.get(token.id)));

  assert.equal(new Set(created.map((token) => token.id)).size, 20);
  assert.deepEqual(read.map((token) => token.data.number), numbers);
});

attempt("tokens.delete", "a deleted token is gone, the others stay", async () => {
  const { id } = await vault.tokens.create({ type: "token", data: "gone" });
  const other = await vault.tokens.create({ type: "token", data: "stays" });

  const answer = await vault.tokens.delete(id).withRawResponse();

  assert.equal(answer.data, undefined);
  assert.equal(answer.rawResponse.status, 204);
  const { NotFoundError } = BasisTheory;
  await refusal(vault.tokens.get(id), NotFoundError, 404, "Not Found");
  await refusal(vault.tokens.delete(id), NotFoundError, 404, "Not Found");
  assert.equal((await vault.tokens.get(other.id)).data, "stays");
});
