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

/** Asks more at once than the limit lets in, until somebody is refused: machines may be slow. */
async function useUp() {
  const headers = { "BT-API-KEY": limited.apiKey };
  const ask = () => fetched(`${limited.baseUrl}/tokens/${randomUUID()}`, { headers });
  for (let round = 0; round < 20; round += 1) {
    const answers = await Promise.all(Array.from({ length: LIMIT + 10 }, ask));
    const refused = answers.find(({ status }) => status === 429);
    if (refused) {
      return refused;
    }
  }
  return assert.fail("nobody is refused");
}

attempt("tokens.create", "a limit that is reached is waited for", async () => {
  const slowed = client(limited.apiKey, limited.baseUrl);
  let waited = 0;
  // On a busy machine the limit may have room again before the client asks.
  for (let round = 0; round < 5 && statuses[0] !== 429; round += 1) {
    await useUp();
    statuses.length = 0;
    const startedAt = Date.now();

    const created = await slowed.tokens.create({ type: "token", data: "one more" });

    waited = Date.now() - startedAt;
    assert.ok(created.id);
  }
  assert.deepEqual(statuses, [429, 201]);
  assert.ok(waited > 500 && waited < WINDOW_MS + 5_000, `it waited ${waited} ms`);
});

attempt("tokens.create", "a refusal says how long to wait, and what is left", async () => {
  const refused = await useUp();

  const wait = Number(refused.headers.get("retry-after"));
  assert.ok(Number.isInteger(wait) && wait >= 1 && wait <= WINDOW_MS / 1000, `${wait}`);
  assert.equal(refused.headers.get("x-ratelimit-limit"), `${LIMIT}`);
  assert.equal(refused.headers.get("x-ratelimit-remaining"), "0");
  assert.ok(refused.headers.has("x-ratelimit-reset"));
  assert.equal((await refused.json()).code, "rate_limited");

  const { rawResponse } = await client(limited.apiKey, limited.baseUrl)
    .tokens.create({ type: "token", data: "x" })
    .withRawResponse();
  assert.equal(rawResponse.headers.get("x-ratelimit-limit"), `${LIMIT}`);
  // The client would sleep until it after any answer that it retries.
  assert.ok(!rawResponse.headers.has("x-ratelimit-reset"));
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
