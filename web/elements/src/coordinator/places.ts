// Where a value may stand in a payload.

import { configurationError } from "../messages/channel";
import type { ElementType } from "../messages/protocol";

export type Path = (string | number)[];
type Json = Record<string | number, unknown>;

/** Where a value comes from. */
export interface Source {
  type: ElementType;
  isTransformed: boolean;
}

/** Whether a value may stand at a path of a payload. */
export type PathRule = (path: Path, json: unknown, source: Source) => boolean;

/** Types whose fingerprints are protected by the vault's limits on card enumeration. */
export const CARD_TYPES = new Set<unknown>(["card", "card_number"]);
/** The elements that the vault's own members of a card can have values of. Their errors and masks tell something. */
const CARD_MEMBERS = new Map<unknown, readonly ElementType[]>([
  [undefined, ["card", "cardNumber"]],
  ["number", ["cardNumber"]],
  ["expiration_month", ["cardExpirationDate"]],
  ["expiration_year", ["cardExpirationDate"]],
  ["cvc", ["cardVerificationCode"]],
]);

export const anywhere: PathRule = () => true;
export const nowhere: PathRule = () => false;

/** In the data of the one token that is created. */
export const inData: PathRule = ([member, ...path], json, source) =>
  member === "data" && requireMember(json as Json, path, source);

/** In the data of any token of a tokenize request, or outside of all of them, where a value becomes a token itself. */
export const inTokenizedData: PathRule = (path, json, source) => {
  let node = json as Json;
  for (const [index, key] of path.entries()) {
    if (isTokenRequest(node)) {
      return inData(path.slice(index), node, source);
    }
    node = node[key] as Json;
  }
  return requireMember({ type: "token" }, [], source);
};

/** In the data of the tokens that are encrypted. */
export const inTokenRequests: PathRule = ([member, ...path], json, source) =>
  member === "tokenRequests" && inTokenizedData(path, (json as Json).tokenRequests, source) && path.includes("data");

/** Whether the vault takes an object for a token. One that it could take for anything else is rejected. */
export function isTokenRequest(node: object): node is Json {
  const marks = ["type", "encrypted", "token_intent_id"].filter((name) => !Array.isArray(node) && name in node);
  if (marks.some((name) => typeof (node as Json)[name] !== "string" && (node as Json)[name] !== undefined)) {
    throw configurationError("type, encrypted and token_intent_id must be text");
  }
  return marks.length > 0;
}

/** Rejects values where the response, or its status, would tell the page something about them. */
function requireMember({ type, mask }: Json, path: Path, source: Source): boolean {
  // An update does not name the type.
  const mayBeCard = type === "card" || type === undefined;
  const hasCode = source.type === "cardVerificationCode" || source.type === "card";
  const place = source.type === "card" ? undefined : "cvc";
  if (hasCode && !(mayBeCard && path.length < 2 && path[0] === place)) {
    throw configurationError("A security code can be used as data.cvc of a card only");
  }
  const isCard = CARD_TYPES.has(type) || (type === undefined && path.length > 0);
  const expected = isCard ? CARD_MEMBERS.get(path[0]) : undefined;
  if (expected && !expected.includes(source.type)) {
    throw configurationError(`data.${path[0] ?? "number"} of a card must be of the element ${expected.join(" or ")}`);
  }
  if (source.isTransformed && (type !== "token" || mask !== undefined)) {
    throw configurationError("An element with a transform can be used in a token of the type token without a mask only");
  }
  return true;
}
