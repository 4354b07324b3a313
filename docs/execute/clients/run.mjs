// Runs samples of the Node.js client. Reads one JSON line per sample, `{ file, environment }`, and writes one per result:
// the last request and response of the sample, and what it printed.

import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

let last;
const realFetch = globalThis.fetch;
globalThis.fetch = async (input, options = {}) => {
  const response = await realFetch(input, options);
  const url = new URL(input instanceof Request ? input.url : input);
  last = { path: url.pathname, sent: String(options.body ?? ""), status: String(response.status), body: await response.clone().text() };
  return response;
};

let printed = "";
console.log = (...values) => {
  printed += `${values.map((value) => (typeof value === "string" ? value : JSON.stringify(value))).join(" ")}\n`;
};

const write = (result) => process.stdout.write(`${JSON.stringify(result)}\n`);

for await (const line of createInterface({ input: process.stdin })) {
  const { file, environment } = JSON.parse(line);
  Object.assign(process.env, environment);
  [last, printed] = [undefined, ""];
  let error;
  try {
    await import(pathToFileURL(file));
  } catch (thrown) {
    error = String(thrown);
  }
  write({ ...last, printed, error });
}
