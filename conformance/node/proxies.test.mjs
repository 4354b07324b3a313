// Pre-configured proxies: what is sent comes back, and only management keys see it.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";

import { BasisTheory, BasisTheoryError } from "@basis-theory/node-sdk";

import { UUID_V4, assertFromNow, attempt, browser, collect, management, refusal, tenantId, vault } from "./vault.mjs";

const { BadRequestError, ForbiddenError, NotFoundError } = BasisTheory;
const INVALID = "One or more validation errors occurred.";
const DESTINATION = "https://api.example.com/v1";
const MASK = { type: "mask", matcher: "regex", expression: "([0-9]{12})[0-9]{4}", replacement: "*" };

const make = (more) =>
  management.proxies.create({ name: `Conformance ${randomUUID()}`, destinationUrl: DESTINATION, ...more });

attempt("proxies.create", "the answer holds the key, and a read is the same", async () => {
  const sent = { configuration: { API_KEY: "sk_1" }, requireAuth: false, responseTransform: MASK };

  const created = await make(sent);
  const read = await management.proxies.get(created.id);

  assert.match(created.id, UUID_V4);
  assert.match(created.key, /^[A-Za-z0-9]{22,100}$/);
  assertFromNow(created.createdAt, 0);
  assert.equal(created.tenantId, tenantId);
  assert.equal(created.state, "active");
  assert.deepEqual(created.configuration, sent.configuration);
  assert.deepEqual(created.responseTransform, MASK);
  assert.equal(created.requireAuth, false);
  assert.deepEqual(read, created);
});

attempt("proxies.create", "transforms and their application", async () => {
  const application = await management.applications.create({
    name: "Transforms",
    type: "private",
    permissions: ["token:create"],
  });
  const responseTransforms = [
    { type: "tokenize", options: { identifier: "card", token: { type: "card", data: "{{ res.card }}" } } },
    {
      type: "append_json",
      options: { value: "{{ transform_identifier: 'card' | json: '$.id' }}", location: "$.card" },
    },
  ];

  const created = await make({ application: { id: application.id }, responseTransforms });

  assert.equal(created.applicationId, application.id);
  assert.deepEqual(
    created.responseTransforms.map(({ type }) => type),
    ["tokenize", "append_json"],
  );
  assert.equal(created.responseTransforms[1].options.location, "$.card");
});

attempt("proxies.create", "an invalid one is refused", async () => {
  const request = management.proxies.create({ name: "", destinationUrl: "http://10.0.0.1" });

  const { body } = await refusal(request, BadRequestError, 400, INVALID);

  assert.deepEqual(Object.keys(body.errors).sort(), ["destination_url", "name"]);
});

attempt("proxies.create", "code is not built", async () => {
  const request = management.proxies.create(
    { name: "Code", destinationUrl: DESTINATION, requestTransform: { type: "code", code: "module.exports = 1" } },
    { maxRetries: 0 },
  );

  const { body } = await refusal(request, BasisTheoryError, 501, "Not Implemented");

  assert.equal(body.code, "not_built");
});

attempt("proxies.list", "by id and by name", async () => {
  const first = await make();
  const second = await make({ name: `Wildcard ${randomUUID()}` });

  const byId = await collect(await management.proxies.list({ id: first.id }));
  const byName = await collect(await management.proxies.list({ name: "wildcard" }));

  assert.deepEqual(
    byId.map(({ id }) => id),
    [first.id],
  );
  assert.ok(byName.some(({ id }) => id === second.id));
  assert.ok(!byName.some(({ id }) => id === first.id));
});

attempt("proxies.update", "replaces all but the key", async () => {
  const proxy = await make({ configuration: { A: "1" }, requireAuth: false });

  const changed = await management.proxies.update(proxy.id, { name: "Changed", destinationUrl: DESTINATION });

  assert.equal(changed.name, "Changed");
  assert.equal(changed.configuration, undefined);
  assert.equal(changed.requireAuth, true);
  assert.equal(changed.key, proxy.key);
  assertFromNow(changed.modifiedAt, 0);
});

attempt("proxies.patch", "changes what it names", async () => {
  const proxy = await make({ configuration: { A: "1" } });

  const { rawResponse } = await management.proxies.patch(proxy.id, { name: "Patched" }).withRawResponse();
  const read = await management.proxies.get(proxy.id);

  assert.equal(rawResponse.status, 204);
  assert.equal(read.name, "Patched");
  assert.deepEqual(read.configuration, { A: "1" });
});

attempt("proxies.delete", "it is gone", async () => {
  const proxy = await make();

  const { rawResponse } = await management.proxies.delete(proxy.id).withRawResponse();

  assert.equal(rawResponse.status, 204);
  await refusal(management.proxies.get(proxy.id), NotFoundError, 404, "Not Found");
});

attempt("proxies.get", "an unknown one is not found", async () => {
  await refusal(management.proxies.get(randomUUID()), NotFoundError, 404, "Not Found");
});

attempt("proxies.*", "only management keys make and see them", async () => {
  const body = { name: "Mine", destinationUrl: DESTINATION };
  for (const key of [vault, browser]) {
    await refusal(key.proxies.create(body), ForbiddenError, 403, "Forbidden");
    await refusal(key.proxies.list(), ForbiddenError, 403, "Forbidden");
    await refusal(key.proxies.get(randomUUID()), ForbiddenError, 403, "Forbidden");
    await refusal(key.proxies.update(randomUUID(), body), ForbiddenError, 403, "Forbidden");
    await refusal(key.proxies.delete(randomUUID()), ForbiddenError, 403, "Forbidden");
  }
});
