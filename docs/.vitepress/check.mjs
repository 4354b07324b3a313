// Checks the built site: every link and anchor has a target, and no page loads anything from another host.

import { existsSync, readFileSync, statSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";

import { files } from "./relative-base.mjs";

/** An answer is at most this far from the start page. */
const clicksMax = 2;

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

/** How many clicks each page is from the start page. */
function clicks(folder, texts) {
  const start = join(folder, "index.html");
  const found = new Map([[start, 0]]);
  for (const page of found.keys()) {
    for (const [, element, address] of texts.get(page)?.matchAll(attributes) ?? []) {
      const path = address.split("#")[0];
      if (element !== "a" || !path || /^[a-z]+:/.test(path)) continue;
      const named = resolve(dirname(page), decodeURI(path));
      const target = [named, `${named}.html`, join(named, "index.html")].find((file) => texts.has(file));
      if (target && !found.has(target)) found.set(target, found.get(page) + 1);
    }
  }
  return found;
}

/** The pages that the walks lead to, with their distance from the start page. Throws if one is too far. */
function checkWalks(folder, texts) {
  const walks = join(folder, "walks.html");
  const main = texts.get(walks).match(/<main[^]*<\/main>/)?.[0] ?? "";
  const distances = clicks(folder, texts);
  const answers = [...main.matchAll(attributes)]
    .filter(([, element, address]) => element === "a" && !/^(#|[a-z]+:)/.test(address))
    .map(([, , address]) => resolve(dirname(walks), decodeURI(address.split("#")[0])))
    .map((page) => (texts.has(page) ? page : join(page, "index.html")));
  const far = answers.filter((page) => !(distances.get(page) <= clicksMax));
  for (const page of far) console.error(`walks: ${relative(folder, page)} is ${distances.get(page)} clicks from the start page`);
  if (far.length) throw new Error(`${far.length} answers are more than ${clicksMax} clicks from the start page`);
  console.log(`walks: ${answers.length} answers, at most ${Math.max(...answers.map((page) => distances.get(page)))} clicks`);
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
  checkWalks(folder, texts);
}
