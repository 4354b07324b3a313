// Makes the built site independent of its address, so that any folder of any web server can hold it.
//
// VitePress writes an absolute base path into pages and scripts. The build uses a placeholder, which becomes a relative
// path in pages, and in scripts the address that the first page was loaded from.

import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join, posix, relative } from "node:path";

import { parseAst } from "rollup/parseAst";

export const placeholder = "/__DOCS_BASE__/";

export function files(folder, ending) {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(ending))
    .map((name) => join(folder, name));
}

/** Positions of the string and template literals that contain the placeholder. */
function literals(node, found = []) {
  if (!node || typeof node !== "object") return found;
  if (Array.isArray(node)) {
    for (const item of node) literals(item, found);
    return found;
  }
  const isText = node.type === "Literal" && typeof node.value === "string" && node.value.includes(placeholder);
  const isTemplate =
    node.type === "TemplateLiteral" && node.quasis.some(({ value }) => value.raw.includes(placeholder));
  if (isText || isTemplate) {
    found.push([node.start, node.end]);
    return found;
  }
  for (const value of Object.values(node)) literals(value, found);
  return found;
}

function rewriteScript(file) {
  let text = readFileSync(file, "utf8");
  if (!text.includes(placeholder)) return;
  for (const [start, end] of literals(parseAst(text)).sort((a, b) => b[0] - a[0])) {
    const replaced = `(${text.slice(start, end)}).replaceAll("/__DOCS"+"_BASE__/",globalThis.__BASE)`;
    text = text.slice(0, start) + replaced + text.slice(end);
  }
  writeFileSync(file, text);
}

function rewritePage(file, folder) {
  const up = posix.join(relative(dirname(file), folder) || ".", "/");
  const start =
    `<script>globalThis.__BASE=new URL(${JSON.stringify(up)},location.href).pathname;` +
    // Links that were resolved on the first page stay correct when the router changes the address.
    `addEventListener("DOMContentLoaded",()=>{for(const link of document.querySelectorAll("a[href]"))link.href=link.href})</script>`;
  // The data of the site is a JSON text in a script of the page.
  const text = readFileSync(file, "utf8")
    .replace(/(__VP_SITE_DATA__=JSON\.parse\()("(?:[^"\\]|\\.)*")\)/, `$1$2.replaceAll("/__DOCS"+"_BASE__/",__BASE))`)
    .replace("<head>", `<head>${start}`);
  const [head, ...rest] = text.split(/(__VP_SITE_DATA__=JSON\.parse\("(?:[^"\\]|\\.)*")/);
  const outside = (part) => (part.startsWith("__VP_SITE_DATA__") ? part : part.replaceAll(placeholder, up));
  writeFileSync(file, [head, ...rest].map(outside).join(""));
}

export function useRelativeBase(folder) {
  for (const file of files(folder, ".js")) rewriteScript(file);
  for (const file of files(folder, ".html")) rewritePage(file, folder);
}
