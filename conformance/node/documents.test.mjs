// Whole documents: tokenized, and filled in again.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";

import { BasisTheory } from "@basis-theory/node-sdk";

import {
  UUID_V4,
  attempt,
  browser,
  cardBasics,
  collect,
  management,
  ownContainer,
  refusal,
  tenantId,
  vault,
  withoutSecurityCode,
} from "./vault.mjs";

const { BadRequestError, ConflictError, ForbiddenError } = BasisTheory;
const INVALID = "One or more validation errors occurred.";
const CARD = {
  type: "card",
  data: { number: "4242424242424242", expiration_month: 12, expiration_year: 2025, cvc: "123" },
};
const { cvc: _, ...READ } = CARD.data;

attempt("tokens.tokenize", "an object of values becomes an object of ids", async () => {
  const tokens = await vault.tokens.tokenize({ first_name: "John", lastName: "Doe" });

  assert.deepEqual(Object.keys(tokens), ["first_name", "lastName"]);
  assert.match(tokens.first_name, UUID_V4);
  assert.match(tokens.lastName, UUID_V4);
  assert.equal((await vault.tokens.get(tokens.first_name)).data, "John");
  assert.equal((await vault.tokens.get(tokens.lastName)).data, "Doe");
});

attempt("tokens.tokenize", "a token becomes that token", async () => {
  const token = await vault.tokens.tokenize({
    type: "token",
    data: "Sensitive Value",
    mask: "{{ data | reveal_last: 4 }}",
    metadata: { nonSensitive: "Non-Sensitive Value" },
    search_indexes: ["{{ data }}"],
    fingerprint_expression: "{{ data }}",
  });
  const read = await vault.tokens.get(token.id);

  assert.match(token.id, UUID_V4);
  assert.equal(token.tenant_id, tenantId);
  assert.equal(token.data, "XXXXXXXXXXXalue");
  assert.deepEqual(token.metadata, { nonSensitive: "Non-Sensitive Value" });
  assert.deepEqual(token.search_indexes, ["{{ data }}"]);
  assert.equal(token.fingerprint_expression, "{{ data }}");
  assert.deepEqual(token._extras, { deduplicated: false });
  assert.equal(read.data, "Sensitive Value");
});

attempt("tokens.tokenize", "a card becomes a card", async () => {
  const token = await vault.tokens.tokenize({ ...CARD, metadata: { a: "b" } });
  const read = await vault.tokens.get(token.id);

  assert.match(token.id, UUID_V4);
  assert.equal(token.data.number, "XXXXXXXXXXXX4242");
  assert.equal(token.card.last4, "4242");
  assert.deepEqual(withoutSecurityCode(read.data), READ);
  assert.equal(cardBasics(read.card).bin, "42424242");
});

attempt("tokens.tokenize", "an array of four", async () => {
  const tokens = await vault.tokens.tokenize([
    "John",
    "Doe",
    { ...CARD, metadata: { nonSensitiveField: "Non-Sensitive Value" } },
    { type: "token", data: "Sensitive Value" },
  ]);

  assert.equal(tokens.length, 4);
  assert.match(tokens[0], UUID_V4);
  assert.match(tokens[1], UUID_V4);
  assert.match(tokens[2].id, UUID_V4);
  assert.match(tokens[3].id, UUID_V4);
  assert.equal(new Set([tokens[0], tokens[1], tokens[2].id, tokens[3].id]).size, 4);
});

attempt("tokens.tokenize", "a composite of five", async () => {
  const tokens = await vault.tokens.tokenize({
    first_name: "John",
    last_name: "Doe",
    primary_card: CARD,
    nothing: null,
    sensitive_tags: ["preferred", { type: "token", data: "vip" }],
  });

  assert.match(tokens.first_name, UUID_V4);
  assert.match(tokens.last_name, UUID_V4);
  assert.match(tokens.primary_card.id, UUID_V4);
  assert.equal(tokens.nothing, null);
  assert.equal(tokens.sensitive_tags.length, 2);
  assert.match(tokens.sensitive_tags[0], UUID_V4);
  assert.match(tokens.sensitive_tags[1].id, UUID_V4);
  assert.equal((await vault.tokens.get(tokens.sensitive_tags[1].id)).data, "vip");
});

for (const value of ["John", "", 42, -1.5, true, false]) {
  attempt("tokens.tokenize", `a value alone becomes an id: ${JSON.stringify(value)}`, async () => {
    const id = await vault.tokens.tokenize(value);

    assert.match(id, UUID_V4);
    assert.equal((await vault.tokens.get(id)).data, value);
  });
}

