// Keeps a page from learning a value through the API: by expressions that it sends, or by responses that it receives.

import { configurationError } from "../messages/channel";
import { CARD_TYPES, isTokenRequest } from "./places";

const NAME = "data(?:\\.[A-Za-z0-9_]+)*";
const LAST = "reveal_last:\\s*[1-4]|last4";
const masks = (name: string, filters: string) => new RegExp(`\\{\\{\\s*${name}\\s*\\|\\s*(?:${filters})\\s*\\}\\}`, "g");
const CARD_FILTERS = `(?:${LAST}|card_mask)(?:\\s*[:,]\\s*['"][^'"{}|]{0,5}['"])*`;
/** Masks of card numbers, which show no more than events. */
const CARD_MASKS = new Map<unknown, RegExp>([
  ["card", masks("data\\.number", CARD_FILTERS)],
  ["card_number", masks("data", CARD_FILTERS)],
]);
/** Masks of other values. They are for readers of the token: the page does not get its data. */
const OTHER_MASK = masks(NAME, LAST);
const DATE = /\{\{\s*data\.expiration_(?:month|year)\s*\}\}/g;
/** A fingerprint or a search index of a whole value. One of a part could be compared with those of all its values. */
const WHOLE = new RegExp(`^\\{\\{\\s*${NAME}\\s*\\}\\}$`);
const WHOLE_MEMBERS = new Set(["fingerprint_expression", "search_indexes"]);
/** Details of the data of a token. */
const DETAILS = ["data", "card", "bank", "network_token", "fingerprint"];
/** What the page sent, and would see compared with a value. */
const SENT = new Set(["metadata", "mask", "search_indexes", "fingerprint_expression", "containers", "privacy"]);
/** The members of a card's data. Others are the page's own. */
const CARD_DATA = new Set(["number", "expiration_month", "expiration_year", "cvc"]);
/** Names of members in a response of the vault are names of its own, or the page's. */
export const KEEP_NAMES = true;
const EXPRESSION = /\{[{%]/;
export const REDACTED = "[redacted]";

/** Rejects expressions in the token requests of a document that has values of elements. */
export function checkRequests(json: unknown): void {
  if (typeof json === "object" && json !== null) {
    if (isTokenRequest(json)) {
      if ("id" in json) {
        throw configurationError("With elements, the vault chooses the id");
      }
      checkExpressions(json, CARD_MASKS.get(json.type) ?? OTHER_MASK);
    } else {
      Object.values(json).forEach(checkRequests);
    }
  }
}

/** Rejects expressions of the page that would show parts of an element's value. `json` has the API's names. */
function checkExpressions(json: unknown, masks: RegExp, member = ""): void {
  if (typeof json === "string") {
    const others = json.replace(masks, "");
    const rest = WHOLE_MEMBERS.has(member) && WHOLE.test(json) ? "" : masks === OTHER_MASK ? others : others.replace(DATE, "");
    if (EXPRESSION.test(rest)) {
      throw configurationError(
        "With elements, a mask can use reveal_last with at most 4 characters, last4, or for data.number of a card card_mask; "
          + "fingerprints and search indexes must be of a whole value",
      );
    }
  } else if (Array.isArray(json)) {
    json.forEach((item) => checkExpressions(item, masks, member));
  } else if (typeof json === "object" && json !== null) {
    for (const [key, item] of Object.entries(json)) {
      // Data is not evaluated; members of a mask have the names of the data.
      if (key !== "data" || member === "mask") {
        checkExpressions(item, masks, WHOLE_MEMBERS.has(member) || member === "mask" ? member : key);
      }
    }
  }
}

/**
 * Removes values of elements from a response.
 *
 * The API masks them already, unless the key may reveal them or the request went to another server.
 */
export function redact(response: unknown, secrets: readonly string[], keepNames = false): unknown {
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
    const name = (key: string) => (!keepNames && isSecret(key) ? REDACTED : key);
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [name(key), copy(item)]));
  };
  return copy(response);
}

const digitsOf = (text: string) => text.replace(/\D/g, "");

/**
 * Removes what a response tells about the data of other tokens than cards.
 *
 * A mask shows a part of a value, and a page could ask for it after every keystroke. An update does not name the type.
 */
export function withoutDetails(response: unknown, isUpdate: boolean): unknown {
  if (Array.isArray(response)) {
    return response.map((item) => withoutDetails(item, isUpdate));
  }
  if (typeof response !== "object" || response === null) {
    return response;
  }
  const { type } = response as { type?: unknown };
  const isHidden = isUpdate || (typeof type === "string" && !CARD_TYPES.has(type));
  const isToken = typeof type === "string";
  const entries = Object.entries(response)
    .filter(([key]) => (!isHidden || !DETAILS.includes(key)) && !(isToken && SENT.has(key)))
    .map(([key, item]) => [key, key === "data" && isToken ? cardData(item) : withoutDetails(item, isUpdate)]);
  return Object.fromEntries(entries);
}

function cardData(data: unknown): unknown {
  if (typeof data !== "object" || data === null) {
    return data;
  }
  return Object.fromEntries(Object.entries(data).filter(([key]) => CARD_DATA.has(key)));
}
