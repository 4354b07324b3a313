// Executes the samples of the API reference, and records or compares the responses.

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { operations, samples } from "../.vitepress/reference.mjs";
import { docs } from "../.vitepress/sources.mjs";
import { executeProblems } from "./problems.mjs";
import { add, emptyResult } from "./result.mjs";
import { ClientRunner, CurlRunner } from "./runners.mjs";
import { browserOnly, steps } from "./scenario.mjs";
import { Vault } from "./vault.mjs";

const file = join(docs, "api/responses.json");
/** The member of a sample that has its text, by language. */
const textOf = { curl: "command", node: "node", python: "python" };

/** Values in a recorded response that are different in every run, by the name of the member. */
const made = {
  uuid: /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/,
  time: /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}/,
};
const secretNames = ["key", "secret", "nonce", "session_key", "public_key_pem", "publicKeyPEM"];
const recordedItems = 2;

/** A response as the documentation shows it: long lists are shortened, secrets are replaced. */
function shorten(value, name = "") {
  if (Array.isArray(value)) return value.slice(0, recordedItems).map((item) => shorten(item, name));
  if (value && typeof value === "object") {
    return Object.fromEntries(Object.entries(value).map(([member, inner]) => [member, shorten(inner, member)]));
  }
  if (typeof value !== "string") return value;
  if (/^key_(test|prod)_us_/.test(value)) return `${value.slice(0, 16)}...`;
  if (secretNames.includes(name)) return value.length > 24 ? `${value.slice(0, 12)}...` : value;
  // Hosted pages have a secret at the end of their URL.
  return value.replace(/http:\/\/127\.0\.0\.1:\d+/g, "http://127.0.0.1:8080").replace(/(\/checkout\/\w{4})[\w-]+$/, "$1...");
}

/** The start of a page or a style sheet. */
const startOf = (text) => (text.length > 200 ? `${text.slice(0, 200)}...` : text);

/** The shape of a response: names and types, without values that differ between runs. */
function shapeOf(value) {
  if (Array.isArray(value)) return value.length ? [shapeOf(value[0])] : [];
  if (value === null) return "null";
  if (typeof value === "object") {
    return Object.fromEntries(Object.entries(value).sort().map(([name, inner]) => [name, shapeOf(inner)]));
  }
  if (typeof value !== "string") return typeof value;
  return Object.keys(made).find((kind) => made[kind].test(value)) ?? "string";
}

const at = (value, path) => path.split(".").reduce((inner, name) => inner?.[name], value);

const jsonOf = (text) => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
};

/** A response is expected if it is documented; where a success is documented, it has to be one. */
function isExpected(operation, step, { status, body }) {
  // The status of a proxied request is that of the destination, unless it was not sent.
  if (step.isProxied) return !body.includes("proxy_error");
  const documented = Object.keys(operation.responses);
  const canSucceed = documented.some((one) => one.startsWith("2"));
  return documented.includes(status) && (!canSucceed || status.startsWith("2"));
}

const replaceAll = (text, pairs) => Object.entries(pairs).reduce((done, [old, value]) => done.replaceAll(old, value), text);

/** What differs between the request of an official client and the example, or undefined. */
function requestDifference(sample, replacements, response) {
  if (sample.example === undefined) return undefined;
  const want = replaceAll(JSON.stringify(sample.example), replacements);
  const have = JSON.stringify(jsonOf(response.sent) ?? null);
  return canonical(have) === canonical(want) ? undefined : `the client sends ${have}, and the example is ${want}`;
}

/** JSON with the members of objects in a fixed order. */
function canonical(text) {
  const sorted = (value) => {
    if (Array.isArray(value)) return value.map(sorted);
    if (!value || typeof value !== "object") return value;
    return Object.fromEntries(Object.entries(value).sort().map(([name, inner]) => [name, sorted(inner)]));
  };
  return JSON.stringify(sorted(JSON.parse(text)));
}

