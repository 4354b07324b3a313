// Which methods the client has, and what each call of one became: a request and its answer.

import { AsyncLocalStorage } from "node:async_hooks";
import { appendFileSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";

const { version } = createRequire(import.meta.url)("@basis-theory/node-sdk/package.json");

export const sdk = `node ${version}`;

const UNSUPPORTED = JSON.parse(readFileSync(new URL("../unsupported.json", import.meta.url)));

const calls = new AsyncLocalStorage();
const realFetch = globalThis.fetch;

globalThis.fetch = async (url, options) => {
  const answer = await realFetch(url, options);
  const call = calls.getStore();
  if (call) {
    const request = `${options.method} ${template(new URL(url).pathname, call)}`;
    note({ method: call.method, request, status: answer.status });
  }
  return answer;
};

/** The client, with every call of a method noted; it behaves as before. */
export function noted(client, path = []) {
  return new Proxy(client, {
    get(target, name) {
      const member = target[name];
      if (typeof name !== "string" || name.startsWith("_")) {
        return member;
      }
      const names = [...path, name];
      if (typeof member === "function") {
        const call = { method: names.join("."), parameters: parameters(member) };
        return (...given) => calls.run({ ...call, given }, () => member.apply(target, given));
      }
      return isPart(member) ? noted(member, names) : member;
    },
  });
}

/** The names of all methods, by reflection: what the client's classes define and its parts hold. */
export function methods(client, path = []) {
  const names = Object.getOwnPropertyNames(Object.getPrototypeOf(client))
    .filter((name) => name !== "constructor" && !name.startsWith("_"));
  return names.flatMap((name) => {
    const member = client[name];
    const names = [...path, name];
    return isPart(member) ? methods(member, names) : [names.join(".")];
  });
}

/** Why a method is not for this vault, or nothing if it is. */
export function unsupported(method) {
  const name = snakeCase(method);
  const isMeant = ({ methods }) =>
    methods.endsWith(".*") ? name.startsWith(methods.slice(0, -1)) : name === methods;
  return UNSUPPORTED.find(isMeant)?.reason;
}

/** A line for the table of all methods. */
export function note(line) {
  const file = process.env.CONFORMANCE_METHODS;
  if (file) {
    appendFileSync(file, `${JSON.stringify({ sdk, ...line })}\n`);
  }
}

function isPart(member) {
  return typeof member === "object" && member !== null && "_options" in member;
}

/** `/applications/8d0c…` was asked for with an id: `/applications/{id}`. */
function template(path, { given, parameters }) {
  const segments = path.split("/").map((segment) => {
    const index = given.findIndex((one) => one === decodeURIComponent(segment));
    return segment !== "" && index >= 0 ? `{${snakeCase(parameters[index])}}` : segment;
  });
  return segments.join("/");
}

function parameters(method) {
  const [, list] = /\(([^)]*)\)/.exec(method.toString());
  return list.split(",").map((one) => one.replace(/=.*/, "").replace(/_\d+$/, "").trim());
}

function snakeCase(name) {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
