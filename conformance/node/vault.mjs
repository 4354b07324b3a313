// The vault under test: clients for each of its keys, and how an attempt is recorded.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { appendFileSync } from "node:fs";
import { createRequire } from "node:module";
import { test } from "node:test";

import { BasisTheoryClient } from "@basis-theory/node-sdk";

export const baseUrl = required("BT_API_URL");
export const tenantId = required("BT_TENANT_ID");
export const keys = {
  private: required("BT_PVT_API_KEY"),
  public: required("BT_PUB_API_KEY"),
  management: required("BT_MGT_API_KEY"),
};

/** Creates and reads everything, unmasked on reading. */
export const vault = new BasisTheoryClient({ apiKey: keys.private, baseUrl });
/** Creates only. */
export const browser = new BasisTheoryClient({ apiKey: keys.public, baseUrl });
/** Administers; has nothing to do with tokens. */
export const management = new BasisTheoryClient({ apiKey: keys.management, baseUrl });

export const UUID_V4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/** Base58 of 32 bytes. */
export const FINGERPRINT = /^[1-9A-HJ-NP-Za-km-z]{32,44}$/;

const sdk = `node ${installedVersion()}`;
const CLOCK_TOLERANCE_MS = 60_000;

/** A test that also leaves a row in the report: which method was called, and what was tried. */
export function attempt(method, tried, body) {
  test(`${method}: ${tried}`, async () => {
    let result = "FAILED";
    try {
      await body();
      result = "ok";
    } finally {
      record({ sdk, method, tried, result });
    }
  });
}

/** Checks what the vault adds to a token by itself, and returns all the rest. */
export function given(token) {
  const { id, tenantId: tenant, createdBy, createdAt, fingerprint, ...rest } = token;
  assert.match(id, UUID_V4);
  assert.equal(tenant, tenantId);
  assert.match(createdBy, UUID_V4);
  assert.ok(createdAt instanceof Date, `createdAt is ${createdAt}`);
  const age = Math.abs(Date.now() - createdAt.getTime());
  assert.ok(age < CLOCK_TOLERANCE_MS, `created ${age} ms away from now`);
  // Both or neither: a fingerprint comes with the expression that made it.
  assert.equal(fingerprint === undefined, rest.fingerprintExpression === undefined);
  assert.match(fingerprint ?? "1".repeat(32), FINGERPRINT);
  return rest;
}

/** What a card shows of itself without BIN data; brand, funding and the rest depend on that. */
export function cardBasics({ bin, last4, expirationMonth, expirationYear }) {
  return { bin, last4, expirationMonth, expirationYear };
}

/** Card data apart from its security code, which is kept for an hour at most, and as text. */
export function withoutSecurityCode(data, sent = "123") {
  const { cvc, ...rest } = data;
  assert.ok(cvc === undefined || cvc === null || cvc === String(sent), "another code than was sent");
  return rest;
}

/** A container that no other attempt uses. */
export function ownContainer() {
  return `/conformance/${randomUUID()}/`;
}

/** Everything that a pager hands out, page after page. */
export async function collect(pager) {
  const items = [];
  for await (const item of await pager) {
    items.push(item);
  }
  return items;
}

/** The error that `promise` ends with: of this very class, with a whole problem as its body. */
export async function refusal(promise, kind, statusCode, title) {
  const error = await promise.then(
    () => assert.fail(`answered, where ${kind.name} was expected`),
    (error) => error,
  );
  assert.ok(error instanceof kind, `${kind.name} was expected: ${error}`);
  assert.equal(error.statusCode, statusCode);
  assert.equal(error.body.status, statusCode);
  assert.equal(error.body.title, title);
  assert.equal(typeof error.body.detail, "string");
  assert.notEqual(error.body.detail, "");
  assert.match(error.rawResponse.headers.get("content-type"), /^application\/problem\+json/);
  assert.ok(error.rawResponse.headers.get("bt-trace-id"));
  return error;
}

function record(row) {
  const report = process.env.CONFORMANCE_REPORT;
  if (report) {
    appendFileSync(report, `${JSON.stringify(row)}\n`);
  }
}

function installedVersion() {
  return createRequire(import.meta.url)("@basis-theory/node-sdk/package.json").version;
}

function required(name) {
  const value = process.env[name];
  if (!value) {
    throw new Error(`${name} is not set: see conformance/README.md`);
  }
  return value;
}
