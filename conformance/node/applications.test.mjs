// Applications and their keys: what may be granted to them, and what their keys can then do.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";

import { BasisTheory, BasisTheoryError } from "@basis-theory/node-sdk";

import {
  UUID_V4,
  assertFromNow,
  attempt,
  browser,
  client,
  collect,
  eventually,
  management,
  refusal,
  tenantId,
  vault,
} from "./vault.mjs";

const {
  BadRequestError,
  ForbiddenError,
  NotFoundError,
  UnauthorizedError,
  UnprocessableEntityError,
} = BasisTheory;
const INVALID = "One or more validation errors occurred.";
const PRIVATE_KEY = /^key_test_us_pvt_[1-9A-HJ-NP-Za-km-z]{20,22}\.[0-9a-f]{32}$/;

const RULE = {
  description: "Read cards",
  priority: 1,
  container: "/pci/",
  transform: "mask",
  permissions: ["token:read", "token:search"],
};

const make = (more) =>
  management.applications.create({
    name: `Conformance ${randomUUID()}`,
    type: "private",
    permissions: ["token:create"],
    ...more,
  });

attempt("applications.create", "the answer holds the grants, and the key this once", async () => {
  const created = await make({ permissions: ["token:create", "token:read"], rules: [RULE] });
  const read = await management.applications.get(created.id);

  const { id, key, keys, createdAt, createdBy, ...rest } = created;
  assert.match(id, UUID_V4);
  assert.match(key, PRIVATE_KEY);
  assert.match(createdBy, UUID_V4);
  assertFromNow(createdAt, 0);
  assert.deepEqual(rest, {
    tenantId,
    name: read.name,
    type: "private",
    permissions: ["token:create", "token:read"],
    rules: [RULE],
  });
  assert.equal(keys.length, 1);
  assert.equal(keys[0].key, key);
  const { key: secret, keys: keysRead, ...restRead } = read;
  assert.equal(secret, undefined);
  assert.deepEqual(keysRead.map((one) => [one.id, one.key]), [[keys[0].id, undefined]]);
  assert.deepEqual(restRead, { id, createdAt, createdBy, ...rest });
});

attempt("applications.create", "the key does what the application may, and no more", async () => {
  const { id, key } = await make({ rules: [RULE] });
  const made = client(key);

  const card = await made.tokens.create({ type: "card", data: { number: "4242424242424242" } });
  const read = await made.tokens.get(card.id);
  const other = await made.tokens.create({ type: "token", data: "x" });

  assert.equal(card.createdBy, id);
  assert.equal(read.data.number, "XXXXXXXXXXXX4242");
  await refusal(made.tokens.get(other.id), ForbiddenError, 403, "Forbidden");
  await refusal(made.tokens.delete(card.id), ForbiddenError, 403, "Forbidden");
});

attempt("applications.create", "the answer is a 201 that says where the application is", async () => {
  const request = { name: "Located", type: "public", permissions: ["token:create"] };

  const { data, rawResponse } = await management.applications.create(request).withRawResponse();

  assert.equal(rawResponse.status, 201);
  assert.ok(rawResponse.headers.get("location").endsWith(`/applications/${data.id}`));
});

attempt("applications.create", "without a key there is none", async () => {
  const created = await make({ createKey: false });

  assert.equal(created.key, undefined);
  assert.deepEqual(created.keys ?? [], []);
  assert.deepEqual(await management.applicationKeys.list(created.id), []);
});

for (const [type, permission, mark] of [
  ["private", "token:read", "pvt"],
  ["public", "token:create", "pub"],
  ["management", "application:read", "mgt"],
]) {
  attempt("applications.create", `the key tells its type: ${type}`, async () => {
    const { key } = await make({ type, permissions: [permission] });

    assert.ok(key.startsWith(`key_test_us_${mark}_`));
  });
}

const INVALID_APPLICATIONS = [
  ["no name", { name: "" }, ["name"]],
  ["an unknown type", { type: "expiring" }, ["type"]],
  ["an unknown permission", { permissions: ["token:juggle"] }, ["permissions"]],
  ["a permission of a retired kind", { permissions: ["token:pci:read:high"] }, ["permissions"]],
  ["a permission of another type", { permissions: ["application:read"] }, ["permissions"]],
  ["neither permissions nor rules", { permissions: [] }, ["permissions"]],
  ["a rule without slashes", { rules: [{ ...RULE, container: "pci" }] }, ["rules[0].container"]],
  ["a rule with an unknown transform", { rules: [{ ...RULE, transform: "blur" }] }, ["rules[0].transform"]],
  ["a rule that grants nothing", { rules: [{ ...RULE, permissions: [] }] }, ["rules[0].permissions"]],
  ["a rule of priority zero", { rules: [{ ...RULE, priority: 0 }] }, ["rules[0].priority"]],
  ["two rules of one priority", { rules: [RULE, RULE] }, ["rules[1].priority"]],
  [
    "a management application with rules",
    { type: "management", permissions: ["application:read"], rules: [RULE] },
    ["rules"],
  ],
];

