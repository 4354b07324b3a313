// The tenant itself: its name and settings, its people, who is invited, and its end.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";

import { BasisTheory, BasisTheoryError } from "@basis-theory/node-sdk";

import {
  UUID_V4,
  assertFromNow,
  attempt,
  browser,
  collect,
  eventually,
  management,
  refusal,
  spare,
  tenantId,
  vault,
} from "./vault.mjs";

const { BadRequestError, ForbiddenError, NotFoundError, UnauthorizedError } = BasisTheory;
const { UnprocessableEntityError } = BasisTheory;
const INVALID = "One or more validation errors occurred.";
const NAME = "SDK Integration Tests";
const THREE_DAYS = 72 * 3_600;

const { tenants } = management;
const ownEmail = () => `${randomUUID()}@example.com`;

attempt("tenants.self.get", "name, type and settings", async () => {
  const tenant = await tenants.self.get();

  assert.equal(tenant.id, tenantId);
  assert.equal(tenant.name, NAME);
  assert.equal(tenant.type, "test");
  assert.ok(tenant.createdAt instanceof Date);
  assert.equal(tenant.settings.deduplicate_tokens, "false");
  assert.equal(tenant.settings.fingerprint_tokens, "true");
  assert.equal(tenant.settings.token_deduplication_behavior, "read_existing");
});

attempt("tenants.self.update", "given settings change, and the others stay", async () => {
  const before = await tenants.self.get();

  const request = { name: NAME, settings: { disable_ephemeral_proxy: "true" } };
  const changed = await tenants.self.update(request);
  const kept = await tenants.self.update({ name: NAME });

  const settings = { ...before.settings, disable_ephemeral_proxy: "true" };
  assert.deepEqual(changed.settings, settings);
  assert.deepEqual(kept.settings, settings);
  assert.equal(kept.name, NAME);
  assertFromNow(kept.modifiedAt, 0);
  assert.match(kept.modifiedBy, UUID_V4);
});

const INVALID_TENANTS = [
  ["no name", { name: "" }],
  ["an unknown setting", { name: NAME, settings: { gravity: "off" } }],
  ["a setting with a wrong value", { name: NAME, settings: { deduplicate_tokens: "maybe" } }],
];

for (const [name, request] of INVALID_TENANTS) {
  attempt("tenants.self.update", `what is invalid is named: ${name}`, async () => {
    const { body } = await refusal(tenants.self.update(request), BadRequestError, 400, INVALID);

    assert.equal(Object.keys(body.errors).length, 1);
  });
}

attempt("tenants.self.delete", "a tenant is renamed, deleted, and its keys end with it", async () => {
  const renamed = await spare.tenants.self.update({ name: "About to go" });
  const read = await spare.tenants.self.get();
  const { rawResponse } = await spare.tenants.self.delete().withRawResponse();

  assert.equal(renamed.name, "About to go");
  assert.equal(read.name, "About to go");
  assert.equal(rawResponse.status, 204);
  await eventually(() =>
    refusal(spare.tenants.self.get(), UnauthorizedError, 401, "Unauthorized"),
  );
});

attempt("tenants.self.getUsageReports", "tokens are counted", async () => {
  await vault.tokens.create({ type: "bank", data: { routing_number: "021000021", account_number: "1" } });

  const report = await tenants.self.getUsageReports();

  assert.ok(report.totalTokens >= 1);
  // What the documentation has, and this version of the client does not know.
  assert.equal(report.token_report.total_tokens, report.totalTokens);
  assert.ok(report.token_report.metrics_by_type.bank.count >= 1);
});

attempt("tenants.self.*", "only for those who may", async () => {
  for (const key of [vault, browser]) {
    await refusal(key.tenants.self.get(), ForbiddenError, 403, "Forbidden");
    await refusal(key.tenants.self.update({ name: "x" }), ForbiddenError, 403, "Forbidden");
    await refusal(key.tenants.self.delete(), ForbiddenError, 403, "Forbidden");
    await refusal(key.tenants.self.getUsageReports(), ForbiddenError, 403, "Forbidden");
    await refusal(key.tenants.members.list(), ForbiddenError, 403, "Forbidden");
    await refusal(key.tenants.invitations.list(), ForbiddenError, 403, "Forbidden");
  }
});

attempt("tenants.invitations.create", "pending for three days", async () => {
  const email = ownEmail();

  const { data, rawResponse } = await tenants.invitations.create({ email }).withRawResponse();
  const read = await tenants.invitations.get(data.id);

  assert.equal(rawResponse.status, 201);
  const { id, createdBy, createdAt, expiresAt, ...rest } = data;
  assert.match(id, UUID_V4);
  assert.match(createdBy, UUID_V4);
  assertFromNow(createdAt, 0);
  assertFromNow(expiresAt, THREE_DAYS);
  assert.deepEqual(rest, { tenantId, email, role: "ADMIN", status: "PENDING" });
  assert.deepEqual(read, data);
});

attempt("tenants.invitations.create", "with another role", async () => {
  const request = { email: ownEmail(), role: "READ_ONLY" };

  const invitation = await tenants.invitations.create(request);

  assert.equal(invitation.role, "READ_ONLY");
});

