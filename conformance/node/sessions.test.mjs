// Sessions: a public application's key that does for minutes what a private one allows it.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";

import { BasisTheory } from "@basis-theory/node-sdk";

import {
  assertFromNow,
  attempt,
  browser,
  client,
  management,
  ownContainer,
  refusal,
  vault,
} from "./vault.mjs";

const { BadRequestError, ConflictError, ForbiddenError, NotFoundError } = BasisTheory;
const INVALID = "One or more validation errors occurred.";
const NONCE = /^[1-9A-HJ-NP-Za-km-z]{22}$/;

const reveal = (where) => ({
  description: "Show it",
  priority: 1,
  transform: "reveal",
  permissions: ["token:read"],
  ...where,
});

attempt("sessions.create", "a key of its own, a nonce, and three minutes", async () => {
  const { data, rawResponse } = await browser.sessions.create().withRawResponse();

  assert.equal(rawResponse.status, 201);
  assert.match(data.nonce, NONCE);
  assert.match(data.sessionKey, /^key_test_us_ses_/);
  assertFromNow(data.expiresAt, 180);
});

attempt("sessions.create", "only for public applications", async () => {
  await refusal(vault.sessions.create(), ForbiddenError, 403, "Forbidden");
  await refusal(management.sessions.create(), ForbiddenError, 403, "Forbidden");
});

attempt("sessions.create", "before it is authorized a session does nothing", async () => {
  const { sessionKey } = await browser.sessions.create();

  const session = client(sessionKey);

  // One after the other: a refusal that nobody awaits yet ends the whole suite.
  await refusal(session.tokens.create({ type: "token", data: "x" }), ForbiddenError, 403, "Forbidden");
  await refusal(session.tokens.get(randomUUID()), ForbiddenError, 403, "Forbidden");
});

attempt("sessions.authorize", "with permissions it does these, and no longer what its application may", async () => {
  const { sessionKey, nonce } = await browser.sessions.create();
  const card = await browser.tokens.create({ type: "card", data: { number: "4242424242424242" } });

  const answer = await vault.sessions
    .authorize({ nonce, permissions: ["token:read"] })
    .withRawResponse();
  const session = client(sessionKey);
  const read = await session.tokens.get(card.id);

  assert.equal(answer.rawResponse.status, 200);
  assert.equal(answer.data, undefined);
  assert.equal(read.data.number, "XXXXXXXXXXXX4242");
  const create = session.tokens.create({ type: "token", data: "x" });
  await refusal(create, ForbiddenError, 403, "Forbidden");
});

attempt("sessions.authorize", "with a rule for a container it sees what is in there, whole", async () => {
  const container = ownContainer();
  const inside = await browser.tokens.create({ type: "token", data: "in", containers: [container] });
  const outside = await browser.tokens.create({ type: "token", data: "out" });
  const { sessionKey, nonce } = await browser.sessions.create();

  await vault.sessions.authorize({ nonce, rules: [reveal({ container })] });
  const session = client(sessionKey);

  assert.equal((await session.tokens.get(inside.id)).data, "in");
  await refusal(session.tokens.get(outside.id), ForbiddenError, 403, "Forbidden");
});

attempt("sessions.authorize", "with a condition it sees one token", async () => {
  const one = await browser.tokens.create({ type: "token", data: "one" });
  const other = await browser.tokens.create({ type: "token", data: "other" });
  const { sessionKey, nonce } = await browser.sessions.create();

  const conditions = [{ attribute: "id", operator: "equals", value: one.id }];
  await vault.sessions.authorize({ nonce, rules: [reveal({ conditions })] });
  const session = client(sessionKey);

  assert.equal((await session.tokens.get(one.id)).data, "one");
  await refusal(session.tokens.get(other.id), ForbiddenError, 403, "Forbidden");
});

attempt("sessions.authorize", "tokens of a session belong to its application", async () => {
  const { id } = await browser.applications.getByKey();
  const { sessionKey, nonce } = await browser.sessions.create();

  await vault.sessions.authorize({ nonce, permissions: ["token:create"] });
  const token = await client(sessionKey).tokens.create({ type: "token", data: "x" });

  assert.equal(token.createdBy, id);
});

attempt("sessions.authorize", "a nonce is good for once", async () => {
  const { nonce } = await browser.sessions.create();
  const request = { nonce, permissions: ["token:read"] };

  await vault.sessions.authorize(request);
  const again = vault.sessions.authorize(request, { maxRetries: 0 });

  await refusal(again, ConflictError, 409, "Conflict");
});

attempt("sessions.authorize", "an unknown nonce is not found", async () => {
  const request = { nonce: "1".repeat(22), permissions: ["token:read"] };

  await refusal(vault.sessions.authorize(request), NotFoundError, 404, "Not Found");
});

attempt("sessions.authorize", "only by private applications", async () => {
  const { nonce } = await browser.sessions.create();
  const request = { nonce, permissions: ["token:read"] };

  await refusal(browser.sessions.authorize(request), ForbiddenError, 403, "Forbidden");
  await refusal(management.sessions.authorize(request), ForbiddenError, 403, "Forbidden");
});

const INVALID_GRANTS = [
  ["nothing granted", {}, ["permissions"]],
  ["an unknown permission", { permissions: ["token:juggle"] }, ["permissions"]],
  ["an end that has passed", { permissions: ["token:read"], expiresAt: "2020-01-01" }, ["expires_at"]],
  ["an end in the far future", { permissions: ["token:read"], expiresAt: "2030-01-01" }, ["expires_at"]],
  [
    "a rule with a container and conditions",
    {
      rules: [
        reveal({
          container: "/",
          conditions: [{ attribute: "id", operator: "equals", value: "x" }],
        }),
      ],
    },
    null,
  ],
];

for (const [name, grants, attributes] of INVALID_GRANTS) {
  attempt("sessions.authorize", `what is invalid is named: ${name}`, async () => {
    const { nonce } = await browser.sessions.create();

    const refused = vault.sessions.authorize({ nonce, ...grants });
    const { body } = await refusal(refused, BadRequestError, 400, INVALID);

    assert.ok(Object.keys(body.errors).length > 0);
    if (attributes) {
      assert.deepEqual(Object.keys(body.errors), attributes);
    }
    // What was refused has not used up the nonce.
    await vault.sessions.authorize({ nonce, permissions: ["token:read"] });
  });
}
