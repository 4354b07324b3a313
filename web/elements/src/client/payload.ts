// Replaces elements in a payload by gaps that only the coordinator can fill.

import type { Payload, Placement } from "../messages/protocol";
import { Element } from "./element";

const DEPTH_MAX = 32;

/** Elements of this script, recognized by a private field rather than by a property that anything could have. */
function placementOf(value: object): Omit<Placement, "path"> | undefined {
  if (Element.isElement(value)) {
    return { elementId: value.id };
  }
  const { element, method, formattingOptions } = value as {
    element?: unknown;
    method?: string;
    formattingOptions?: { format?: string };
  };
  return Element.isElement(element)
    ? { elementId: element.id, method, format: formattingOptions?.format }
    : undefined;
}

/** Copies plain JSON and cuts out elements. */
export function extract(value: unknown): Payload {
  const placements: Placement[] = [];
  const copy = (value: unknown, path: (string | number)[]): unknown => {
    if (path.length > DEPTH_MAX) {
      throw new Error("The payload is nested too deeply");
    }
    if (typeof value !== "object" || value === null) {
      return typeof value === "function" || typeof value === "symbol" ? undefined : value;
    }
    const placement = placementOf(value);
    if (placement) {
      placements.push({ ...placement, path });
      return null;
    }
    if (Array.isArray(value)) {
      return value.map((item, index) => copy(item, [...path, index]));
    }
    if (typeof (value as { toJSON?: unknown }).toJSON === "function") {
      return (value as { toJSON(): unknown }).toJSON();
    }
    return Object.fromEntries(
      Object.entries(value)
        .filter(([, item]) => item !== undefined)
        .map(([key, item]) => [key, copy(item, [...path, key])]),
    );
  };
  return { json: copy(value, []), placements };
}

/** Whether a payload contains an element at any depth. */
export function hasElement(value: unknown, depth = 0): boolean {
  if (typeof value !== "object" || value === null || depth > DEPTH_MAX) {
    return false;
  }
  return placementOf(value) !== undefined || Object.values(value).some((item) => hasElement(item, depth + 1));
}