for (const [name, more, attributes] of INVALID_APPLICATIONS) {
  attempt("applications.create", `what is invalid is named: ${name}`, async () => {
    const { body } = await refusal(make(more), BadRequestError, 400, INVALID);

    assert.deepEqual(Object.keys(body.errors), attributes);
  });
}

attempt("applications.list", "the newest comes first, and pages end", async () => {
  const first = await make();
  const second = await make();
  const third = await make();
  const made = [third, second, first].map((one) => one.id);

  const all = (await collect(management.applications.list({ size: 2 }))).map((one) => one.id);

  assert.equal(new Set(all).size, all.length);
  assert.deepEqual(all.filter((id) => made.includes(id)), made);
});

attempt("applications.list", "by id and by type", async () => {
  const open = await make({ type: "public" });
  const closed = await make();
  const id = [open.id, closed.id];

  const both = await collect(management.applications.list({ id }));
  const one = await collect(management.applications.list({ id, type: "public" }));
  const page = await management.applications.list({ id, size: 1 });

  assert.deepEqual(both.map((found) => found.id), [closed.id, open.id]);
  assert.deepEqual(one.map((found) => found.id), [open.id]);
  assert.deepEqual(page.response.pagination, {
    totalItems: 2,
    pageNumber: 1,
    pageSize: 1,
    totalPages: 2,
  });
});

attempt("applications.get", "an unknown application is not found", async () => {
  const missing = management.applications.get(randomUUID());

  await refusal(missing, NotFoundError, 404, "Not Found");
});

attempt("applications.getByKey", "every key finds its own application", async () => {
  const { id, key, name } = await make();

  const own = await client(key).applications.getByKey();
  const types = await Promise.all(
    [vault, browser, management].map((one) => one.applications.getByKey()),
  );

  assert.equal(own.id, id);
  assert.equal(own.name, name);
  assert.equal(own.key, undefined);
  assert.deepEqual(types.map((one) => one.type), ["private", "public", "management"]);
});

attempt("applications.update", "name and grants are replaced, and the key follows", async () => {
  const { id, key, createdAt } = await make({ rules: [RULE] });
  const made = client(key);
  const token = await made.tokens.create({ type: "token", data: "x" });
  await refusal(made.tokens.get(token.id), ForbiddenError, 403, "Forbidden");

  const change = { name: "Renamed", permissions: ["token:read", "token:delete"] };
  const updated = await management.applications.update(id, change);

  assert.equal(updated.id, id);
  assert.equal(updated.name, "Renamed");
  assert.equal(updated.type, "private");
  assert.deepEqual(updated.permissions, ["token:read", "token:delete"]);
  assert.deepEqual(updated.rules ?? [], []);
  assert.deepEqual(updated.createdAt, createdAt);
  assertFromNow(updated.modifiedAt, 0);
  assert.match(updated.modifiedBy, UUID_V4);
  assert.equal((await eventually(() => made.tokens.get(token.id))).id, token.id);
  const denied = () => made.tokens.create({ type: "token", data: "x" });
  await eventually(() => refusal(denied(), ForbiddenError, 403, "Forbidden"));
});

attempt("applications.update", "what is invalid is named, and changes nothing", async () => {
  const { id, name } = await make();

  const refused = management.applications.update(id, { name: "x", permissions: ["log:read"] });
  const { body } = await refusal(refused, BadRequestError, 400, INVALID);

  assert.deepEqual(Object.keys(body.errors), ["permissions"]);
  assert.equal((await management.applications.get(id)).name, name);
  const missing = management.applications.update(randomUUID(), { name: "x", permissions: ["token:use"] });
  await refusal(missing, NotFoundError, 404, "Not Found");
});

attempt("applications.delete", "its keys end with it, and its tokens stay", async () => {
  const { id, key } = await make();
  const made = client(key);
  const token = await made.tokens.create({ type: "token", data: "kept" });

  await management.applications.delete(id);

  const gone = management.applications.get(id);
  await refusal(gone, NotFoundError, 404, "Not Found");
  await eventually(() =>
    refusal(made.applications.getByKey(), UnauthorizedError, 401, "Unauthorized"),
  );
  assert.equal((await vault.tokens.get(token.id)).data, "kept");
  await refusal(management.applications.delete(id), NotFoundError, 404, "Not Found");
});

attempt("applications.*", "only management keys administer", async () => {
  const { id } = await make();

  for (const key of [vault, browser]) {
    await refusal(key.applications.get(id), ForbiddenError, 403, "Forbidden");
    await refusal(key.applications.list(), ForbiddenError, 403, "Forbidden");
    await refusal(key.applications.delete(id), ForbiddenError, 403, "Forbidden");
    const made = key.applications.create({ name: "x", type: "private", permissions: ["token:use"] });
    await refusal(made, ForbiddenError, 403, "Forbidden");
    await refusal(key.applicationKeys.create(id), ForbiddenError, 403, "Forbidden");
  }
});

