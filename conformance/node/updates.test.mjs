// Updates: what is merged, what is replaced, and what null means.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";

import { BasisTheory } from "@basis-theory/node-sdk";

import {
  UUID_V4,
  attempt,
  browser,
  cardBasics,
  management,
  refusal,
  vault,
  withoutSecurityCode,
} from "./vault.mjs";

const { BadRequestError, ConflictError, ForbiddenError, NotFoundError } = BasisTheory;
const INVALID = "One or more validation errors occurred.";
const CARD = { number: "6011000990139424", expiration_month: 4, expiration_year: 2025 };

/** The card that the official integration tests create, with an odd mask and an expired date. */
const officialCard = (number) => ({
  type: "card",
  data: { ...CARD, number, cvc: 123 },
  metadata: { customer_id: "3181" },
  searchIndexes: ["{{ data.expiration_month }}", "{{ data.number | last4 }}"],
  fingerprintExpression: "{{ data.number }}",
  mask: { number: "{{ data.number, reveal_last: 4 }}", cvc: "{{ data.cvc }}" },
  deduplicateToken: false,
  containers: ["/pci/high/"],
});

attempt("tokens.*", "the life of a card, as the official tests live it", async () => {
  const created = await vault.tokens.create(officialCard("6011000990139424"));
  const read = await vault.tokens.get(created.id);
  await vault.tokens.update(created.id, { data: { number: "4242424242424242" } });
  const changed = await vault.tokens.get(created.id);
  await vault.tokens.delete(created.id);

  assert.match(created.id, UUID_V4);
  assert.deepEqual(created.mask, officialCard().mask);
  // A mask that does not say how to mask shows nothing.
  assert.deepEqual(withoutSecurityCode(created.data), { number: null });
  assert.deepEqual(created.searchIndexes, officialCard().searchIndexes);
  assert.equal(created.fingerprintExpression, "{{ data.number }}");
  assert.deepEqual(created.metadata, { customer_id: "3181" });
  assert.deepEqual(withoutSecurityCode(read.data), CARD);
  assert.deepEqual(withoutSecurityCode(changed.data), { ...CARD, number: "4242424242424242" });
  assert.deepEqual(cardBasics(changed.card), {
    bin: "42424242",
    last4: "4242",
    expirationMonth: 4,
    expirationYear: 2025,
  });
  assert.notEqual(changed.fingerprint, read.fingerprint);
  await refusal(vault.tokens.get(created.id), NotFoundError, 404, "Not Found");
});

attempt("tokens.update", "the answer is masked, and says who changed it and when", async () => {
  const data = { number: "4242424242424242", expiration_month: 4, expiration_year: 2030 };
  const created = await vault.tokens.create({ type: "card", data });

  const updated = await vault.tokens.update(created.id, { data: { expiration_year: 2031 } });
  const read = await vault.tokens.get(created.id);

  assert.equal(created.modifiedAt, undefined);
  assert.equal(created.modifiedBy, undefined);
  assert.deepEqual(updated.data, { ...data, number: "XXXXXXXXXXXX4242", expiration_year: 2031 });
  assert.deepEqual(updated.extras, { deduplicated: false });
  assert.equal(updated.modifiedBy, created.createdBy);
  assert.ok(updated.modifiedAt >= created.createdAt);
  assert.deepEqual(updated.createdAt, created.createdAt);
  assert.equal(updated.fingerprint, created.fingerprint);
  assert.deepEqual(read.data, { ...data, expiration_year: 2031 });
  assert.deepEqual(read.modifiedAt, updated.modifiedAt);
});

attempt("tokens.update", "members of data and mask are added, changed and removed", async () => {
  const { id } = await vault.tokens.create({
    type: "token",
    data: { myData: "a", Gone: "b", deep: { kept: 1, gone: 2 } },
    mask: { myData: "{{ data.myData }}", Gone: "x" },
  });

  const updated = await vault.tokens.update(id, {
    data: { myNewData: ["c"], Gone: null, deep: { gone: null, new: 3 } },
    mask: { myNewData: "{{ data.myNewData }}", Gone: null },
  });
  const read = await vault.tokens.get(id);

  assert.deepEqual(read.data, { myData: "a", deep: { kept: 1, new: 3 }, myNewData: ["c"] });
  assert.deepEqual(read.mask, {
    myData: "{{ data.myData }}",
    myNewData: "{{ data.myNewData }}",
  });
  assert.deepEqual(updated.data, { myData: "a", myNewData: ["c"] });
});

