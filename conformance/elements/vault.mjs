// The vault under test, and how an attempt is recorded.

import { BasisTheoryClient } from "@basis-theory/node-sdk";

import { attemptsOf, required } from "../attempts.mjs";

export const baseUrl = required("BT_API_URL");
export const publicKey = required("BT_PUB_API_KEY");
/** The demo shop's address, the only one that the vault's proxy may send requests to. */
export const demoShop = JSON.parse(required("SHOP"));

export const vault = new BasisTheoryClient({ apiKey: required("BT_PVT_API_KEY"), baseUrl, maxRetries: 0 });
export const management = new BasisTheoryClient({ apiKey: required("BT_MGT_API_KEY"), baseUrl, maxRetries: 0 });

/** A test whose result is in the report. */
export const attempt = attemptsOf("web-elements 2.17.0");