for (const [name, request, attributes] of [
  ["no address", { email: "nobody" }, ["email"]],
  ["an unknown role", { email: "a@example.com", role: "KING" }, ["role"]],
]) {
  attempt("tenants.invitations.create", `what is invalid is named: ${name}`, async () => {
    const refused = tenants.invitations.create(request);
    const { body } = await refusal(refused, BadRequestError, 400, INVALID);

    assert.deepEqual(Object.keys(body.errors), attributes);
  });
}

attempt("tenants.invitations.list", "by status, page after page", async () => {
  const made = [];
  for (let n = 0; n < 3; n += 1) {
    made.push((await tenants.invitations.create({ email: ownEmail() })).id);
  }

  const pending = await collect(tenants.invitations.list({ status: "PENDING", size: 2 }));
  const expired = await collect(tenants.invitations.list({ status: "EXPIRED" }));

  const ids = pending.map((invitation) => invitation.id);
  assert.equal(new Set(ids).size, ids.length);
  assert.ok(made.every((id) => ids.includes(id)));
  assert.deepEqual(expired, []);
});

attempt("tenants.invitations.resend", "the days start again", async () => {
  const invitation = await tenants.invitations.create({ email: ownEmail() });

  const again = await tenants.invitations.resend(invitation.id);

  assert.equal(again.id, invitation.id);
  assert.equal(again.status, "PENDING");
  assert.ok(again.expiresAt >= invitation.expiresAt);
  assertFromNow(again.expiresAt, THREE_DAYS);
});

attempt("tenants.invitations.delete", "it is gone", async () => {
  const { id } = await tenants.invitations.create({ email: ownEmail() });

  await tenants.invitations.delete(id);

  await refusal(tenants.invitations.get(id), NotFoundError, 404, "Not Found");
  // The client has no class of its own for this one.
  await refusal(tenants.invitations.resend(id), BasisTheoryError, 404, "Not Found");
  await refusal(tenants.invitations.delete(id), NotFoundError, 404, "Not Found");
});

/** Someone who is not the owner. */
async function someMember() {
  const { data } = await tenants.members.list();
  return data.find((member) => member.role !== "OWNER");
}

attempt("tenants.members.list", "the people of the tenant, all or those asked for", async () => {
  const { data, pagination } = await tenants.members.list();
  const [{ user }] = data;
  const one = await tenants.members.list({ userId: user.id });

  assert.equal(pagination.totalItems, data.length);
  for (const member of data) {
    assert.match(member.id, UUID_V4);
    assert.equal(member.tenantId, tenantId);
    assert.match(member.user.email, /@/);
    assert.ok(["OWNER", "ADMIN", "READ_ONLY"].includes(member.role));
    assert.ok(member.createdDate instanceof Date);
  }
  assert.deepEqual(one.data.map((member) => member.user.id), [user.id]);
});

// These share the tenant's few members, so they come one after the other.
attempt("tenants.members.update", "another role, and in the end no member; the owner stays", async () => {
  const owner = await tenants.owner.get();
  const member = await someMember();

  const changed = await tenants.members.update(member.id, { role: "READ_ONLY" });
  const back = await tenants.members.update(member.id, { role: "ADMIN" });

  assert.equal(changed.role, "READ_ONLY");
  assert.equal(back.role, "ADMIN");
  const stays = tenants.members.delete(owner.id);
  await refusal(stays, UnprocessableEntityError, 422, "Unprocessable Entity");
  const missing = tenants.members.update(randomUUID(), { role: "ADMIN" });
  await refusal(missing, NotFoundError, 404, "Not Found");
  const unknown = tenants.members.update(member.id, { role: "KING" });
  // The client has no class of its own for this one.
  await refusal(unknown, BasisTheoryError, 400, INVALID);
});

attempt("tenants.ownerTransfer", "a member becomes the owner, and the owner a member", async () => {
  const owner = await tenants.owner.get();
  const heir = await someMember();

  const transferred = await tenants.ownerTransfer({ memberId: heir.id });
  const now = await tenants.owner.get();
  await tenants.ownerTransfer({ memberId: owner.id });

  assert.equal(owner.role, "OWNER");
  assert.equal(transferred.id, heir.id);
  assert.equal(now.id, heir.id);
  assert.equal(now.role, "OWNER");
  assert.equal((await tenants.self.get()).ownerId, owner.user.id);
  const stranger = tenants.ownerTransfer({ memberId: randomUUID() });
  await refusal(stranger, UnprocessableEntityError, 422, "Unprocessable Entity");
});

attempt("tenants.members.delete", "someone is no member any more", async () => {
  const member = await someMember();

  await tenants.members.delete(member.id);

  const { data } = await tenants.members.list();
  assert.ok(!data.some((other) => other.id === member.id));
  await refusal(tenants.members.delete(member.id), NotFoundError, 404, "Not Found");
});

attempt("tenants.securityContact.update", "an address is kept and read back", async () => {
  const email = ownEmail();

  const updated = await tenants.securityContact.update({ email });
  const read = await tenants.securityContact.get();

  assert.equal(updated.email, email);
  assert.equal(read.email, email);
  const refused = tenants.securityContact.update({ email: "nobody" });
  await refusal(refused, BadRequestError, 400, INVALID);
});
