// Names of JSON members: conversion between the page's camel case and the API's snake case.

/** Members whose content belongs to the caller and is passed on as it is. */
const VERBATIM = new Set(["data", "metadata", "mask"]);
/** Assigning to these would change the object's prototype instead of its content. */
const FORBIDDEN = new Set(["__proto__", "constructor", "prototype"]);

export function isForbidden(key: string): boolean {
  return FORBIDDEN.has(key);
}

const toSnake = (key: string) => key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
const toCamel = (key: string) => key.replace(/(?!^)_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());

export const snakeKeys = (value: unknown): unknown => convert(value, toSnake);
export const camelKeys = (value: unknown): unknown => convert(value, toCamel);

function convert(value: unknown, rename: (key: string) => string): unknown {
  if (Array.isArray(value)) {
    return value.map((item) => convert(item, rename));
  }
  if (typeof value !== "object" || value === null) {
    return value;
  }
  const result: Record<string, unknown> = {};
  for (const [key, item] of Object.entries(value)) {
    if (!isForbidden(key)) {
      result[rename(key)] = VERBATIM.has(key) ? item : convert(item, rename);
    }
  }
  return result;
}
