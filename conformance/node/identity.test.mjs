// What makes two tokens the same: fingerprints, deduplication and ids of one's own.

import assert from "node:assert/strict";
import { randomInt, randomUUID } from "node:crypto";

import { FINGERPRINT, UUID_V4, attempt, browser, given, tenantId, vault } from "./vault.mjs";

attempt("tokens.create", "the same data of one type has one fingerprint", async () => {
  const data = String(randomInt(100_000_000, 999_999_999));

  const first = await vault.tokens.create({ type: "us_bank_account_number", data });
  const second = await vault.tokens.create({ type: "us_bank_account_number", data });
  const otherType = await vault.tokens.create({ type: "token", data });
  const otherData = await vault.tokens.create({ type: "us_bank_account_number", data: `${data}1` });

  assert.match(first.fingerprint, FINGERPRINT);
  assert.equal(second.fingerprint, first.fingerprint);
  assert.notEqual(second.id, first.id);
  assert.notEqual(otherType.fingerprint, first.fingerprint);
  assert.notEqual(otherData.fingerprint, first.fingerprint);
});

attempt("tokens.create", "a fingerprint is made of what its expression says", async () => {
  const fingerprintExpression = "{{ data.email | downcase }}";
  const print = (data) => vault.tokens.create({ type: "token", data, fingerprintExpression });
  const name = randomUUID();

  const first = await print({ email: `${name}@example.com`, since: 2020 });
  const second = await print({ email: `${name.toUpperCase()}@EXAMPLE.com`, since: 2021 });

  assert.equal(first.fingerprintExpression, fingerprintExpression);
  assert.equal(second.fingerprint, first.fingerprint);
});

attempt("tokens.create", "with deduplication an equal token is returned instead", async () => {
  const request = {
    type: "token",
    data: `value ${randomUUID()}`,
    metadata: { order: "1" },
    deduplicateToken: true,
  };

  const first = await vault.tokens.create(request);
  const again = await vault.tokens.create({ ...request, metadata: { order: "2" } });
  const another = await vault.tokens.create({ ...request, deduplicateToken: false });

  assert.deepEqual(first.extras, { deduplicated: false });
  assert.equal(again.id, first.id);
  assert.deepEqual(again.extras, {
    deduplicated: true,
    deduplicationBehavior: "read_existing",
  });
  // Whoever may read it gets it as a read would show it, unchanged.
  assert.equal(again.data, request.data);
  assert.deepEqual(again.metadata, { order: "1" });
  assert.notEqual(another.id, first.id);
});

attempt("tokens.create", "deduplication keeps to one container", async () => {
  const request = { type: "token", data: randomUUID(), deduplicateToken: true };

  const first = await vault.tokens.create({ ...request, containers: ["/conformance/a/"] });
  const second = await vault.tokens.create({ ...request, containers: ["/conformance/b/"] });

  assert.notEqual(second.id, first.id);
  assert.equal(second.fingerprint, first.fingerprint);
});

attempt("tokens.create", "whoever may not read meets a duplicate and sees little of it", async () => {
  const containers = [`/conformance/${randomInt(2 ** 40)}/`];
  const request = {
    type: "card",
    data: { number: "6011000990139424" },
    metadata: { secret: "yes" },
    deduplicateToken: true,
    containers,
  };
  const first = await vault.tokens.create(request);

  const met = await browser.tokens.create(request);

  assert.deepEqual(met, {
    id: first.id,
    type: "card",
    tenantId,
    fingerprint: first.fingerprint,
    containers,
    extras: { deduplicated: true, deduplicationBehavior: "read_existing" },
  });
});

attempt("tokens.create", "a public key compares nothing but cards", async () => {
  const request = { type: "token", data: randomUUID(), deduplicateToken: true };
  const first = await vault.tokens.create(request);

  const other = await browser.tokens.create(request);

  assert.notEqual(other.id, first.id);
  assert.equal(other.fingerprint, undefined);
});

attempt("tokens.create", "twenty equal ones at once are one token", async () => {
  const request = { type: "token", data: randomUUID(), deduplicateToken: true };

  const created = await Promise.all(
    Array.from({ length: 20 }, () => vault.tokens.create(request)),
  );

  assert.equal(new Set(created.map((token) => token.id)).size, 1);
  assert.equal(created.filter((token) => !token.extras.deduplicated).length, 1);
});