attempt("tokens.tokenize", "equal values are one token when deduplicated", async () => {
  const token = { type: "token", data: randomUUID(), deduplicate_token: true };

  const tokens = await vault.tokens.tokenize({ a: token, b: [token], c: { ...token } });
  const again = await vault.tokens.tokenize(token);

  assert.equal(tokens.b[0].id, tokens.a.id);
  assert.equal(tokens.c.id, tokens.a.id);
  assert.equal(again.id, tokens.a.id);
  assert.equal(again._extras.deduplicated, true);
});

attempt("tokens.tokenize", "an id of one's own, and a conflict that leaves nothing behind", async () => {
  const [id, container] = [randomUUID(), ownContainer()];
  const token = { id, type: "token", data: "x", containers: [container] };
  const first = await vault.tokens.tokenize({ mine: token });

  const again = vault.tokens.tokenize({ other: { ...token, id: randomUUID() }, mine: token });

  assert.equal(first.mine.id, id);
  await refusal(again, ConflictError, 409, "Conflict");
  assert.equal((await collect(vault.tokens.listV2({ container }))).length, 1);
});

const INVALID_DOCUMENTS = [
  ["six values", ["1", "2", "3", "4", "5", "6"], ["body"]],
  ["nothing at all", {}, ["body"]],
  ["nothing but null", [null, { a: null }], ["body"]],
  [
    "a wrong number, deep inside",
    { name: "x", cards: [{ type: "card", data: { number: "4242424242424241" } }] },
    ["cards[0].data.number"],
  ],
  [
    "two wrong elements",
    [{ type: "passport", data: "x" }, { type: "token", data: "x", containers: ["pci"] }],
    ["[0].type", "[1].containers[0]"],
  ],
];

for (const [name, document, attributes] of INVALID_DOCUMENTS) {
  attempt("tokens.tokenize", `what is invalid is named, and nothing is kept: ${name}`, async () => {
    const { body } = await refusal(vault.tokens.tokenize(document), BadRequestError, 400, INVALID);

    assert.deepEqual(Object.keys(body.errors).sort(), attributes);
  });
}

attempt("tokens.tokenize", "one invalid element leaves no token behind", async () => {
  const container = ownContainer();
  const good = { type: "token", data: "x", containers: [container] };

  await refusal(
    vault.tokens.tokenize([good, good, { ...good, expires_at: "soon" }]),
    BadRequestError,
    400,
    INVALID,
  );

  assert.deepEqual(await collect(vault.tokens.listV2({ container })), []);
});

attempt("tokens.tokenize", "an idempotency key is accepted", async () => {
  const id = await vault.tokens.tokenize("x", { idempotencyKey: randomUUID() });

  assert.match(id, UUID_V4);
});

attempt("tokens.tokenize", "a public key tokenizes, a management key does not", async () => {
  const { card } = await browser.tokens.tokenize({ card: CARD });

  assert.equal(card.data.number, "XXXXXXXXXXXX4242");
  await refusal(management.tokens.tokenize({ card: CARD }), ForbiddenError, 403, "Forbidden");
});

attempt("tokens.detokenize", "a part of a card, by its path", async () => {
  const { id } = await vault.tokens.create(CARD);

  const filled = await vault.tokens.detokenize({ card_number: `{{ ${id} | json: '$.number' }}` });

  assert.deepEqual(filled, { card_number: "4242424242424242" });
});

attempt("tokens.detokenize", "an array of cards, each with its blanks", async () => {
  const first = await vault.tokens.create(CARD);
  const number = "4111111111111111";
  const second = await vault.tokens.create({ type: "card", data: { ...READ, number } });

  const filled = await vault.tokens.detokenize({
    tokens: [`{{ ${first.id} }}`, `{{ ${second.id}  }}`, `{{${second.id}}}`],
  });

  assert.deepEqual(withoutSecurityCode(filled.tokens[0]), READ);
  assert.deepEqual(filled.tokens.slice(1), [{ ...READ, number }, { ...READ, number }]);
});

const VALUES = ["text", "", 19.95, 0, true, { Deep: [1, null] }, []];

for (const value of VALUES) {
  attempt("tokens.detokenize", `a value keeps its type: ${JSON.stringify(value)}`, async () => {
    const { id } = await vault.tokens.create({ type: "token", data: value });

    const filled = await vault.tokens.detokenize({ value: `{{ ${id} }}` });

    assert.deepEqual(filled, { value });
  });
}

