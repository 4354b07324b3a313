// What the client does by itself when it is told to wait, and what it leaves to its caller.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";

import { attempt, client, limited, vault } from "./vault.mjs";

const LIMIT = 50;
const WINDOW_MS = 10_000;
// Enough that the first of several requests takes a while.
const LARGE = "x".repeat(300_000);

// Every answer that reaches the client, also those that it does not tell about.
const statuses = [];
const fetched = globalThis.fetch;
globalThis.fetch = async (...request) => {
  const response = await fetched(...request);
  statuses.push(response.status);
  return response;
};

attempt("tokens.create", "a limit that is reached is waited for", async () => {
  const slowed = client(limited.apiKey, limited.baseUrl);
  const used = Array.from({ length: LIMIT }, () => slowed.tokens.create({ type: "token", data: "x" }));
  await Promise.all(used);
  statuses.length = 0;
  const startedAt = Date.now();

  const created = await slowed.tokens.create({ type: "token", data: "one more" });

  const waited = Date.now() - startedAt;
  assert.ok(created.id);
  assert.deepEqual(statuses, [429, 201]);
  assert.ok(waited > 500 && waited < WINDOW_MS + 2_000, `it waited ${waited} ms`);
});

attempt("tokens.create", "a refusal says how long to wait, and what is left", async () => {
  const request = {
    method: "POST",
    headers: { "BT-API-KEY": limited.apiKey, "Content-Type": "application/json" },
    body: JSON.stringify({ type: "token", data: "x" }),
  };
  let response;
  do {
    response = await fetched(`${limited.baseUrl}/tokens`, request);
    const { headers, status } = response;
    assert.equal(headers.get("x-ratelimit-limit"), `${LIMIT}`);
    // The client would sleep until it after any answer that it retries.
    assert.equal(headers.has("x-ratelimit-reset"), status === 429);
  } while (response.status === 201);

  const wait = Number(response.headers.get("retry-after"));
  assert.equal(response.status, 429);
  assert.ok(Number.isInteger(wait) && wait >= 1 && wait <= WINDOW_MS / 1000, `${wait}`);
  assert.equal((await response.json()).code, "rate_limited");
});

attempt("tokens.create", "of many with one idempotency key one is made, and conflicts are told", async () => {
  const conflicts = [];
  for (let round = 0; round < 5 && conflicts.length === 0; round += 1) {
    const options = { idempotencyKey: randomUUID() };
    const create = () => vault.tokens.create({ type: "token", data: LARGE }, options);
    const settled = await Promise.allSettled(Array.from({ length: 20 }, create));

    const ids = settled.filter(({ value }) => value).map(({ value }) => value.id);
    const refused = settled.filter(({ reason }) => reason).map(({ reason }) => reason);
    assert.equal(new Set(ids).size, 1);
    assert.ok(refused.every(({ statusCode }) => statusCode === 409));
    conflicts.push(...refused);

    // The client does not try again after a 409. Its caller gets the answer by doing so.
    assert.equal((await create()).id, ids[0]);
  }
  assert.ok(conflicts.length > 0, "no request met another one");
});