const REPLACEMENTS = [["text"], [7], [false], [["a", 1]], [""]];

for (const [value] of REPLACEMENTS) {
  attempt("tokens.update", `data that is no object replaces: ${JSON.stringify(value)}`, async () => {
    const { id } = await vault.tokens.create({ type: "token", data: { a: 1 } });

    await vault.tokens.update(id, { data: value });
    const read = await vault.tokens.get(id);

    assert.deepEqual(read.data, value);
  });
}

attempt("tokens.update", "metadata is merged, and a null entry is removed", async () => {
  const { id } = await vault.tokens.create({
    type: "token",
    data: "x",
    metadata: { kept: "1", changed: "1", removed: "1" },
  });

  const merged = await vault.tokens.update(id, {
    metadata: { changed: "2", removed: null, added: "2" },
  });
  const cleared = await vault.tokens.update(id, { metadata: null });

  assert.deepEqual(merged.metadata, { kept: "1", changed: "2", added: "2" });
  assert.equal(cleared.metadata, undefined);
  assert.equal((await vault.tokens.get(id)).data, "x");
});

attempt("tokens.update", "a mask is replaced, and removed by null", async () => {
  const { id } = await vault.tokens.create({
    type: "token",
    data: "123-45-6789",
    mask: "{{ data | reveal_last: 4 }}",
  });

  const replaced = await vault.tokens.update(id, { mask: "{{ data | reveal: 3 }}" });
  const removed = await vault.tokens.update(id, { mask: null });

  assert.equal(replaced.data, "123XXXXXXXX");
  assert.equal(removed.mask, undefined);
  assert.equal(removed.data, undefined);
});

attempt("tokens.update", "a token moves to another container, and back by null", async () => {
  const { id } = await vault.tokens.create({
    type: "token",
    data: "x",
    containers: ["/conformance/here/"],
  });

  const moved = await vault.tokens.update(id, { containers: ["/Conformance/There/"] });
  const back = await vault.tokens.update(id, { containers: null });

  assert.deepEqual(moved.containers, ["/conformance/there/"]);
  assert.deepEqual(back.containers, ["/general/high/"]);
  assert.equal((await vault.tokens.get(id)).data, "x");
});

attempt("tokens.update", "an expiry is replaced, and removed by null", async () => {
  const { id } = await vault.tokens.create({ type: "token", data: "x", expiresAt: "8/26/2030" });

  const replaced = await vault.tokens.update(id, { expiresAt: "2031-01-01T00:00:00Z" });
  const removed = await vault.tokens.update(id, { expiresAt: null });

  assert.deepEqual(replaced.expiresAt, new Date("2031-01-01T00:00:00Z"));
  assert.equal(removed.expiresAt, undefined);
  assert.equal((await vault.tokens.get(id)).data, "x");
});

attempt("tokens.update", "a fingerprint follows data and expression", async () => {
  const data = { a: randomUUID(), b: randomUUID() };
  const created = await vault.tokens.create({ type: "token", data });

  const asked = await vault.tokens.update(created.id, { fingerprintExpression: "{{ data.a }}" });
  const same = await vault.tokens.update(created.id, { data: { b: randomUUID() } });
  const other = await vault.tokens.update(created.id, { data: { a: randomUUID() } });
  const back = await vault.tokens.update(created.id, { fingerprintExpression: null });

  assert.equal(asked.fingerprintExpression, "{{ data.a }}");
  assert.notEqual(asked.fingerprint, created.fingerprint);
  assert.equal(same.fingerprint, asked.fingerprint);
  assert.notEqual(other.fingerprint, asked.fingerprint);
  assert.equal(back.fingerprintExpression, "{{ data | stringify }}");
});

attempt("tokens.update", "nothing to change is a change all the same", async () => {
  const created = await vault.tokens.create({ type: "token", data: "x", metadata: { a: "1" } });

  const updated = await vault.tokens.update(created.id, {});
  const without = await vault.tokens.update(created.id);

  assert.ok(updated.modifiedAt >= created.createdAt);
  assert.ok(without.modifiedAt >= updated.modifiedAt);
  assert.deepEqual(without.metadata, { a: "1" });
  assert.equal((await vault.tokens.get(created.id)).data, "x");
});

