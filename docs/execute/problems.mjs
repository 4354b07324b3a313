// Requests that fail, one for each status of an error. Their responses are the examples of openapi.json, and are recorded
// in docs/api/problems.json with the names below. Errors of the proxy have a body of their own.

import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

import { docs } from "../.vitepress/sources.mjs";
import { Vault } from "./vault.mjs";

const file = join(docs, "api/problems.json");
const slowBody = join(dirname(fileURLToPath(import.meta.url)), "slow-body.mjs");

const attempts = 3;

const json = "-H 'Content-Type: application/json'";
const status = "-w '\\n%{http_code}'";
const request = (path, words, key = "$PRIVATE_KEY") => `curl -s "$BASE_URL${path}" -H "BT-API-KEY: ${key}" ${words}`;
const proxied = (url, words = "", key = undefined) => request("/proxy", `-H "BT-PROXY-URL: ${url}" ${words}`, key);
const token = (body) => request("/tokens", `${json} -d '${body}'`);
const largeBody = "--data-binary @<(head -c 20000000 /dev/zero | tr '\\0' ' ')";
/** The database as the vault uses it. */
const psql = `psql -q "$(sed -n 's/^url = "\\(postgres.*\\)"/\\1/p' "$CLOAKROOM_CONFIG" | head -1)"`;
/** Commands that run while no statement can use the tokens. */
const whileLocked = (command) =>
  `(${psql} -c "begin; lock table token in access exclusive mode; select pg_sleep(20)" >/dev/null 2>&1 & echo $! > lock.pid); sleep 2; ${command}; kill "$(cat lock.pid)"`;

/** Name, and the command whose response is the example. A name starts with the status. */
const problems = [
  ["400", `${token('{"type":"card","data":{"number":"4242424242424241"}}')} ${status}`],
  ["401", `${request("/tokens/a-token", status, "key_test_us_pvt_wrong")}`],
  ["403", `${request("/tokens/a-token", status, "$PUBLIC_KEY")}`],
  ["404", `${request("/tokens/no-token", status)}`],
  ["409", `${token('{"id":"a-token","type":"token","data":"1"}')} >/dev/null; ${token('{"id":"a-token","type":"token","data":"2"}')} ${status}`],
  ["410", `${request("/reactor-formulas", status, "$MANAGEMENT_KEY")}`],
  ["413", `${request("/tokens", `${json} ${largeBody} ${status}`)}`],
  ["415", `${request("/tokens", `-H 'Content-Type: text/plain' -d '{}' ${status}`)}`],
  ["422", fourthKey()],
  ["424", resultBeforeChallenge()],
  ["500", `${token('{"id":"altered","type":"token","data":"1"}')} >/dev/null; ${psql} -c "update token set sealed = set_byte(sealed, 20, (get_byte(sealed, 20) + 1) % 256) where alias = 'altered'"; ${request("/tokens/altered", status)}`],
  ["501", `${request("/reactors", status, "$MANAGEMENT_KEY")}`],
  ["proxy_400", `${proxied("http://api.example.com", status)}`],
  ["proxy_401", `${proxied("https://api.example.com", status, "key_test_us_pvt_wrong")}`],
  ["proxy_403", `${proxied("https://api.example.com:22", status)}`],
  ["proxy_404", `${request("/proxy", `-H "BT-PROXY-KEY: AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA" ${status}`)}`],
  ["proxy_413", `node ${slowBody} /proxy 300000000`],
  ["proxy_502", `${proxied("https://unknown.invalid", status)}`],
  ["408", `node ${slowBody} /tokens`],
  ["proxy_408", `node ${slowBody} /proxy`],
  ["503", whileLocked(request("/tokens/a-token", `-m 30 ${status}`))],
  ["proxy_503", whileLocked(proxied("$STRIPE_URL", `-m 30 ${json} -d '{"a":"{{ token: a-token }}"}' ${status}`))],
  ["429", `for try in $(seq 200); do ${request("/tokens/a-token", status)} | tail -1 | grep -q 429 && break; done; ${request("/tokens/a-token", status)}`],
];

function fourthKey() {
  const application = request("/applications", `${json} -d '{"name":"Shop","type":"private","permissions":["token:create"]}'`, "$MANAGEMENT_KEY");
  const key = request('/applications/$ID/keys', `-X POST ${status}`, "$MANAGEMENT_KEY");
  return `ID=$(${application} | sed 's/^{"id":"\\([^"]*\\).*/\\1/'); for try in 1 2 3; do ${key} | tail -1 | grep -q 422 && break; done >/dev/null; ${key}`;
}

function resultBeforeChallenge() {
  const card = token('{"id":"card-3001","type":"card","data":{"number":"4200000000000002","expiration_month":12,"expiration_year":2030}}');
  const session = request("/3ds/sessions", `${json} -d '{"type":"merchant","token_id":"card-3001"}'`);
  return `${card} >/dev/null; ID=$(${session} | sed 's/^{"id":"\\([^"]*\\).*/\\1/'); ${request("/3ds/sessions/$ID/challenge-result", status)}`;
}

/** The problem, after a few attempts: what provokes it can take longer on a busy machine. */
async function attempt(name, command, runner, environment) {
  let problem;
  for (let count = 0; count < attempts; count += 1) {
    const { stdout, stderr } = await runner.run(command, environment);
    const end = stdout.trimEnd().lastIndexOf("\n");
    const [body, code] = [stdout.slice(0, end), stdout.slice(end).trim()];
    if (name.endsWith(code) && body.startsWith("{")) return { value: JSON.parse(body) };
    problem = `${code} ${body.slice(0, 500)} ${stderr}`;
  }
  return { problem };
}

/** Runs them against a vault of its own. `result` gets the counts and failures. */
export async function executeProblems({ program, record }, folder, runner, variables, { shapeOf, shorten, result }) {
  const vault = await Vault.start(program, folder, ["--limits"]);
  const recorded = JSON.parse(readFileSync(file, "utf8"));
  const found = {};
  try {
    for (const [name, command] of problems) {
      const { value, problem } = await attempt(name, command, runner, { ...variables, ...vault.variables });
      result.executed += 1;
      if (problem) {
        result.failures.push(`problems.mjs ${name}: ${problem}\n${command}`);
        continue;
      }
      result.compared += 1;
      const [have, want] = [shorten(value), recorded[name] ?? null].map((one) => JSON.stringify([shapeOf(one), one?.code ?? one?.proxy_error?.code]));
      // An example that is still right is not replaced: its ids would change.
      found[name] = have === want ? recorded[name] : shorten(value);
      if (!record && have !== want) result.failures.push(`problems.mjs ${name}: the response is ${have}, and docs/api/problems.json has ${want}`);
    }
  } finally {
    await vault.stop();
  }
  if (record) writeFileSync(file, `${JSON.stringify(found, null, 2)}\n`);
}
