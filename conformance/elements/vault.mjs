// The vault under test, and how an attempt is recorded.

import { appendFileSync } from "node:fs";
import { test } from "node:test";

import { BasisTheoryClient } from "@basis-theory/node-sdk";

export const baseUrl = required("BT_API_URL");
export const publicKey = required("BT_PUB_API_KEY");
/** The demo shop's address, the only one that the vault's proxy may send requests to. */
export const demoShop = JSON.parse(required("SHOP"));

export const vault = new BasisTheoryClient({ apiKey: required("BT_PVT_API_KEY"), baseUrl, maxRetries: 0 });
export const management = new BasisTheoryClient({ apiKey: required("BT_MGT_API_KEY"), baseUrl, maxRetries: 0 });

/** A test that also adds a row to the report: which member was called, and what was tried. */
export function attempt(method, tried, body) {
  test(`${method}: ${tried}`, async () => {
    const row = { sdk: "web-elements 2.17.0", method, tried, result: "ok" };
    try {
      await body();
    } catch (error) {
      Object.assign(row, { result: "FAILED", why: String(error) });
      throw error;
    } finally {
      if (process.env.CONFORMANCE_REPORT) {
        appendFileSync(process.env.CONFORMANCE_REPORT, `${JSON.stringify(row)}\n`);
      }
    }
  });
}

function required(name) {
  const value = process.env[name];
  if (!value) {
    throw new Error(`${name} is not set: see conformance/README.md`);
  }
  return value;
}