attempt("tokens.update", "an update that makes a duplicate returns the other token", async () => {
  const data = randomUUID();
  const first = await vault.tokens.create({ type: "token", data });
  const second = await vault.tokens.create({ type: "token", data: "another value" });

  const updated = await vault.tokens.update(second.id, { data, deduplicateToken: true });

  assert.equal(updated.id, first.id);
  assert.equal(updated.data, data);
  assert.equal(updated.extras.deduplicated, true);
  assert.equal((await vault.tokens.get(second.id)).data, "another value");
});

attempt("tokens.update", "an idempotency key is accepted", async () => {
  const { id } = await vault.tokens.create({ type: "token", data: "x" });
  const options = { idempotencyKey: randomUUID() };

  const updated = await vault.tokens.update(id, { metadata: { a: "1" } }, options);

  assert.deepEqual(updated.metadata, { a: "1" });
});

const INVALID_CHANGES = [
  ["data that is null", { data: null }, ["data"]],
  ["a number that fails the Luhn check", { data: { number: "4242424242424241" } }, ["data.number"]],
  ["a card without its number", { data: { number: null } }, ["data.number"]],
  ["a card that becomes text", { data: "4242424242424242" }, ["data"]],
  ["two containers", { containers: ["/a/", "/b/"] }, ["containers"]],
  ["a mask with an unknown filter", { mask: { number: "{{ data | shout }}" } }, ["mask.number"]],
  ["an index of nothing", { searchIndexes: ["{{ data.none }}"] }, ["search_indexes[0]"]],
  ["a fingerprint of nothing", { fingerprintExpression: "{{ data.none }}" }, ["fingerprint_expression"]],
  ["an expiry in the past", { expiresAt: "1/1/2020" }, ["expires_at"]],
];

for (const [name, change, attributes] of INVALID_CHANGES) {
  attempt("tokens.update", `what is invalid is named, and changes nothing: ${name}`, async () => {
    const data = { number: "4242424242424242", expiration_month: 12 };
    const { id } = await vault.tokens.create({ type: "card", data });

    const { body } = await refusal(vault.tokens.update(id, change), BadRequestError, 400, INVALID);

    assert.deepEqual(Object.keys(body.errors).sort(), attributes);
    const read = await vault.tokens.get(id);
    assert.deepEqual(read.data, data);
    assert.equal(read.modifiedAt, undefined);
  });
}

attempt("tokens.update", "an unknown token is not found", async () => {
  const { id } = await vault.tokens.create({ type: "token", data: "x" });
  await vault.tokens.delete(id);

  for (const unknown of [id, randomUUID(), "not there"]) {
    const update = vault.tokens.update(unknown, { metadata: { a: "1" } });
    await refusal(update, NotFoundError, 404, "Not Found");
  }
});

attempt("tokens.update", "a public key replaces what it cannot read, as a whole", async () => {
  const data = { number: "4242424242424242", expiration_month: 1 };
  const { id } = await browser.tokens.create({ type: "card", data });

  const part = { data: { expiration_month: 2 } };
  await refusal(browser.tokens.update(id, part), ForbiddenError, 403, "Forbidden");
  const updated = await browser.tokens.update(id, { data: { ...data, expiration_month: 2 } });

  assert.deepEqual(updated.data.number, "XXXXXXXXXXXX4242");
  assert.deepEqual((await vault.tokens.get(id)).data, { ...data, expiration_month: 2 });
});

attempt("tokens.update", "a management key may not update", async () => {
  const { id } = await vault.tokens.create({ type: "token", data: "x" });

  await refusal(management.tokens.update(id, { data: "y" }), ForbiddenError, 403, "Forbidden");

  assert.equal((await vault.tokens.get(id)).data, "x");
});

attempt("tokens.update", "many at once are all kept, or told to try again", async () => {
  const { id } = await vault.tokens.create({ type: "token", data: { at: 0 } });
  const names = Array.from({ length: 10 }, (_, number) => `n${number}`);

  const results = await Promise.allSettled(
    names.map((name) => vault.tokens.update(id, { data: { [name]: name } })),
  );

  const { data } = await vault.tokens.get(id);
  for (const [index, result] of results.entries()) {
    if (result.status === "fulfilled") {
      assert.equal(data[names[index]], names[index]);
    } else {
      assert.ok(result.reason instanceof ConflictError, String(result.reason));
    }
  }
});
