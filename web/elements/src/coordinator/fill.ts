// Fills the gaps of a payload with values, and decides where a value may go.

import { configurationError, ReportedError } from "../messages/channel";
import { isForbidden } from "./keys";
import type { ErrorKind, FieldError, Payload } from "../messages/protocol";
import type { Fields, Resolved } from "./fields";
import type { PathRule } from "./places";

export interface Filled {
  json: unknown;
  /** Texts that must not come back to the page. */
  secrets: string[];
  hasElements: boolean;
}

const PLACE = "An element can be used in the data of a token only";

/** Fills all gaps, or reports which elements are incomplete, in the shape of the payload. */
export function fill({ json, placements }: Payload, fields: Fields, mayHold: PathRule): Filled {
  const root = { json };
  const secrets: string[] = [];
  const details = {};
  const validation: FieldError[] = [];
  const sources: Resolved[] = [];
  for (const placement of placements) {
    const { path } = placement;
    if (!path.every(isKey)) {
      throw configurationError(PLACE);
    }
    const source = fields.resolve(placement);
    const { value, errors } = source;
    sources.push(source);
    if (errors) {
      set(details, ["root", ...path], shaped(errors));
      validation.push({ targetId: placement.elementId, type: typeof errors === "string" ? errors : "incomplete" });
    }
    secrets.push(...secretsOf(source));
    set(root, ["json", ...path], value);
  }
  // Checked when everything is in place: an element can have a value that the page chose, such as the type of a token.
  if (!placements.every(({ path }, index) => mayHold(path, root.json, sources[index]))) {
    throw configurationError(PLACE);
  }
  if (validation.length > 0) {
    throw new ReportedError({
      name: "BasisTheoryValidationError",
      message: "Unable to create token. Payload contains invalid values: review elements events for more details.",
      details: (details as { root: unknown }).root,
      validation,
    });
  }
  return { json: root.json, secrets, hasElements: placements.length > 0 };
}

const isKey = (key: unknown): key is string | number =>
  typeof key === "number" ? Number.isInteger(key) && key >= 0 : typeof key === "string" && !isForbidden(key);

function shaped(errors: ErrorKind | Record<string, ErrorKind>): unknown {
  return typeof errors === "string"
    ? { type: errors }
    : Object.fromEntries(Object.entries(errors).map(([name, type]) => [name, { type }]));
}

/** Assigns own properties only. */
function set(root: object, path: (string | number)[], value: unknown): void {
  let node = root as Record<string | number, unknown>;
  for (const key of path.slice(0, -1)) {
    if (!Object.hasOwn(node, key) || typeof node[key] !== "object" || node[key] === null) {
      node[key] = {};
    }
    node = node[key] as Record<string | number, unknown>;
  }
  node[path[path.length - 1]] = value;
}

/** Expiration dates are not secret by themselves; an API returns them with a card. A text is as secret as its transform. */
function secretsOf({ type, value, typed }: Resolved): string[] {
  if (type === "cardExpirationDate") {
    return [];
  }
  const values = type === "card" ? [(value as Card)?.number, (value as Card)?.cvc] : [value, typed];
  return values.filter((value): value is string => typeof value === "string" && value !== "");
}

interface Card {
  number?: string;
  cvc?: string;
}
