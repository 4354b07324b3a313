// The samples of the API reference: each operation with curl, Node.js and Python.
//
// Where an official client has a method for the operation, its sample calls it. Otherwise the sample sends the request
// with fetch or httpx. `cargo xtask docs --execute` runs every sample.

import { readFileSync } from "node:fs";
import { join } from "node:path";

import { docs } from "./sources.mjs";

/** Columns of a literal that stays on one line. */
const lineMax = 76;

/**
 * Examples that a client cannot send, because its method lacks an attribute of the body. Their samples use plain HTTP.
 * The execution fails if a client sends another body than that of the example.
 */
const lacking = {
  node: ["create_application.management", "create_key.bound", "update_webhook.enable"],
  python: ["create_application.management", "create_key.bound", "update_webhook.enable"],
};

/** Objects without a schema in openapi.json that the Node.js client has types for. */
const typedByClient = ["purchase_info", "merchant_info", "requestor_info", "cardholder_info"];

/** Lists that the Python client returns as they are, not as pages. */
const plainLists = ["list_webhooks"];

/** A request without the names of its parameters, which differ between the description and the clients. */
const requestKey = (method, path) => `${method.toUpperCase()} ${path.replace(/\{\w+\}/g, "{}")}`;

/** Methods of the official clients by client and request, from the page that their conformance suites write. */
const clientMethods = (() => {
  const found = { node: new Map(), python: new Map() };
  let client = "";
  for (const line of readFileSync(join(docs, "api/sdk-methods.md"), "utf8").split("\n")) {
    client = line.match(/^## (\w+)/)?.[1] ?? client;
    const [, name, method, path, answer] = line.match(/^\| `(.*?)` \| `([A-Z]+) (\S+?)` \| (.*) \|$/) ?? [];
    if (name && !answer.startsWith("unsupported")) found[client]?.set(requestKey(method, path), name);
  }
  return found;
})();

/** The version of a client that the samples are executed with. */
export function clientVersion(client) {
  return readFileSync(join(docs, "api/sdk-methods.md"), "utf8").match(new RegExp(`^## ${client} (\\S+)$`, "m"))[1];
}

/** The client's method for an operation, or undefined. */
export const methodOf = (client, { method, path }) => clientMethods[client].get(requestKey(method, path));

const camelCase = (name) => name.replace(/_([a-z0-9])/g, (_, letter) => letter.toUpperCase());
const constantCase = (name) => name.replace(/([a-z])([A-Z])/g, "$1_$2").replaceAll("-", "_").toUpperCase();
const indent = (text) => text.replaceAll("\n", "\n  ");

/** Renders a JSON value as a literal of a language. */
function literal(value, language) {
  if (value === null) return language.none;
  if (typeof value === "boolean") return language.boolean(value);
  if (typeof value !== "object") return JSON.stringify(value);
  const items = Array.isArray(value)
    ? value.map((item) => literal(item, language))
    : Object.entries(value).map(([name, inner]) => `${language.name(name)}: ${literal(inner, language)}`);
  return enclose(items, ...(Array.isArray(value) ? ["[", "]", ""] : ["{", "}", language.padding]));
}

/** Items between brackets, on one line if they fit. */
function enclose(items, open, close, padding = "") {
  if (items.length === 0) return open + close;
  const line = `${open}${padding}${items.join(", ")}${padding}${close}`;
  if (line.length <= lineMax && !line.includes("\n")) return line;
  return `${open}\n  ${items.map(indent).join(",\n  ")},\n${close}`;
}

const javascript = {
  none: "null",
  boolean: String,
  name: (name) => (/^[a-zA-Z_]\w*$/.test(name) ? name : JSON.stringify(name)),
  padding: " ",
};
const python = {
  none: "None",
  boolean: (value) => (value ? "True" : "False"),
  name: (name) => JSON.stringify(name),
  padding: "",
};

/** What the renderers below need to know of a request. */
function requestOf(operation, example, resolve) {
  const parameters = (operation.parameters ?? []).map(resolve);
  const [type, content] = Object.entries(operation.requestBody?.content ?? {})[0] ?? [];
  const [, success] = Object.entries(operation.responses).find(([status]) => status.startsWith("2")) ?? [];
  const [responseType, response] = Object.entries(resolve(success)?.content ?? {})[0] ?? [];
  const isProxied = parameters.some(({ name }) => name === "BT-PROXY-URL");
  return {
    ...operation,
    example: content ? example : undefined,
    type,
    schema: content?.schema,
    isForm: Boolean(type?.endsWith("urlencoded")),
    query: parameters.filter((parameter) => parameter.in === "query" && parameter.required).map(({ name }) => name),
    isProxied,
    needsKey: Boolean(operation.security?.length),
    // Without a documented success, the response is a problem.
    responseType: success ? (responseType ?? (isProxied ? "text/plain" : undefined)) : "application/problem+json",
    isPage: Boolean(resolve(response?.schema)?.properties?.pagination),
    resolve,
  };
}

/** A command that a reader can paste, after setting the base URL, the key and the parameters in capitals. */
function curl({ path, method, query, needsKey, isProxied, type, isForm, example }) {
  const address =
    path.replace(/\{(\w+)\}/g, (_, name) => `$${constantCase(name)}`) +
    (query.length ? `?${query.map((name) => `${name}=$${constantCase(name)}`).join("&")}` : "");
  const words = [`curl -s${method === "get" ? "" : ` -X ${method.toUpperCase()}`} "$BASE_URL${address}"`];
  if (needsKey) words.push(`-H "BT-API-KEY: $KEY"`);
  if (isProxied) words.push(`-H "BT-PROXY-URL: $URL"`);
  if (example !== undefined) {
    words.push(`-H "Content-Type: ${type}"`);
    const text = isForm ? new URLSearchParams(example).toString() : JSON.stringify(example, null, 2);
    words.push(`-d '${text.replaceAll("'", "'\\''")}'`);
  }
  return words.join(" \\\n  ");
}

/** The body with the names of the Node.js client. Names inside of values without a schema are the caller's own. */
function camelCased(value, schema, resolve) {
  const found = resolve(schema);
  if (Array.isArray(value)) return value.map((item) => camelCased(item, found?.items, resolve));
  if (!value || typeof value !== "object") return value;
  const parts = [found, ...(found?.allOf ?? []), ...(found?.oneOf ?? [])].map(resolve);
  const propertyOf = (name) => parts.map((part) => part?.properties?.[name]).find(Boolean);
  const entries = Object.entries(value).map(([name, inner]) => {
    const property = propertyOf(name);
    if (typedByClient.includes(name)) return [camelCase(name), Object.fromEntries(Object.entries(inner).map(([key, one]) => [camelCase(key), one]))];
    return property ? [camelCase(name), camelCased(inner, property, resolve)] : [name, inner];
  });
  return Object.fromEntries(entries);
}

const isFree = (schema, resolve) => !resolve(schema)?.properties && !resolve(schema)?.oneOf && !resolve(schema)?.allOf;

function nodeClient(request, name) {
  const { path, query, example, schema, resolve, responseType, isPage } = request;
  const words = [...path.matchAll(/\{(\w+)\}/g)].map(([, parameter]) => `process.env.${constantCase(parameter)}`);
  if (query.length) words.push(enclose(query.map((parameter) => `${camelCase(parameter)}: process.env.${constantCase(parameter)}`), "{", "}", " "));
  if (example !== undefined) {
    const value = isFree(schema, resolve) ? example : camelCased(example, schema, resolve);
    words.push(literal(value, javascript));
  }
  const call = `await client.${name}(${words.join(", ")})`;
  return [
    'import { BasisTheoryClient } from "@basis-theory/node-sdk";',
    "",
    "const client = new BasisTheoryClient({\n  apiKey: process.env.KEY,\n  baseUrl: process.env.BASE_URL,\n});",
    ...(responseType ? [`const response = ${call};`, `console.log(response${isPage ? ".data" : ""});`] : [`${call};`]),
  ].join("\n");
}

function pythonClient(request, name) {
  const { operationId, path, query, example, schema, resolve, responseType, isPage } = request;
  const words = [...path.matchAll(/\{(\w+)\}/g)].map(([, parameter]) => `os.environ["${constantCase(parameter)}"]`);
  words.push(...query.map((parameter) => `${parameter}=os.environ["${constantCase(parameter)}"]`));
  if (example !== undefined) {
    const isWhole = isFree(schema, resolve) || Array.isArray(example);
    const named = isWhole ? [["request", example]] : Object.entries(example);
    words.push(...named.map(([parameter, value]) => `${parameter}=${literal(value, python)}`));
  }
  const call = enclose(words, `client.${name}(`, ")");
  return [
    "import os",
    "from basis_theory import BasisTheory",
    "",
    'client = BasisTheory(api_key=os.environ["KEY"], base_url=os.environ["BASE_URL"])',
    ...(responseType ? [`response = ${call}`, `print(response${isPage ? (plainLists.includes(operationId) ? ".data" : ".items") : ""})`] : [call]),
  ].join("\n");
}

const isText = (type) => type && !type.endsWith("json") && !type.startsWith("image/");

function nodeFetch({ path, method, query, needsKey, isProxied, type, isForm, example, responseType }) {
  const value = (name) => `\${process.env.${constantCase(name)}}`;
  const address = path.replace(/\{(\w+)\}/g, (_, name) => value(name));
  const search = query.length ? `?${query.map((name) => `${name}=${value(name)}`).join("&")}` : "";
  const headers = [];
  if (needsKey) headers.push('"BT-API-KEY": process.env.KEY');
  if (isProxied) headers.push('"BT-PROXY-URL": process.env.URL');
  if (example !== undefined && !isForm) headers.push(`"Content-Type": "${type}"`);
  const options = [];
  if (method !== "get") options.push(`method: "${method.toUpperCase()}"`);
  if (headers.length) options.push(`headers: ${enclose(headers, "{", "}", " ")}`);
  if (example !== undefined) options.push(`body: ${isForm ? "new URLSearchParams" : "JSON.stringify"}(${literal(example, javascript)})`);
  const words = [`\`\${process.env.BASE_URL}${address}${search}\``, ...(options.length ? [enclose(options, "{", "}", " ")] : [])];
  const read = isText(responseType) ? ", await response.text()" : responseType?.endsWith("json") ? ", await response.json()" : "";
  return `const response = await fetch(${words.join(", ")});\nconsole.log(response.status${read});`;
}

function pythonHttp({ path, method, query, needsKey, isProxied, type, isForm, example, responseType }) {
  const address = path.replace(/\{(\w+)\}/g, (_, name) => `{os.environ['${constantCase(name)}']}`);
  const words = [`f"{os.environ['BASE_URL']}${address}"`];
  if (query.length) words.push(`params=${enclose(query.map((name) => `"${name}": os.environ["${constantCase(name)}"]`), "{", "}")}`);
  const headers = [];
  if (needsKey) headers.push('"BT-API-KEY": os.environ["KEY"]');
  if (isProxied) headers.push('"BT-PROXY-URL": os.environ["URL"]');
  if (example !== undefined && !isForm && type !== "application/json") headers.push(`"Content-Type": "${type}"`);
  if (headers.length) words.push(`headers=${enclose(headers, "{", "}")}`);
  if (example !== undefined) words.push(`${isForm ? "data" : "json"}=${literal(example, python)}`);
  const read = isText(responseType) ? ", response.text" : responseType?.endsWith("json") ? ", response.json()" : "";
  return ["import os", "import httpx", "", `response = ${enclose(words, `httpx.${method}(`, ")")}`, `print(response.status_code${read})`].join("\n");
}

function sampleOf(operation, name, summary, example, resolve) {
  const request = requestOf(operation, example, resolve);
  const methodFor = (client) => (lacking[client].includes(`${operation.operationId}.${name}`) ? undefined : methodOf(client, operation));
  const [node, py] = [methodFor("node"), methodFor("python")];
  return {
    name,
    summary,
    example: request.example,
    usesClient: { node: Boolean(node), python: Boolean(py) },
    command: curl(request),
    node: node ? nodeClient(request, node) : nodeFetch(request),
    python: (py ? pythonClient(request, py) : pythonHttp(request)).replace(/^ +/gm, (spaces) => spaces + spaces),
  };
}

/** The samples of an operation: one per example of its body. `resolve` follows references of the document. */
export function samplesOf(operation, resolve) {
  const content = Object.values(operation.requestBody?.content ?? {})[0];
  const named = Object.entries(content?.examples ?? {});
  if (!named.length) return [sampleOf(operation, "", undefined, content?.example, resolve)];
  return named.map(([name, { summary, value }]) => sampleOf(operation, name, summary, value, resolve));
}
