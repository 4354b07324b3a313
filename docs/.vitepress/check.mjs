// Checks the built site: every link and anchor has a target, and no page loads anything from another host.

import { existsSync, readFileSync, statSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";

import { files } from "./relative-base.mjs";

const attributes = /<(a|img|script|link|iframe|source)\b[^>]*?\s(?:href|src)="([^"]*)"/g;

function idsOf(html) {
  return new Set([...html.matchAll(/\sid="([^"]*)"/g)].map(([, id]) => id));
}

/** What is wrong with one reference of a page, if anything is. */
function problem(pages, page, [, element, address]) {
  if (/^(https?:)?\/\//.test(address)) return element === "a" ? undefined : `loads ${address}`;
  if (/^(mailto|data):/.test(address)) return undefined;
  const [path, fragment] = address.replaceAll("&amp;", "&").split("#");
  const named = path ? resolve(dirname(page), decodeURI(path)) : page;
  const target = existsSync(named) && statSync(named).isDirectory() ? join(named, "index.html") : named;
  const found = [target, `${target}.html`].find((file) => existsSync(file));
  if (!found) return `${address} does not exist`;
  const ids = pages.get(found);
  if (fragment && ids && !ids.has(decodeURIComponent(fragment))) return `${address} has no such heading`;
  return undefined;
}

/** Throws if a page has a dead link. */
export function check(folder) {
  const texts = new Map(files(folder, ".html").map((file) => [file, readFileSync(file, "utf8")]));
  const pages = new Map([...texts].map(([file, html]) => [file, idsOf(html)]));
  let links = 0;
  const problems = [...texts].flatMap(([file, html]) => {
    // The page for unknown addresses is served at any depth.
    if (file.endsWith("404.html")) return [];
    const found = [...html.matchAll(attributes)];
    links += found.length;
    return found.map((match) => problem(pages, file, match)).filter(Boolean).map((text) => `${relative(folder, file)}: ${text}`);
  });
  for (const text of new Set(problems)) console.error(text);
  if (problems.length) throw new Error(`${new Set(problems).size} dead links`);
  console.log(`${pages.size - 1} pages, ${links} links, 0 dead`);
}
