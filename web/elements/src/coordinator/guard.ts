// Keeps a page from learning a value through the API: by expressions that it sends, or by responses that it receives.

import { configurationError } from "../messages/channel";

const NAME = "data(?:\\.[A-Za-z0-9_]+)*";
/** Masks that show no more than a page learns from events. */
const SAFE_MASK = new RegExp(
  `\\{\\{\\s*(?:${NAME}\\s*\\|\\s*(?:reveal_last:\\s*[1-4]|last4|card_mask)(?:\\s*[:,]\\s*['"][^'"{}|]{0,5}['"])*`
    + "|data\\.expiration_(?:month|year))\\s*\\}\\}",
  "g",
);
/** A fingerprint or a search index of a whole value. One of a part could be compared with those of all its values. */
const WHOLE = new RegExp(`^\\{\\{\\s*${NAME}\\s*\\}\\}$`);
const WHOLE_MEMBERS = new Set(["fingerprint_expression", "search_indexes"]);
/** Types whose fingerprints are protected by the vault's limits on card enumeration. */
const CARD_TYPES = new Set<unknown>(["card", "card_number"]);
const EXPRESSION = /\{[{%]/;
export const REDACTED = "[redacted]";

type Json = Record<string, unknown>;

/**
 * Makes a token request of the page safe for values of elements, and returns it with the API's defaults.
 *
 * Deduplication tells whether a value is known. For card numbers the vault limits how often a page can try; for other
 * types, a page could compare a value with all that it can be.
 */
export function guardToken(request: Json, hasSecurityCode: boolean): Json {
  checkExpressions(request);
  const { data: _, ...rest } = request;
  if (hasSecurityCode && request.type !== "card" && EXPRESSION.test(JSON.stringify(rest))) {
    throw configurationError("Expressions cannot be used with the security code outside of a card");
  }
  return CARD_TYPES.has(request.type) ? request : { ...request, deduplicate_token: false };
}

/** Rejects expressions of the page that would show parts of an element's value. `json` has the API's names. */
function checkExpressions(json: unknown, member = ""): void {
  if (typeof json === "string") {
    const rest = WHOLE_MEMBERS.has(member) && WHOLE.test(json) ? "" : json.replace(SAFE_MASK, "");
    if (EXPRESSION.test(rest)) {
      throw configurationError(
        "With elements, a mask can use reveal_last with at most 4 characters, last4 or card_mask, and fingerprints and "
          + "search indexes must be of a whole value",
      );
    }
  } else if (Array.isArray(json)) {
    json.forEach((item) => checkExpressions(item, member));
  } else if (typeof json === "object" && json !== null) {
    for (const [key, item] of Object.entries(json)) {
      // Data is not evaluated; members of a mask have the names of the data.
      if (key !== "data" || member === "mask") {
        checkExpressions(item, WHOLE_MEMBERS.has(member) || member === "mask" ? member : key);
      }
    }
  }
}

/**
 * Removes values of elements from a response.
 *
 * The API masks them already, unless the key may reveal them or the request went to another server.
 */
export function redact(response: unknown, secrets: readonly string[]): unknown {
  if (secrets.length === 0) {
    return response;
  }
  const numbers = secrets.map(digitsOf).filter((digits) => digits.length >= 8);
  const others = new Set(secrets);
  const isSecret = (text: string) => {
    const digits = digitsOf(text);
    return others.has(text) || numbers.some((number) => digits.includes(number))
      || secrets.some((secret) => secret.length >= 8 && text.includes(secret));
  };
  const copy = (value: unknown): unknown => {
    if (typeof value === "string" || typeof value === "number") {
      return isSecret(String(value)) ? REDACTED : value;
    }
    if (Array.isArray(value)) {
      return value.map(copy);
    }
    if (typeof value !== "object" || value === null) {
      return value;
    }
    const entries = Object.entries(value).map(([key, item]) => [isSecret(key) ? REDACTED : key, copy(item)]);
    return Object.fromEntries(entries);
  };
  return copy(response);
}

const digitsOf = (text: string) => text.replace(/\D/g, "");

/** Removes fingerprints that a page could compare with those of all values of a short secret. */
export function withoutFingerprints(response: unknown): unknown {
  if (Array.isArray(response)) {
    return response.map(withoutFingerprints);
  }
  if (typeof response !== "object" || response === null) {
    return response;
  }
  const { type } = response as { type?: unknown };
  const entries = Object.entries(response)
    .filter(([key]) => key !== "fingerprint" || CARD_TYPES.has(type))
    .map(([key, item]) => [key, withoutFingerprints(item)]);
  return Object.fromEntries(entries);
}
