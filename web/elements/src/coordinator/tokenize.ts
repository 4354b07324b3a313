// Documents of tokenize requests: every token in them is guarded like one that is created by itself.

import type { Filled } from "./fill";
import { guardToken } from "./guard";

type Json = Record<string | number, unknown>;
type Path = (string | number)[];

export const isTokenRequest = (node: object): node is Record<string, unknown> =>
  !Array.isArray(node) && ("type" in node || "encrypted" in node || "token_intent_id" in node);

/**
 * Guards the tokens of a document, and returns the paths of the plain values among them.
 *
 * A plain value of an element becomes a token request, because only that can switch deduplication off.
 */
export function guardDocument({ json, paths, hasSecurityCode }: Filled): { document: unknown; plain: Path[] } {
  const filled = new Set(paths.map((path) => JSON.stringify(path)));
  const plain: Path[] = [];
  const guard = (node: unknown, path: Path): unknown => {
    if (typeof node !== "object" || node === null) {
      if (!filled.has(JSON.stringify(path))) {
        return node;
      }
      plain.push(path);
      return { type: "token", data: node, deduplicate_token: false };
    }
    if (Array.isArray(node)) {
      return node.map((item, index) => guard(item, [...path, index]));
    }
    if (isTokenRequest(node)) {
      return guardToken(node, hasSecurityCode);
    }
    return Object.fromEntries(Object.entries(node).map(([key, item]) => [key, guard(item, [...path, key])]));
  };
  return { document: guard(json, []), plain };
}

/** Replaces the tokens of plain values by their ids, as the API answers for plain values. */
export function unwrap(response: unknown, plain: Path[]): unknown {
  const root: Json = { response };
  for (const path of plain) {
    let node = root;
    for (const key of ["response", ...path].slice(0, -1)) {
      node = node[key] as Json;
    }
    const last = path[path.length - 1] ?? "response";
    node[last] = (node[last] as { id?: unknown }).id;
  }
  return root.response;
}
