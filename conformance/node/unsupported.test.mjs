// What this vault does not do: each method of it is refused with a whole problem, and all others are known.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

import { BasisTheoryClient } from "@basis-theory/node-sdk";

import { methods, note, unsupported } from "./methods.mjs";
import { NO_SUCH_PATH, attempt, baseUrl, keys, vault } from "./vault.mjs";

const NOT_SUPPORTED = [404, 410, 501];

const client = new BasisTheoryClient({ apiKey: keys.private, baseUrl });
const all = methods(client);
// What is here and what is not, for the table of all methods.
all.forEach((method) => note({ method }));

/** The client's own reference shows one call of each method. */
const package_ = createRequire(import.meta.url).resolve("@basis-theory/node-sdk/package.json");
const reference = readFileSync(new URL("reference.md", `file://${package_}`), "utf8");

function example(method) {
  const start = reference.indexOf(`await client.${method}(`);
  assert.ok(start >= 0, `the reference shows no call of ${method}`);
  const call = reference.slice(start, reference.indexOf(");\n", start) + 1);
  return new Function("client", `return (async () => ${call})()`);
}

for (const method of all.filter(unsupported)) {
  attempt(method, `is refused: ${unsupported(method)}`, async () => {
    const error = await example(method)(vault).then(
      () => assert.fail("was answered"),
      (error) => error,
    );
    assert.ok(NOT_SUPPORTED.includes(error.statusCode), `was refused with ${error}`);
    assert.equal(error.body.status, error.statusCode);
    assert.equal(typeof error.body.title, "string");
    assert.equal(error.body.detail === NO_SUCH_PATH, error.statusCode === 404);
    assert.match(error.rawResponse.headers.get("content-type"), /^application\/problem\+json/);
  });
}
