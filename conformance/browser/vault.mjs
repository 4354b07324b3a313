// The vault under test, what a merchant's server asks of it, and how an attempt is recorded.

import { appendFileSync, readFileSync } from "node:fs";
import { test } from "node:test";

import { BasisTheoryClient } from "@basis-theory/node-sdk";

export const baseUrl = required("BT_API_URL");
export const publicKey = required("BT_PUB_API_KEY");

/** The key of a merchant's server. Nothing is tried twice: an answer is taken as it is. */
export const vault = new BasisTheoryClient({
  apiKey: required("BT_PVT_API_KEY"),
  baseUrl,
  maxRetries: 0,
});

/** Calls a route that the official package does not have. */
export async function call(method, path, body, kind = "private") {
  const key = required(kind === "management" ? "BT_MGT_API_KEY" : "BT_PVT_API_KEY");
  const headers = { "BT-API-KEY": key, "Content-Type": "application/json" };
  const response = await fetch(baseUrl + path, { method, headers, body: body && JSON.stringify(body) });
  const text = await response.text();
  if (!response.ok) {
    throw new Error(`${method} ${path} returned ${response.status}: ${text}`);
  }
  return text ? JSON.parse(text) : undefined;
}

const installed = new URL("node_modules/@basis-theory/web-threeds/", import.meta.url);
const { version } = JSON.parse(readFileSync(new URL("package.json", installed), "utf8"));
/** The browser package as its registry delivers it, for a page without a bundler. */
export const browserPackage = readFileSync(new URL("dist/bundle/index.js", installed));

/** A test that also leaves a row in the report: which method was called, and what was tried. */
export function attempt(method, tried, body) {
  test(`${method}: ${tried}`, async () => {
    const row = { sdk: `web-threeds ${version}`, method, tried, result: "ok" };
    try {
      await body();
    } catch (error) {
      Object.assign(row, { result: "FAILED", why: String(error) });
      throw error;
    } finally {
      record(row);
    }
  });
}

function record(row) {
  const report = process.env.CONFORMANCE_REPORT;
  if (report) {
    appendFileSync(report, `${JSON.stringify(row)}\n`);
  }
}

function required(name) {
  const value = process.env[name];
  if (!value) {
    throw new Error(`${name} is not set: see conformance/README.md`);
  }
  return value;
}
