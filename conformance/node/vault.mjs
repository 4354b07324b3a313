// The vault under test: clients for each of its keys, and how an attempt is recorded.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { setTimeout } from "node:timers/promises";

import { BasisTheoryClient } from "@basis-theory/node-sdk";

import { attemptsOf, required } from "../attempts.mjs";
import { noted, sdk } from "./methods.mjs";

export const baseUrl = required("BT_API_URL");
export const tenantId = required("BT_TENANT_ID");
export const keys = {
  private: required("BT_PVT_API_KEY"),
  public: required("BT_PUB_API_KEY"),
  management: required("BT_MGT_API_KEY"),
};

/** Creates and reads everything, unmasked on reading. */
export const vault = client(keys.private);
/** Creates only. */
export const browser = client(keys.public);
/** Administers; has nothing to do with tokens. */
export const management = client(keys.management);
/** Administers another tenant, in another vault, that nobody needs: it may be deleted. */
export const spare = client(required("BT_SPARE_MGT_API_KEY"), required("BT_SPARE_API_URL"));

/** A vault that limits the rate of requests: 50 in 10 seconds. */
export const limited = {
  baseUrl: required("BT_LIMITED_API_URL"),
  apiKey: required("BT_LIMITED_PVT_API_KEY"),
};

/** A client for a key, whose calls count as tried. */
export function client(apiKey, url = baseUrl) {
  return noted(new BasisTheoryClient({ apiKey, baseUrl: url }));
}

export const UUID_V4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/** Base58 of 32 bytes. */
export const FINGERPRINT = /^[1-9A-HJ-NP-Za-km-z]{32,44}$/;

/** What the vault says about an operation that it does not know at all. */
export const NO_SUCH_PATH = "There is no such path.";

const CLOCK_TOLERANCE_MS = 60_000;
const CACHE_TOLERANCE_MS = 8_000;

/** A test whose result is in the report. */
export const attempt = attemptsOf(sdk);

/** That a time is about `seconds` from now. */
export function assertFromNow(time, seconds) {
  assert.ok(time instanceof Date, `the time is ${time}`);
  const away = Math.abs(Date.now() + seconds * 1000 - time.getTime());
  assert.ok(away < CLOCK_TOLERANCE_MS, `${time.toISOString()} is ${away} ms away from that`);
}

/** Checks what the vault adds to a token by itself, and returns all the rest. */
export function given(token) {
  const { id, tenantId: tenant, createdBy, createdAt, fingerprint, ...rest } = token;
  assert.match(id, UUID_V4);
  assert.equal(tenant, tenantId);
  assert.match(createdBy, UUID_V4);
  assertFromNow(createdAt, 0);
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

/** What `ask` says once it no longer fails: a node remembers a key's rights for a few seconds. */
export async function eventually(ask) {
  const deadline = Date.now() + CACHE_TOLERANCE_MS;
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      if (Date.now() > deadline) {
        throw error;
      }
      await setTimeout(250);
    }
  }
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
  assert.notEqual(error.body.detail, NO_SUCH_PATH, "nobody is there to refuse it");
  assert.match(error.rawResponse.headers.get("content-type"), /^application\/problem\+json/);
  assert.ok(error.rawResponse.headers.get("bt-trace-id"));
  return error;
}
