// The API reference: one page per tag, rendered from openapi.json.

import { readFileSync } from "node:fs";
import { join } from "node:path";

import { methodOf, samplesOf } from "./samples.mjs";
import { docs } from "./sources.mjs";

const clientNames = { node: "Node.js", python: "Python" };
const methods = ["get", "post", "put", "patch", "delete"];
const api = JSON.parse(readFileSync(join(docs, "api/openapi.json"), "utf8"));

const lookUp = (reference) => reference.split("/").slice(1).reduce((at, name) => at[name], api);
const resolve = (object) => (object?.$ref ? { ...lookUp(object.$ref), ...object } : object);
const nameOf = (reference) => reference.split("/").pop();
/** Text for a cell of a table: on one line, without the separator of cells. */
const cell = (text) => (text ?? "").replace(/\s+/g, " ").replaceAll("|", "\\|").trim();
const code = (text, language) => `\`\`\`${language}\n${text}\n\`\`\``;
const table = (head, rows) =>
  rows.length === 0 ? "" : [head, head.map(() => "---"), ...rows].map((row) => `| ${row.join(" | ")} |`).join("\n");

/** Which samples use an official client, and which plain HTTP. */
function clients(operation) {
  const found = Object.keys(clientNames).map((client) => [clientNames[client], methodOf(client, operation)]);
  const names = found.filter(([, name]) => name).map(([client, name]) => `${client} \`client.${name}\``);
  const without = found.filter(([, name]) => !name).map(([client]) => client);
  return sentences(
    names.length && `Official clients: ${names.join(", ")}.`,
    without.length && `The official ${without.join(" and ")} client${without.length > 1 ? "s have" : " has"} no method for this operation: use plain HTTP.`,
  );
}

/** All operations, in the order of the document. */
export function operations() {
  return Object.entries(api.paths).flatMap(([path, item]) =>
    methods.filter((method) => item[method]).map((method) => ({ path, method, ...item[method] })),
  );
}

/** The tags with the addresses of their pages and their operations, by name. */
export function tags() {
  const byName = new Map();
  for (const operation of operations()) {
    const name = operation.tags?.[0] ?? "Other";
    byName.set(name, [...(byName.get(name) ?? []), operation]);
  }
  return [...byName]
    .map(([name, found]) => ({ name, slug: name.toLowerCase().replace(/[^a-z0-9]+/g, "-"), operations: found }))
    .sort((a, b) => a.name.localeCompare(b.name));
}

/** What a schema accepts, in a few words. */
function typeOf(schema) {
  if (!schema) return "";
  if (schema.$ref) {
    const target = lookUp(schema.$ref);
    return target.type === "object" || target.allOf || target.oneOf ? `${nameOf(schema.$ref)}` : typeOf(target);
  }
  if (schema.enum) return schema.enum.map((value) => `\`${value}\``).join(", ");
  if (schema.oneOf) return schema.oneOf.map(typeOf).join(" or ");
  if (schema.allOf) return schema.allOf.map(typeOf).join(" and ");
  const type = [schema.type ?? "any"].flat().join(" or ");
  if (type === "array") return `array of ${typeOf(schema.items)}`;
  return schema.format ? `${type} (${schema.format})` : type;
}

