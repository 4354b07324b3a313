// Logs: who did what to what, and when.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";

import { BasisTheory } from "@basis-theory/node-sdk";

import {
  UUID_V4,
  assertFromNow,
  attempt,
  browser,
  collect,
  management,
  refusal,
  tenantId,
  vault,
} from "./vault.mjs";

const { ForbiddenError } = BasisTheory;
const HOUR_MS = 3_600_000;

const told = (logs) => logs.map(({ operation, message }) => [operation, message]);

attempt("logs.list", "a token's life is told, the newest first", async () => {
  const { id, createdBy } = await vault.tokens.create({ type: "token", data: "secret value" });
  await vault.tokens.get(id);
  await vault.tokens.update(id, { data: "another secret" });
  await vault.tokens.delete(id);

  const logs = await collect(management.logs.list({ entityType: "token", entityId: id }));

  assert.deepEqual(told(logs), [
    ["delete", "Token deleted"],
    ["update", "Token updated"],
    ["read", "Token retrieved"],
    ["create", "Token created"],
  ]);
  for (const log of logs) {
    assert.match(log.id, UUID_V4);
    assertFromNow(log.createdAt, 0);
    assert.equal(log.tenantId, tenantId);
    assert.deepEqual([log.actorType, log.actorId], ["application", createdBy]);
    assert.deepEqual([log.entityType, log.entityId], ["token", id]);
  }
  assert.doesNotMatch(JSON.stringify(logs), /secret/);
});

attempt("logs.list", "an application's life is told", async () => {
  const request = { name: "Logged", type: "private", permissions: ["token:use"] };
  const { id } = await management.applications.create(request);
  await management.applications.update(id, { ...request, name: "Renamed" });
  await management.applications.delete(id);

  const logs = await collect(management.logs.list({ entityType: "application", entityId: id }));

  assert.deepEqual(
    logs.map(({ operation }) => operation).filter((operation) => operation !== "read"),
    ["delete", "update", "create"],
  );
});

attempt("logs.list", "what failed is not told", async () => {
  const id = randomUUID();
  await assert.rejects(vault.tokens.get(id));

  const logs = await collect(management.logs.list({ entityId: id }));

  assert.deepEqual(logs, []);
});

attempt("logs.list", "pages are full, differ and end", async () => {
  const { id } = await vault.tokens.create({ type: "token", data: "x" });
  for (let n = 0; n < 4; n += 1) {
    await vault.tokens.get(id);
  }

  const page = await management.logs.list({ entityType: "token", entityId: id, size: 2 });
  const first = [...page.data];
  const all = await collect(page);

  assert.equal(first.length, 2);
  assert.equal(all.length, 5);
  assert.equal(new Set(all.map((log) => log.id)).size, 5);
});

attempt("logs.list", "between two times", async () => {
  const { id } = await vault.tokens.create({ type: "token", data: "x" });
  const [past, future] = [-HOUR_MS, HOUR_MS].map((away) => new Date(Date.now() + away));
  const count = async (dates) =>
    (await collect(management.logs.list({ entityId: id, ...dates }))).length;

  assert.equal(await count({ startDate: past, endDate: future }), 1);
  assert.equal(await count({ startDate: past }), 1);
  assert.equal(await count({ endDate: future }), 1);
  assert.equal(await count({ startDate: future }), 0);
  assert.equal(await count({ endDate: past }), 0);
});

attempt("logs.list", "tokens of one type", async () => {
  const card = await vault.tokens.create({ type: "card", data: { number: "4242424242424242" } });

  const cards = await collect(management.logs.list({ entityType: "card", entityId: card.id }));
  const banks = await collect(management.logs.list({ entityType: "bank", entityId: card.id }));

  assert.deepEqual(told(cards), [["create", "Token created"]]);
  assert.deepEqual(banks, []);
});

attempt("logs.list", "only for those who may read logs", async () => {
  await refusal(vault.logs.list(), ForbiddenError, 403, "Forbidden");
  await refusal(browser.logs.list(), ForbiddenError, 403, "Forbidden");
  await refusal(vault.logs.getEntityTypes(), ForbiddenError, 403, "Forbidden");
});

attempt("logs.getEntityTypes", "what logs are about, with names for people", async () => {
  const types = await management.logs.getEntityTypes();

  const values = types.map((type) => type.value);
  assert.ok(types.every((type) => type.displayName));
  for (const value of ["application", "bank", "card", "session", "tenant", "token", "token_intent"]) {
    assert.ok(values.includes(value), value);
  }
  const names = types.map((type) => type.displayName);
  assert.deepEqual(names, [...names].sort());
});
