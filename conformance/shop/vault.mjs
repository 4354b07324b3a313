// The vault of the shop, and how an attempt is recorded.

import { attemptsOf, required } from "../attempts.mjs";

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

/** A test whose result is in the report. */
export const attempt = attemptsOf("demo shop");
