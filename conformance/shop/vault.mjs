// The vault of the shop, and how an attempt is recorded.

import { appendFileSync } from "node:fs";
import { test } from "node:test";

/** Output of `cloakroom dev --json --shop`: hosts, certificate, and the environment of the shop's server. */
export const shop = JSON.parse(required("SHOP"));
export const baseUrl = required("BT_API_URL");

/** A request of the operator of the vault, who sees everything, or with another key. */
export async function ask(path, { key = required("BT_PVT_API_KEY"), method = "GET", body } = {}) {
  const response = await fetch(`${baseUrl}${path}`, {
    method,
    headers: { "BT-API-KEY": key, "Content-Type": "application/json" },
    body: body && JSON.stringify(body),
  });
  const text = await response.text();
  return { status: response.status, body: text && JSON.parse(text) };
}

/** A test that also adds a row to the report: which server was used, and what was tried. */
export function attempt(server, tried, body) {
  test(`${server}: ${tried}`, async () => {
    const row = { sdk: "demo shop", method: server, tried, result: "ok" };
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
