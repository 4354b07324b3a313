// Webhooks: created, read, replaced and deleted by management keys. A tenant has five at most, so each test deletes its own.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";

import { BasisTheory } from "@basis-theory/node-sdk";

import { UUID_V4, attempt, browser, management, refusal, vault } from "./vault.mjs";

const { BadRequestError, ForbiddenError, NotFoundError } = BasisTheory;
const INVALID = "One or more validation errors occurred.";
const WEBHOOK = {
  name: "Ledger",
  url: "https://ledger.example.com/hooks",
  events: ["token.created", "token.deleted"],
};

attempt("webhooks.create", "enabled, and found by its id and in the list", async () => {
  const { data: created, rawResponse } = await management.webhooks.create(WEBHOOK).withRawResponse();
  try {
    const read = await management.webhooks.get(created.id);
    const listed = await management.webhooks.list();

    assert.equal(rawResponse.status, 201);
    assert.match(created.id, UUID_V4);
    assert.equal(created.status, "enabled");
    assert.equal(created.url, WEBHOOK.url);
    assert.deepEqual(created.events, WEBHOOK.events);
    assert.deepEqual([read.id, read.name, read.url], [created.id, created.name, created.url]);
    assert.ok(listed.data.some((webhook) => webhook.id === created.id));
  } finally {
    await management.webhooks.delete(created.id);
  }
});

attempt("webhooks.get", "an unknown one is not found", async () => {
  await refusal(management.webhooks.get(randomUUID()), NotFoundError, 404, "Not Found");
});

attempt("webhooks.list", "pages as the client expects", async () => {
  const listed = await management.webhooks.list();

  assert.ok(Array.isArray(listed.data));
});

attempt("webhooks.update", "replaces everything", async () => {
  const created = await management.webhooks.create(WEBHOOK);
  try {
    const change = { name: "Books", url: "https://books.example.com/", events: ["token.updated"] };
    const updated = await management.webhooks.update(created.id, change);

    assert.deepEqual([updated.name, updated.url, updated.events], [change.name, change.url, change.events]);
    assert.equal(updated.status, "enabled");
  } finally {
    await management.webhooks.delete(created.id);
  }
});

attempt("webhooks.delete", "it is gone", async () => {
  const created = await management.webhooks.create(WEBHOOK);

  const { rawResponse } = await management.webhooks.delete(created.id).withRawResponse();

  assert.equal(rawResponse.status, 204);
  await refusal(management.webhooks.get(created.id), NotFoundError, 404, "Not Found");
});

attempt("webhooks.events.list", "names of event types", async () => {
  const types = await management.webhooks.events.list();

  for (const type of ["token.created", "token.deleted", "3ds.session.authenticated", "application.key.created"]) {
    assert.ok(types.includes(type), type);
  }
});

attempt("webhooks.create", "the spelling of the client's samples is rejected by name", async () => {
  const request = management.webhooks.create({ ...WEBHOOK, events: ["token:created"] });

  const { body } = await refusal(request, BadRequestError, 400, INVALID);

  assert.deepEqual(Object.keys(body.errors), ["events[0]"]);
});

attempt("webhooks.*", "only management keys see and change them", async () => {
  for (const key of [vault, browser]) {
    await refusal(key.webhooks.create(WEBHOOK), ForbiddenError, 403, "Forbidden");
    await refusal(key.webhooks.list(), ForbiddenError, 403, "Forbidden");
    await refusal(key.webhooks.get(randomUUID()), ForbiddenError, 403, "Forbidden");
    await refusal(key.webhooks.events.list(), ForbiddenError, 403, "Forbidden");
  }
});
