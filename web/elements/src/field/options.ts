// Options of a field, checked: they come from the page.

import { configurationError } from "../messages/channel";
import type { ElementType } from "../messages/protocol";
import { compile } from "./regex";
import type { Mask } from "./formats";

export type Given = Record<string, unknown>;

const INPUT_MODES = ["decimal", "email", "none", "numeric", "search", "tel", "text", "url"];
const AUTOCOMPLETE = /^[a-z0-9-]{1,30}$/;
const TEXT_MAX = 300;
const MASK_MAX = 200;

/** Options that the page cannot change once an element exists. Updates with them are ignored: React sends them again. */
const FIXED = new Set([
  "targetId", "validateOnChange", "enableCopy", "copyIconStyles", "mask", "maxLength", "showSpacing",
  "maxElapsedExpirationYear",
]);
/**
 * Options that judge or transform what is typed. They change only while the field is empty: a page that could try one
 * rule after the other on the same value would learn it.
 */
const RULES = new Set(["validation", "transform"]);

export class FieldOptions {
  #given: Given = {};
  mask: Mask | undefined;
  validation: RegExp | undefined;
  transform: [RegExp, string] | undefined;

  /** Takes over options; before the element is mounted, all of them. */
  merge(changes: Given, isMounted: boolean, isEmpty: boolean): void {
    const applicable = Object.entries(changes).filter(([name]) =>
      !isMounted || (!FIXED.has(name) && (isEmpty || !RULES.has(name)))
    );
    const merged = { ...this.#given, ...Object.fromEntries(applicable) };
    const rules = {
      mask: parseMask(merged.mask),
      validation: parseRule(merged.validation, "validation"),
      transform: parseTransform(merged.transform),
    };
    this.#given = merged;
    Object.assign(this, rules);
  }

  flag(name: string): boolean {
    return this.#given[name] === true;
  }

  text(name: string): string | undefined {
    const value = this.#given[name];
    return typeof value === "string" ? value.slice(0, TEXT_MAX) : undefined;
  }

  number(name: string): number | undefined {
    const value = this.#given[name];
    return typeof value === "number" && Number.isFinite(value) ? value : undefined;
  }

  texts(name: string): string[] {
    const value = this.#given[name];
    return Array.isArray(value) ? value.filter((item): item is string => typeof item === "string") : [];
  }

  raw(name: string): unknown {
    return this.#given[name];
  }

  /** A member of an option that is a text for most elements and an object for `card`. */
  part(name: string, member: string, type: ElementType): string | undefined {
    const value = this.#given[name];
    const part = type === "card" ? (value as Record<string, unknown> | undefined)?.[member] : value;
    return typeof part === "string" ? part.slice(0, TEXT_MAX) : undefined;
  }

  autoComplete(member: string, type: ElementType): string {
    const value = this.part("autoComplete", member, type);
    return value && AUTOCOMPLETE.test(value) ? value : "off";
  }

  inputMode(fallback: string): string {
    const value = this.text("inputMode");
    return value && INPUT_MODES.includes(value) ? value : fallback;
  }
}

function parseRule(given: unknown, name: string): RegExp | undefined {
  if (given === undefined || given === null) {
    return undefined;
  }
  const rule = compile(given);
  if (!rule) {
    throw configurationError(`${name} is not a regular expression, or could take too long to match`);
  }
  return rule;
}

function parseTransform(given: unknown): [RegExp, string] | undefined {
  if (given === undefined || given === null) {
    return undefined;
  }
  const [pattern, replacement] = Array.isArray(given) ? given : [given, ""];
  const rule = compile(pattern, "gu");
  if (!rule) {
    throw configurationError("transform is not a regular expression, or could take too long to match");
  }
  return [rule, typeof replacement === "string" ? replacement : ""];
}

function parseMask(given: unknown): Mask | undefined {
  if (given === undefined || given === null) {
    return undefined;
  }
  if (!Array.isArray(given) || given.length > MASK_MAX) {
    throw configurationError("mask must be an array of regular expressions and texts");
  }
  return given.map((place) => {
    if (typeof place === "string" && place !== "" && place.length <= 50) {
      return place;
    }
    const rule = parseRule(place, "mask");
    if (!rule) {
      throw configurationError("mask must be an array of regular expressions and texts");
    }
    return rule;
  });
}
