// How tests of the JavaScript suites are recorded, and where they find the vault.

import { appendFileSync } from "node:fs";
import { test } from "node:test";

/** Returns a function for tests that also adds a row to the report: which member was called, and what was tried. */
export function attemptsOf(sdk) {
  return (method, tried, body) => {
    test(`${method}: ${tried}`, async () => {
      const row = { sdk, method, tried, result: "ok" };
      try {
        await repeatAfterTimeout(body);
      } catch (error) {
        Object.assign(row, { result: "FAILED", why: String(error) });
        throw error;
      } finally {
        record(row);
      }
    });
  };
}

/** A browser on a busy machine misses its time now and then. A response that is wrong once is wrong: assertions are not repeated. */
async function repeatAfterTimeout(body) {
  try {
    await body();
  } catch (error) {
    if (error.name !== "TimeoutError") {
      throw error;
    }
    console.log(`again after ${error}`);
    await body();
  }
}

function record(row) {
  const report = process.env.CONFORMANCE_REPORT;
  if (report) {
    appendFileSync(report, `${JSON.stringify(row)}\n`);
  }
}

/** An environment variable that the runner sets. */
export function required(name) {
  const value = process.env[name];
  if (!value) {
    throw new Error(`${name} is not set: see conformance/README.md`);
  }
  return value;
}