attempt("tokens.create", "created twice with an American expiry, then updated in place", async () => {
  const request = {
    data: `Sensitive Value ${randomUUID()}`,
    mask: "{{ data | reveal_last: 4 }}",
    metadata: { nonSensitiveField: "Non-Sensitive Value" },
    searchIndexes: ["{{ data }}", "{{ data | last4 }}"],
    fingerprintExpression: "{{ data }}",
    deduplicateToken: true,
  };
  const whole = {
    ...request,
    type: "token",
    containers: ["/general/high/"],
    expiresAt: "8/26/2030 7:23:57 PM -07:00",
  };

  const first = await vault.tokens.create(whole);
  const second = await vault.tokens.create(whole);
  const updated = await vault.tokens.update(first.id, request);

  assert.deepEqual(first.expiresAt, new Date("2030-08-27T02:23:57Z"));
  assert.deepEqual(first.searchIndexes, request.searchIndexes);
  assert.equal(second.id, first.id);
  assert.equal(updated.id, first.id);
  assert.deepEqual(updated.extras, { deduplicated: false });
  assert.deepEqual(updated.expiresAt, first.expiresAt);
  assert.equal(updated.fingerprint, first.fingerprint);
});

const OWN_IDS = [
  `order ${randomUUID()} of someone@example.com`,
  `naïve ☃ ${randomUUID()}`,
  `a.b,c:d;e~f'g"h(i)!$*@${randomUUID()}`,
  randomUUID().toUpperCase(),
];

for (const id of OWN_IDS) {
  attempt("tokens.create", `an id of one's own is found by it: ${id.slice(0, 12)}…`, async () => {
    const { data, rawResponse } = await vault.tokens
      .create({ id, type: "token", data: "first" })
      .withRawResponse();
    const read = await vault.tokens.get(id);
    const updated = await vault.tokens.update(id, { data: "second" });
    const detokenized = await vault.tokens.detokenize(`{{ ${id} }}`);
    await vault.tokens.delete(id);

    assert.equal(data.id, id);
    assert.equal(decodeURIComponent(rawResponse.headers.get("location")).endsWith(id), true);
    assert.equal(read.data, "first");
    assert.equal(updated.id, id);
    assert.equal(detokenized, "second");
  });
}

const EXPRESSIONS = [
  ["{{ data | alias_preserve_format: 0, 4 }}", /^\d{3}-\d{2}-3333$/],
  ["ssn {{ data | alias_preserve_length }}", /^ssn .{11}$/],
];

for (const [expression, pattern] of EXPRESSIONS) {
  attempt("tokens.create", `an id is made of the data: ${expression}`, async () => {
    const created = await vault.tokens.create({
      id: expression,
      type: "social_security_number",
      data: "111-22-3333",
    });
    const read = await vault.tokens.get(created.id);

    assert.match(created.id, pattern);
    assert.doesNotMatch(created.id, /111-22-3333/);
    assert.equal(read.data, "111-22-3333");
    await vault.tokens.delete(created.id);
  });
}

attempt("tokens.create", "an alias that is taken gives way to a UUID", async () => {
  // One digit is replaced, so that eleven tokens cannot all have an alias of their own.
  const make = () =>
    vault.tokens.create({
      id: `${run}-{{ data | alias_preserve_format: 0, 10 }}`,
      type: "token",
      data: "12345678901",
    });
  const run = randomUUID();

  const created = [];
  for (let count = 0; count < 11; count += 1) {
    created.push(await make());
  }

  const ids = created.map((token) => token.id);
  assert.equal(new Set(ids).size, 11);
  assert.ok(ids.some((id) => UUID_V4.test(id)));
  assert.ok(ids.some((id) => id.startsWith(run)));
});

attempt("tokens.create", "a masked answer carries its fingerprint as well", async () => {
  const created = await browser.tokens.create({ type: "card", data: { number: "6011000990139424" } });
  const read = await vault.tokens.get(created.id);

  assert.deepEqual(given(created).extras, { deduplicated: false });
  assert.equal(read.fingerprint, created.fingerprint);
});
