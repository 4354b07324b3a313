// What holds for every request: where it goes, and which headers come back.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";

import { BasisTheory, BasisTheoryClient } from "@basis-theory/node-sdk";

import { UUID_V4, attempt, baseUrl, keys, refusal, vault } from "./vault.mjs";

const WAYS_TO_POINT = [
  ["baseUrl", { baseUrl }],
  ["baseUrl with a slash at its end", { baseUrl: `${baseUrl}/` }],
  ["environment", { environment: baseUrl }],
];

for (const [name, options] of WAYS_TO_POINT) {
  attempt("new BasisTheoryClient", `pointed at the vault: ${name}`, async () => {
    const client = new BasisTheoryClient({ apiKey: keys.private, ...options });

    const { id } = await client.tokens.create({ type: "token", data: "x" });
    const read = await client.tokens.get(id);

    assert.equal(read.data, "x");
  });
}

attempt("webhooks.ping", "the vault answers", async () => {
  const { data, rawResponse } = await vault.webhooks.ping().withRawResponse();

  assert.equal(data, undefined);
  assert.equal(rawResponse.status, 200);
});

attempt("tokens.create", "the answer is a 201 that says where the token is", async () => {
  const request = vault.tokens.create({ type: "token", data: "x" });

  const { data, rawResponse } = await request.withRawResponse();

  assert.equal(rawResponse.status, 201);
  assert.equal(rawResponse.headers.get("location"), `${baseUrl}/tokens/${data.id}`);
  assert.equal(rawResponse.headers.get("content-type"), "application/json; charset=utf-8");
});

attempt("tokens.*", "the correlation id of the client comes back", async () => {
  const correlationId = `order ${randomUUID()}`;
  const client = new BasisTheoryClient({ apiKey: keys.private, baseUrl, correlationId });

  const created = await client.tokens.create({ type: "token", data: "x" }).withRawResponse();
  const read = await client.tokens.get(created.data.id).withRawResponse();
  const deleted = await client.tokens.delete(created.data.id).withRawResponse();

  for (const { rawResponse } of [created, read, deleted]) {
    assert.equal(rawResponse.headers.get("bt-trace-id"), correlationId);
  }
});

attempt("tokens.*", "the correlation id of one call comes back, on errors too", async () => {
  const correlationId = randomUUID();
  const options = { correlationId };

  const created = await vault.tokens
    .create({ type: "token", data: "x" }, options)
    .withRawResponse();
  const missing = vault.tokens.get(randomUUID(), options);
  const error = await refusal(missing, BasisTheory.NotFoundError, 404, "Not Found");

  assert.equal(created.rawResponse.headers.get("bt-trace-id"), correlationId);
  assert.equal(error.rawResponse.headers.get("bt-trace-id"), correlationId);
});

attempt("tokens.get", "without a correlation id each answer has a new one", async () => {
  const { id } = await vault.tokens.create({ type: "token", data: "x" });

  const first = await vault.tokens.get(id).withRawResponse();
  const second = await vault.tokens.get(id).withRawResponse();

  const traces = [first, second].map((answer) => answer.rawResponse.headers.get("bt-trace-id"));
  assert.match(traces[0], UUID_V4);
  assert.match(traces[1], UUID_V4);
  assert.notEqual(traces[0], traces[1]);
});

attempt("tokens.get", "a correlation id that is too long is replaced", async () => {
  const { id } = await vault.tokens.create({ type: "token", data: "x" });

  const longest = await vault.tokens.get(id, { correlationId: "t".repeat(200) }).withRawResponse();
  const longer = await vault.tokens.get(id, { correlationId: "t".repeat(201) }).withRawResponse();

  assert.equal(longest.rawResponse.headers.get("bt-trace-id"), "t".repeat(200));
  assert.match(longer.rawResponse.headers.get("bt-trace-id"), UUID_V4);
});
