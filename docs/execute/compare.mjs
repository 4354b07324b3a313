// Compares what a page shows with what its commands printed.

/** What differs between two runs: ids, times, secrets, ports and durations. */
const variable = [
  [/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, "<id>"],
  [/\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}(\.\d+)?( ?(Z|UTC|[+-]\d{2}:?\d{2}))?/g, "<time>"],
  [/key_(test|prod)_us_(pub|pvt|mgt)_[\w.]+/g, "<key>"],
  [/(127\.0\.0\.1|localhost):\d+/g, "<address>"],
  [/\b[0-9a-f]{32,}\b/g, "<hex>"],
  [/\b\d+(\.\d+)? ?(ms|s|µs)\b/g, "<duration>"],
];

export const redact = (text) => variable.reduce((done, [pattern, name]) => done.replace(pattern, name), text);

const ellipsis = "...";

/** The JSON documents of an output, which follow each other with or without line breaks. */
export function documentsOf(text) {
  const found = [];
  let start = -1;
  let depth = 0;
  let inString = false;
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at];
    if (inString) {
      if (character === "\\") at += 1;
      else if (character === '"') inString = false;
    } else if (character === '"' && depth > 0) inString = true;
    else if (character === "{" || character === "[") {
      if (depth === 0) start = at;
      depth += 1;
    } else if ((character === "}" || character === "]") && depth > 0) {
      depth -= 1;
      if (depth === 0) found.push(JSON.parse(text.slice(start, at + 1)));
    }
  }
  return found;
}

function difference(shown, actual, path) {
  if (typeof shown === "string" && typeof actual === "string") {
    if (shown.endsWith(ellipsis)) {
      const start = redact(shown.slice(0, -ellipsis.length));
      // The shown part of an id or a secret is made up: only text that is not variable can be compared.
      return /^[\w-]*$/.test(start) || redact(actual).startsWith(start) ? undefined : `${path}: ${actual}`;
    }
    return redact(shown) === redact(actual) ? undefined : `${path} is ${JSON.stringify(actual)}, not ${JSON.stringify(shown)}`;
  }
  if (shown === null || actual === null || typeof shown !== "object" || typeof actual !== "object") {
    return Object.is(shown, actual) ? undefined : `${path} is ${JSON.stringify(actual)}, not ${JSON.stringify(shown)}`;
  }
  if (Array.isArray(shown) !== Array.isArray(actual)) return `${path} has another type`;
  if (Array.isArray(shown)) {
    const isPartial = shown.at(-1) === ellipsis;
    const items = isPartial ? shown.slice(0, -1) : shown;
    if (isPartial ? actual.length < items.length : actual.length !== items.length) return `${path} has ${actual.length} items`;
    return items.map((item, at) => difference(item, actual[at], `${path}[${at}]`)).find(Boolean);
  }
  // A page may leave out members that do not matter to its topic.
  return Object.keys(shown)
    .filter((name) => name !== ellipsis)
    .map((name) => (name in actual ? difference(shown[name], actual[name], `${path}.${name}`) : `${path}.${name} is missing`))
    .find(Boolean);
}

function textDifference(shown, actual) {
  const have = redact(actual).trim().split("\n").map((line) => line.trimEnd());
  let at = 0;
  let skips = false;
  for (const line of redact(shown).trim().split("\n").map((text) => text.trimEnd())) {
    if (line === ellipsis) {
      skips = true;
      continue;
    }
    const found = skips ? have.indexOf(line, at) : have[at] === line ? at : -1;
    if (found < 0) return `the output lacks, at this place: ${line}`;
    at = found + 1;
    skips = false;
  }
  return skips || at === have.length ? undefined : `the output has more: ${have[at]}`;
}

/** What is wrong with the output of a block, or undefined. */
export function compare({ language, text }, output) {
  if (language === "text") return textDifference(text, output);
  const shown = documentsOf(text);
  const actual = documentsOf(output);
  if (shown.length !== actual.length) return `the page shows ${shown.length} JSON documents, the output has ${actual.length}`;
  return shown.map((document, at) => difference(document, actual[at], "$")).find(Boolean);
}