attempt("applicationKeys.create", "a second key works beside the first, and is shown this once", async () => {
  const { id, key, keys } = await make();

  const second = await management.applicationKeys.create(id);
  const read = await management.applicationKeys.get(id, second.id);

  assert.match(second.id, UUID_V4);
  assert.match(second.key, PRIVATE_KEY);
  assert.notEqual(second.key, key);
  assert.equal(second.version, "2");
  assertFromNow(second.createdAt, 0);
  assert.equal(read.id, second.id);
  assert.equal(read.key, undefined);
  for (const one of [key, second.key]) {
    assert.equal((await client(one).applications.getByKey()).id, id);
  }
  const listed = (await management.applications.get(id)).keys.map((one) => one.id).sort();
  assert.deepEqual(listed, [keys[0].id, second.id].sort());
});

attempt("applicationKeys.create", "there are three at most", async () => {
  const { id } = await make();
  await management.applicationKeys.create(id);
  await management.applicationKeys.create(id);

  const fourth = management.applicationKeys.create(id);

  await refusal(fourth, UnprocessableEntityError, 422, "Unprocessable Entity");
  assert.equal((await management.applicationKeys.list(id)).length, 3);
});

attempt("applicationKeys.list", "all, or those asked for, without the secrets", async () => {
  const { id, keys } = await make();
  const second = await management.applicationKeys.create(id);

  const all = await management.applicationKeys.list(id);
  const one = await management.applicationKeys.list(id, { id: second.id });

  assert.ok(Array.isArray(all));
  assert.deepEqual(all.map((key) => key.id).sort(), [keys[0].id, second.id].sort());
  assert.ok(all.every((key) => key.key === undefined));
  assert.deepEqual(one.map((key) => key.id), [second.id]);
});

attempt("applicationKeys.delete", "that key ends, and the others go on", async () => {
  const { id, key, keys } = await make();
  const second = await management.applicationKeys.create(id);

  await management.applicationKeys.delete(id, keys[0].id);

  const gone = management.applicationKeys.get(id, keys[0].id);
  await refusal(gone, NotFoundError, 404, "Not Found");
  await eventually(() =>
    refusal(client(key).applications.getByKey(), UnauthorizedError, 401, "Unauthorized"),
  );
  assert.equal((await client(second.key).applications.getByKey()).id, id);
});

attempt("applicationKeys.*", "keys of an unknown application are not found", async () => {
  const id = randomUUID();

  // The client has no class of its own for this one.
  await refusal(management.applicationKeys.create(id), BasisTheoryError, 404, "Not Found");
  await refusal(management.applicationKeys.list(id), NotFoundError, 404, "Not Found");
  await refusal(management.applicationKeys.get(id, id), NotFoundError, 404, "Not Found");
  await refusal(management.applicationKeys.delete(id, id), NotFoundError, 404, "Not Found");
});

attempt("permissions.list", "all of them, and those of one type", async () => {
  const all = await management.permissions.list();
  const open = await browser.permissions.list({ applicationType: "public" });

  const create = all.find((permission) => permission.type === "token:create");
  assert.deepEqual([...create.applicationTypes].sort(), ["private", "public"]);
  assert.ok(create.description);
  assert.ok(all.some((permission) => permission.type === "application:create"));
  assert.ok(open.every((permission) => permission.applicationTypes.includes("public")));
  assert.ok(open.some((permission) => permission.type === "token:create"));
  assert.ok(!open.some((permission) => permission.type === "token:read"));
});

attempt("permissions.list", "an unknown type is refused", async () => {
  const refused = vault.permissions.list({ applicationType: "expiring" });
  const { body } = await refusal(refused, BadRequestError, 400, INVALID);

  assert.deepEqual(Object.keys(body.errors), ["application_type"]);
});

attempt("roles.list", "the three roles of members", async () => {
  const roles = await management.roles.list();

  assert.deepEqual(roles.map((role) => role.name).sort(), ["ADMIN", "OWNER", "READ_ONLY"]);
});

attempt("applicationTemplates.list", "the ten published ones", async () => {
  const templates = await management.applicationTemplates.list();

  const names = templates.map((template) => template.name);
  assert.equal(templates.length, 10);
  assert.ok(names.includes("Collect PCI Data"));
  assert.ok(names.includes("Full Management Access"));
});

attempt("applicationTemplates.get", "one of them, which makes an application", async () => {
  const id = "db9148c1-a55f-4164-b830-a20ab6d720ae";

  const template = await management.applicationTemplates.get(id);
  const { applicationType: type, permissions, rules } = template;
  const { key } = await management.applications.create({ name: "From a template", type, permissions, rules });
  const card = await client(key).tokens.create({ type: "card", data: { number: "4242424242424242" } });

  assert.equal(template.name, "Collect PCI Data");
  assert.equal(template.templateType, "payments");
  assert.equal(template.isStarter, false);
  assert.equal(rules[0].container, "/pci/");
  assert.equal(card.data.number, "XXXXXXXXXXXX4242");
  const missing = management.applicationTemplates.get(randomUUID());
  await refusal(missing, NotFoundError, 404, "Not Found");
});
