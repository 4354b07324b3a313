// Options of elements: which exist, and how they cross to the frame.

import type { ElementType } from "../messages/protocol";

export type Options = Record<string, unknown>;

const HANDLER = /^on[A-Z]/;
const CO_BADGES = ["cartes-bancaires", "bancontact", "dankort"];

/** Drops what is absent, since React passes every option, and rejects what an element cannot work with. */
export function cleanOptions(type: ElementType, options: Options, isUpdate = false): Options {
  const given = Object.entries(options).filter(([key, value]) => value !== undefined && !HANDLER.test(key));
  const clean = Object.fromEntries(given);
  if (!isUpdate && type !== "card" && typeof clean.targetId !== "string") {
    throw new Error("targetId is required");
  }
  const coBadges = clean.coBadgedSupport;
  if (coBadges !== undefined && !(Array.isArray(coBadges) && coBadges.every((name) => CO_BADGES.includes(name)))) {
    throw new Error(`coBadgedSupport accepts ${CO_BADGES.join(", ")}`);
  }
  if (clean.mask !== undefined && clean.password === true) {
    throw new Error("mask and password cannot be combined");
  }
  return clean;
}

/** Regular expressions cross as text; everything else as a copy of its own plain content. */
export function serializeOptions(options: Options): Options {
  const copy = (value: unknown, depth: number): unknown => {
    if (value instanceof RegExp) {
      return { source: value.source, flags: value.flags };
    }
    if (Array.isArray(value)) {
      return value.map((item) => copy(item, depth + 1));
    }
    if (typeof value === "object" && value !== null && depth < 8) {
      return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, copy(item, depth + 1)]));
    }
    return typeof value === "function" ? undefined : value;
  };
  return copy(options, 0) as Options;
}
