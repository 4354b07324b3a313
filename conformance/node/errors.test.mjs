// Refusals: the client's own class for each status, with a whole problem as its body.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";

import { BasisTheory, BasisTheoryClient } from "@basis-theory/node-sdk";

import { attempt, baseUrl, browser, keys, management, refusal, vault } from "./vault.mjs";

const { BadRequestError, ConflictError, ForbiddenError, NotFoundError, UnauthorizedError } =
  BasisTheory;
const INVALID = "One or more validation errors occurred.";

const CARD = { number: "4242424242424242", expiration_month: 12, expiration_year: 2030 };
const card = (changes) => ({ type: "card", data: { ...CARD, ...changes } });
const token = (more) => ({ type: "token", data: "x", ...more });

const INVALID_TOKENS = [
  [
    "a card number that fails the Luhn check",
    card({ number: "4242424242424241" }),
    ["data.number"],
  ],
  ["a card number with blanks", card({ number: "4242 4242 4242 4242" }), ["data.number"]],
  ["a card without a number", { type: "card", data: { expiration_month: 1 } }, ["data.number"]],
  ["a card that is only a string", { type: "card", data: "4242424242424242" }, ["data"]],
  ["a thirteenth month", card({ expiration_month: 13 }), ["data.expiration_month"]],
  ["a year of two digits", card({ expiration_year: 30 }), ["data.expiration_year"]],
  ["a security code of letters", card({ cvc: "12a" }), ["data.cvc"]],
  [
    "three wrong fields at once",
    card({ number: "1", expiration_month: 0, cvc: "1" }),
    ["data.cvc", "data.expiration_month", "data.number"],
  ],
  ["an unknown type", { type: "passport", data: "x" }, ["type"]],
  ["no type", { data: "x" }, ["type"]],
  ["no data", { type: "token" }, ["data"]],
  ["data that is null", { type: "token", data: null }, ["data"]],
  ["an id that holds a slash", token({ id: "not/allowed" }), ["id"]],
  ["an id that is an operation", token({ id: "search" }), ["id"]],
  ["an id that is made of nothing", token({ id: "{{ data.none }}" }), ["id"]],
  ["an index of nothing", token({ searchIndexes: ["{{ data }}", "{{ data.none }}"] }), ["search_indexes[1]"]],
  ["an index of the security code", { ...card({ cvc: "123" }), searchIndexes: ["{{ data.cvc }}"] }, ["search_indexes[0]"]],
  ["eleven indexes", token({ searchIndexes: Array(11).fill("{{ data }}") }), ["search_indexes"]],
  ["a fingerprint of nothing", token({ fingerprintExpression: "{{ data.none }}" }), ["fingerprint_expression"]],
  ["two containers", token({ containers: ["/a/", "/b/"] }), ["containers"]],
  ["no container in the list", token({ containers: [] }), ["containers"]],
  ["a container without slashes", token({ containers: ["pci"] }), ["containers[0]"]],
  ["a mask with an unknown filter", token({ mask: "{{ data | shout }}" }), ["mask"]],
  ["a mask that does not close", token({ mask: "{{ data" }), ["mask"]],
  ["an expiry in the past", token({ expiresAt: "2020-01-01T00:00:00Z" }), ["expires_at"]],
  ["an expiry that is no date", token({ expiresAt: "soon" }), ["expires_at"]],
];

for (const [name, request, attributes] of INVALID_TOKENS) {
  attempt("tokens.create", `what is invalid is named: ${name}`, async () => {
    const { body } = await refusal(vault.tokens.create(request), BadRequestError, 400, INVALID);

    assert.deepEqual(Object.keys(body.errors).sort(), attributes);
    for (const messages of Object.values(body.errors)) {
      assert.ok(messages.length > 0);
      assert.ok(messages.every((message) => typeof message === "string" && message !== ""));
    }
  });
}

attempt("tokens.create", "a refused card number is not repeated in the answer", async () => {
  const request = card({ number: "4111111111111112", cvc: "98765" });

  const error = await refusal(vault.tokens.create(request), BadRequestError, 400, INVALID);

  assert.doesNotMatch(JSON.stringify(error.body), /4111111111111112|98765/);
});

attempt("tokens.create", "an id that is taken is a conflict", async () => {
  const id = randomUUID();
  await vault.tokens.create({ id, type: "token", data: "first" });

  const again = vault.tokens.create({ id, type: "token", data: "second" });

  await refusal(again, ConflictError, 409, "Conflict");
  assert.equal((await vault.tokens.get(id)).data, "first");
});

const BAD_KEYS = [
  ["an invented key", "key_test_us_pvt_11111111111111111111.11111111111111111111111111111111"],
  ["no key at all", ""],
  ["a key with a changed end", `${keys.private.slice(0, -1)}${keys.private.endsWith("0") ? 1 : 0}`],
  ["a key with more behind it", `${keys.private}0`],
];

for (const [name, apiKey] of BAD_KEYS) {
  attempt("tokens.*", `a bad key is unauthorized: ${name}`, async () => {
    const stranger = new BasisTheoryClient({ apiKey, baseUrl });
    const { id } = await vault.tokens.create(token());

    const calls = [
      stranger.tokens.create(token()),
      stranger.tokens.get(id),
      stranger.tokens.update(id, { data: "y" }),
      stranger.tokens.delete(id),
      stranger.tokens.listV2(),
      stranger.tokens.searchV2(),
      stranger.tokens.tokenize("y"),
      stranger.tokens.detokenize("y"),
    ];
    await Promise.all(
      calls.map((call) => refusal(call, UnauthorizedError, 401, "Unauthorized")),
    );
    assert.equal((await vault.tokens.get(id)).data, "x");
  });
}

attempt("tokens.get", "a public key may not read", async () => {
  const { id } = await browser.tokens.create(token());

  await refusal(browser.tokens.get(id), ForbiddenError, 403, "Forbidden");
  // Whoever may read nothing does not learn which ids exist.
  await refusal(browser.tokens.get(randomUUID()), ForbiddenError, 403, "Forbidden");
});

attempt("tokens.delete", "a public key may not delete", async () => {
  const { id } = await browser.tokens.create(token());

  await refusal(browser.tokens.delete(id), ForbiddenError, 403, "Forbidden");
  assert.equal((await vault.tokens.get(id)).data, "x");
});

attempt("tokens.create", "a management key may not create", async () => {
  await refusal(management.tokens.create(token()), ForbiddenError, 403, "Forbidden");
  // The permission is missing everywhere, so that nothing is said about the rest of the request.
  const invalid = management.tokens.create({ type: "passport" });
  await refusal(invalid, ForbiddenError, 403, "Forbidden");
});

const UNKNOWN_IDS = [
  "00000000-0000-4000-8000-000000000000",
  "not/there",
  "../tokens",
  "with blanks inside",
  "someone@example.com",
  "naïve ☃",
  "100%",
  "a+b&c=d?e#f;g",
  "x".repeat(400),
];

for (const id of UNKNOWN_IDS) {
  attempt("tokens.get", `an unknown id is not found: ${id.slice(0, 36)}`, async () => {
    await refusal(vault.tokens.get(id), NotFoundError, 404, "Not Found");
    await refusal(vault.tokens.delete(id), NotFoundError, 404, "Not Found");
  });
}