attempt("tokens.detokenize", "text around it makes text, and filters apply", async () => {
  const { id } = await vault.tokens.create(CARD);

  const filled = await vault.tokens.detokenize({
    "{{ keys }}": "stay as they are",
    text: `Card {{ ${id} | json: '$.number' | last4 }} of {{ ${id} | json: '$.expiration_year' }}.`,
    month: `{{ ${id} | json: '$.expiration_month' | pad_left: 3, '0' }}`,
    others: [1, true, null, "plain", "{{ not closed"],
  });

  assert.deepEqual(filled, {
    "{{ keys }}": "stay as they are",
    text: "Card 4242 of 2025.",
    month: "012",
    others: [1, true, null, "plain", "{{ not closed"],
  });
});

attempt("tokens.detokenize", "the whole token, and what is known of it", async () => {
  const { id } = await vault.tokens.create({ ...CARD, metadata: { order: "1" } });

  const filled = await vault.tokens.detokenize({
    token: `{{ token: ${id} }}`,
    order: `{{ token: ${id} | json: '$.metadata.order' }}`,
    number: `{{token:${id} | json: '$.data.number'}}`,
  });

  const { token } = filled;
  assert.equal(token.id, id);
  assert.equal(token.tenant_id, tenantId);
  assert.equal(token.type, "card");
  assert.deepEqual(withoutSecurityCode(token.data), READ);
  assert.equal(token.enrichments.card_details.last4, "4242");
  assert.equal(filled.order, "1");
  assert.equal(filled.number, "4242424242424242");
});

attempt("tokens.detokenize", "a document that is only an expression", async () => {
  const { id } = await vault.tokens.create({ type: "token", data: { a: 1 } });

  assert.deepEqual(await vault.tokens.detokenize(`{{ ${id} }}`), { a: 1 });
  assert.deepEqual(await vault.tokens.detokenize([`{{ ${id} | json: '$.a' }}`]), [1]);
  assert.equal(await vault.tokens.detokenize("nothing to fill in"), "nothing to fill in");
  assert.equal(await vault.tokens.detokenize(7), 7);
});

attempt("tokens.detokenize", "what was tokenized comes back", async () => {
  const document = { name: "Ada", tags: ["a", true, 7], nothing: null };

  const ids = await vault.tokens.tokenize(document);
  const filled = await vault.tokens.detokenize({
    name: `{{ ${ids.name} }}`,
    tags: ids.tags.map((id) => `{{ ${id} }}`),
    nothing: null,
  });

  assert.deepEqual(filled, document);
});

attempt("tokens.detokenize", "unknown ids are named, and nothing is filled in", async () => {
  const { id } = await vault.tokens.create({ type: "token", data: "secret value" });
  const unknown = [randomUUID(), "not there"];

  const error = await refusal(
    vault.tokens.detokenize([`{{ ${id} }}`, `{{ ${unknown[0]} }}`, `{{ ${unknown[1]} }}`]),
    BadRequestError,
    400,
    "Invalid detokenize request",
  );

  assert.equal(
    error.body.detail,
    `Failed to detokenize some tokens: ${unknown.join(", ")}`,
  );
  assert.deepEqual(error.body.errors, {});
  assert.doesNotMatch(JSON.stringify(error.body), /secret value/);
});

attempt("tokens.detokenize", "five expressions are filled in, six are too many", async () => {
  const { id } = await vault.tokens.create({ type: "token", data: "x" });
  const document = (count) => Array.from({ length: count }, () => `{{ ${id} }}`);

  assert.deepEqual(await vault.tokens.detokenize(document(5)), ["x", "x", "x", "x", "x"]);
  const tooMany = vault.tokens.detokenize(document(6));
  const { body } = await refusal(tooMany, BadRequestError, 400, INVALID);
  assert.deepEqual(Object.keys(body.errors), ["body"]);
});

attempt("tokens.detokenize", "an unknown filter is named by its place", async () => {
  const { id } = await vault.tokens.create({ type: "token", data: "x" });

  const shouted = vault.tokens.detokenize({ a: { b: [`{{ ${id} | shout }}`] } });

  const { body } = await refusal(shouted, BadRequestError, 400, INVALID);
  assert.deepEqual(Object.keys(body.errors), ["a.b[0]"]);
});

attempt("tokens.detokenize", "a public key may not detokenize", async () => {
  const { id } = await browser.tokens.create({ type: "token", data: "x" });

  await refusal(browser.tokens.detokenize(`{{ ${id} }}`), ForbiddenError, 403, "Forbidden");
  await refusal(management.tokens.detokenize("x"), ForbiddenError, 403, "Forbidden");
});
