// Lints openapi.json, compiles the types generated from it, and converts it to a Postman collection.

import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import openapiTypescript, { astToString } from "openapi-typescript";

import { operations } from "../.vitepress/reference.mjs";
import { docs } from "../.vitepress/sources.mjs";
import { collection, requestsOf } from "./postman.mjs";

const file = join(docs, "api/openapi.json");
const program = (name) => join(docs, "node_modules/.bin", name);
const quiet = { ...process.env, REDOCLY_TELEMETRY: "off", REDOCLY_SUPPRESS_UPDATE_NOTICE: "true" };

function lint() {
  const words = ["lint", file, "--config", join(docs, "openapi/redocly.yaml"), "--format", "json"];
  let output;
  try {
    output = execFileSync(program("redocly"), words, { env: quiet, stdio: ["ignore", "pipe", "ignore"], maxBuffer: 64e6 });
  } catch (error) {
    output = error.stdout;
  }
  const { totals, problems } = JSON.parse(output);
  for (const { ruleId, message, location } of problems) console.error(`${ruleId}: ${message} ${location[0]?.pointer ?? ""}`);
  if (totals.errors + totals.warnings > 0) throw new Error(`openapi.json: ${totals.errors} errors, ${totals.warnings} warnings`);
  console.log("openapi.json: 0 errors, 0 warnings (redocly lint)");
}

/** A client's use of the types: it compiles only if they describe the API. */
const use = `import type { paths, components } from "./api";
type Created = paths["/tokens"]["post"]["responses"][201]["content"]["application/json"];
export const idOf = (token: Created): string => token.id;
export const codeOf = (problem: components["schemas"]["Problem"]): string => problem.code;
`;

async function compileTypes() {
  const folder = mkdtempSync(join(tmpdir(), "openapi-types-"));
  try {
    const types = astToString(await openapiTypescript(new URL(`file://${file}`)));
    writeFileSync(join(folder, "api.ts"), types);
    writeFileSync(join(folder, "use.ts"), use);
    const words = ["--noEmit", "--strict", "--target", "es2022", "--module", "nodenext", "--moduleResolution", "nodenext", "--skipLibCheck"];
    const names = ["api.ts", "use.ts"].map((name) => join(folder, name));
    writeFileSync(join(folder, "package.json"), "{}");
    execFileSync(program("tsc"), [...words, ...names], { cwd: folder, stdio: "inherit" });
    console.log(`types: ${types.split("\n").length} lines compile (openapi-typescript, tsc --strict)`);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

async function convert() {
  const count = requestsOf(await collection()).length;
  const expected = operations().length;
  if (count !== expected) throw new Error(`the Postman collection has ${count} requests for ${expected} operations`);
  console.log(`Postman collection: ${count} requests`);
}

lint();
await compileTypes();
await convert();