/** Limits of a schema as JSON Schema names them. */
function limitsOf(schema) {
  const names = ["minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "maxProperties", "pattern", "default"];
  const found = resolve(schema) ?? {};
  return names
    .filter((name) => found[name] !== undefined)
    .map((name) => `${name} \`${cell(String(found[name]))}\``)
    .join(", ");
}

const sentences = (...parts) => parts.filter(Boolean).map(cell).join(" ");

/** The properties of an object, and those of the objects in it, as rows. */
function propertyRows(schema, prefix = "", depth = 0) {
  const found = resolve(schema);
  if (!found || depth > 3) return [];
  if (found.allOf) return found.allOf.flatMap((part) => propertyRows(part, prefix, depth));
  if (found.type === "array") return propertyRows(found.items, `${prefix}[]`, depth + 1);
  return Object.entries(found.properties ?? {}).flatMap(([name, property]) => {
    const path = prefix ? `${prefix}.${name}` : name;
    const isRequired = found.required?.includes(name) ? "yes" : "";
    const text = sentences(resolve(property).description, limitsOf(property));
    return [[`\`${path}\``, cell(typeOf(property)), isRequired, text], ...propertyRows(property, path, depth + 1)];
  });
}

function alternatives(schema) {
  const found = resolve(schema);
  return found?.oneOf ? found.oneOf.filter((part) => resolve(part).type !== "null") : [schema];
}

function properties(schema) {
  return alternatives(schema)
    .map((part) => table(["attribute", "type", "required", "description"], propertyRows(part)))
    .filter(Boolean)
    .join("\n\nor\n\n");
}

function parameters({ parameters: list = [] }) {
  const rows = list.map(resolve).map((parameter) => [
    `\`${parameter.name}\``,
    parameter.in,
    cell(typeOf(parameter.schema)),
    parameter.required ? "yes" : "",
    sentences(parameter.description, limitsOf(parameter.schema)),
  ]);
  return rows.length ? `**Parameters**\n\n${table(["name", "in", "type", "required", "description"], rows)}` : "";
}

/** The samples of an operation: one per example of its body. */
export const samples = (operation) => samplesOf(operation, resolve);

/** A sample in each language, as tabs. */
function tabs({ command, node, python }) {
  return ["::: code-group", code(command, "sh [curl]"), code(node, "js [Node.js]"), code(python, "python [Python]"), ":::"].join("\n\n");
}

function examples(operation) {
  const list = samples(operation).map((sample) => (sample.summary ? `${sample.summary}:\n\n` : "") + tabs(sample));
  return [...list, responseExample(operation)].filter(Boolean).join("\n\n");
}

/** A response that a test vault gave, or what the response is if an example would not show it. */
function responseExample({ responses: all }) {
  const found = Object.entries(all).map(([status, response]) => [status, resolve(response)]);
  for (const [status, response] of found) {
    const example = Object.values(response.content ?? {})[0]?.example;
    if (example === undefined) continue;
    const isText = typeof example === "string";
    return `Response (${status}):\n\n${code(isText ? example : JSON.stringify(example, null, 2), isText ? "text" : "json")}`;
  }
  const [status, { content, description }] = found.find(([one]) => one.startsWith("2")) ?? found[0];
  const types = Object.keys(content ?? {}).map((type) => `\`${type}\``);
  return `Response (${status}): ${types.length ? types.join(" or ") : status === "204" ? "no body" : cell(description)}`;
}

function body({ requestBody }) {
  const content = Object.values(requestBody?.content ?? {})[0];
  const found = content && properties(content.schema);
  return found ? `**Request body**\n\n${found}` : "";
}

function responses(operation) {
  const list = Object.entries(operation.responses).map(([status, response]) => [status, resolve(response)]);
  const rows = list.map(([status, response]) => {
    const schema = Object.values(response.content ?? {})[0]?.schema;
    return [status, cell(response.description), cell(typeOf(schema))];
  });
  const [, success] = list.find(([status]) => status.startsWith("2")) ?? [];
  const schema = Object.values(success?.content ?? {})[0]?.schema;
  const attributes = schema && properties(schema);
  const details = attributes ? `\n\n::: details Attributes of the response\n\n${attributes}\n\n:::` : "";
  return `**Responses**\n\n${table(["status", "when", "body"], rows)}${details}`;
}

function section(operation) {
  const heading = `## ${operation.summary?.replace(/\.$/, "") ?? operation.operationId}`;
  const line = `**\`${operation.method.toUpperCase()} ${operation.path}\`**${operation.deprecated ? " (deprecated)" : ""}`;
  return [heading, line, operation.description, clients(operation), parameters(operation), body(operation), examples(operation), responses(operation)]
    .filter(Boolean)
    .join("\n\n");
}

/** The page of a tag, as Markdown. */
export function pageOfTag({ name, operations: found }) {
  const introduction =
    "Rendered from [openapi.json](../openapi.json). Errors are described in [Errors](../errors.md), keys and permissions in\n" +
    "[Permissions and routes](../permissions.md).";
  const rows = found.map((operation) => [
    `\`${operation.method.toUpperCase()}\``,
    `\`${operation.path}\``,
    cell(operation.summary?.replace(/\.$/, "")),
  ]);
  return [`# ${name}`, introduction, table(["method", "path", "operation"], rows), ...found.map(section)].join("\n\n");
}
