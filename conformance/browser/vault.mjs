// The vault under test, what a merchant's server asks of it, and how an attempt is recorded.

import { readFileSync } from "node:fs";

import { BasisTheoryClient } from "@basis-theory/node-sdk";

import { attemptsOf, required } from "../attempts.mjs";

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

/** A test whose result is in the report. */
export const attempt = attemptsOf(`web-threeds ${version}`);
