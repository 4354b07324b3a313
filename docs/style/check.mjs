// Checks the prose of the documentation, and the descriptions of openapi.json, against the vocabulary.

import { readFileSync } from "node:fs";
import { join } from "node:path";

import { docs, markdownFiles, root } from "../.vitepress/sources.mjs";
import { rules } from "./words.mjs";

const projectFiles = ["README.md", "CHANGELOG.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "examples/shop/README.md"];

/** The lines of a Markdown text with everything removed that is not prose. */
function proseOf(markdown) {
  let inFence = false;
  return markdown.split("\n").map((line) => {
    if (/^\s*```/.test(line)) {
      inFence = !inFence;
      return "";
    }
    if (inFence) return "";
    return line
      .replace(/``.*?``|`[^`]*`/g, "`code`")
      .replace(/\]\([^)]*\)/g, "]")
      .replace(/<https?:[^>]*>|https?:\S+/g, "")
      .replace(/"[^"]*"/g, '"quoted"');
  });
}

/** Every description and summary of openapi.json, with its place. */
function descriptions(value, place = "") {
  if (!value || typeof value !== "object") return [];
  return Object.entries(value).flatMap(([name, inner]) => {
    const at = `${place}/${name}`;
    if (name === "example" || name === "examples") return [];
    if ((name === "description" || name === "summary") && typeof inner === "string") return [[at, inner]];
    return descriptions(inner, at);
  });
}

function texts() {
  const pages = ["index.md", "get-started.md", "walks.md", ...["api", "concepts", "decisions", "guides", "operate", "trust"].flatMap(markdownFiles)];
  const files = [...projectFiles, ...pages.map((page) => `docs/${page}`)];
  const api = JSON.parse(readFileSync(join(docs, "api/openapi.json"), "utf8"));
  return [
    ...files.map((file) => [file, readFileSync(join(root, file), "utf8")]),
    ...descriptions(api).map(([place, text]) => [`openapi.json ${place}`, text]),
  ];
}

let count = 0;
let words = 0;
for (const [file, text] of texts()) {
  proseOf(text).forEach((line, at) => {
    words += line.split(/\s+/).length;
    for (const [pattern, advice] of rules) {
      const found = line.match(pattern)?.[0];
      if (!found) continue;
      count += 1;
      console.error(`${file}:${at + 1}: "${found}": ${advice}`);
    }
  });
}
console.log(`style: ${words} words, ${rules.length} rules, ${count} findings`);
if (count > 0) process.exit(1);