/** Runs one sample of a step and checks its response. */
async function executeSample(language, step, sample, runner, run) {
  const { variables, operation, result } = run;
  const environment = { ...variables, KEY: run.keys[step.key] ?? variables[step.key] ?? "" };
  for (const [name, value] of Object.entries(step.set ?? {})) environment[name] = value.startsWith("$") ? variables[value.slice(1)] : value;
  const replacements = Object.fromEntries(Object.entries(step.replace ?? {}).map(([old, name]) => [old, variables[name]]));
  const text = replaceAll(sample[textOf[language]], replacements);
  const response = await runner.send(text, environment);
  response.json = jsonOf(response.body);
  for (const [name, member] of Object.entries(step.save ?? {})) variables[name] = String(at(response.json, member) ?? "");
  for (const [name, pattern] of Object.entries(step.match ?? {})) variables[name] = response.body.match(pattern)?.[1] ?? "";
  const fail = (problem) => result.failures.push(`openapi.json ${step.id ?? ""} (${language}): ${problem}\n${text}`);
  if (!operation) {
    if (!response.status.startsWith("2")) fail(`${response.status} ${response.body} ${response.error}`);
    return undefined;
  }
  result.executed += 1;
  if (response.error || !isExpected(operation, step, response)) {
    fail(`${response.status} ${response.body.slice(0, 1000)} ${response.error ?? ""}`);
    return undefined;
  }
  if (/^(undefined|None)\n$/.test(response.printed ?? "")) fail(`prints ${response.printed}`);
  const problem = sample.usesClient[language] && requestDifference(sample, replacements, response);
  if (problem) fail(problem);
  const types = Object.keys(operation.responses[response.status]?.content ?? {});
  if (step.isUnrecorded || step.isProxied || types.length === 0) return undefined;
  if (response.json === undefined && /^image|javascript/.test(types[0])) return undefined;
  return { status: response.status, value: response.json === undefined ? startOf(response.body) : shorten(response.json), fail };
}

/** Runs the scenario with the samples of one language. Returns the first response of each operation. */
async function executeScenario(language, runner, curl, variables, { all, recorded, record, result }) {
  const keys = { management: variables.MANAGEMENT_KEY, private: variables.PRIVATE_KEY, public: variables.PUBLIC_KEY };
  const responses = {};
  for (const step of steps) {
    const operation = all.get(step.id);
    const run = { keys, variables, operation, result };
    if (!operation) {
      await executeSample("curl", step, { command: step.command }, curl, run);
      continue;
    }
    for (const sample of samples(operation).filter(({ name }) => !step.example || step.example === name)) {
      const response = await executeSample(language, step, sample, runner, run);
      if (!response || responses[step.id]) continue;
      const { fail, ...example } = response;
      result.compared += 1;
      const [have, want] = [shapeOf(example.value), shapeOf(recorded[step.id]?.value ?? null)].map((shape) => JSON.stringify(shape));
      // An example that is still right is not replaced: its ids would change.
      responses[step.id] = have === want ? recorded[step.id] : example;
      if (!record && !step.isTimed && have !== want) fail(`the response is ${have}, and docs/api/responses.json has ${want}`);
    }
  }
  return responses;
}

/** Runs the samples of each language against a vault of its own. `result` gets the counts and failures. */
export async function executeReference({ program, folder, record }, path, result) {
  const work = join(folder, "reference");
  mkdirSync(work, { recursive: true });
  const all = new Map(operations().map((operation) => [operation.operationId, operation]));
  const recorded = JSON.parse(readFileSync(file, "utf8"));
  const curl = new CurlRunner(work);
  const runners = { curl, node: ClientRunner.node(join(work, "node")), python: ClientRunner.python(join(work, "python")) };
  const environment = { ...process.env, PATH: `${path}:${process.env.PATH}` };
  const attempt = async (language, runner) => {
    const result = emptyResult();
    const vault = await Vault.start(program, join(work, `vault-${language}`));
    try {
      const variables = { ...environment, ...vault.variables };
      const responses = await executeScenario(language, runner, curl, variables, { all, recorded, record, result });
      return { responses, result };
    } finally {
      await vault.stop();
    }
  };
  // On a busy machine a request can take too long: a failed scenario runs a second time.
  const execute = async ([language, runner]) => {
    let done = await attempt(language, runner);
    if (done.result.failures.length > 0) {
      console.log(`again: ${done.result.failures.join("\n")}`);
      done = await attempt(language, runner);
    }
    runner.stop();
    add(result, done.result);
    return done.responses;
  };
  const [responses] = await Promise.all([
    ...Object.entries(runners).map(execute),
    executeProblems({ program, record }, join(work, "vault-problems"), curl, environment, { shapeOf, shorten, result }),
  ]);
  for (const [id, reason] of Object.entries(browserOnly)) result.skipped.push({ place: `openapi.json ${id}`, reason });
  const seen = new Set(steps.map(({ id }) => id));
  for (const id of all.keys()) if (!seen.has(id) && !browserOnly[id]) result.failures.push(`openapi.json ${id}: no step of the scenario`);
  if (record) writeFileSync(file, `${JSON.stringify(Object.fromEntries(Object.entries(responses).sort()), null, 2)}\n`);
}
