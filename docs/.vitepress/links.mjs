// Links that work on a code host and on the site: relative to the file in the repository.

import { posix } from "node:path";

import { isFile, pageOf, sourceOf } from "./sources.mjs";

/** Files of the repository that pages link to; the build copies them to the site. */
export const linkedFiles = new Map();

/** The address of a copied file. Browsers show text with the ending of text files instead of downloading it. */
function addressOf(source) {
  return `files/${source}${/\.(json|svg)$/.test(source) ? "" : ".txt"}`;
}

/** Resolves a link of `page`, or returns undefined if its target has no place on the site. */
function resolve(page, href) {
  if (/^([a-z]+:|#|\/)/i.test(href)) return { href };
  const [path, fragment] = href.split("#");
  const source = posix.join(posix.dirname(sourceOf(page)), decodeURI(path));
  const from = posix.dirname(page);
  const target = pageOf(source);
  if (target) {
    const relative = posix.relative(from, target);
    return { href: `${relative.startsWith(".") ? "" : "./"}${relative}${fragment ? `#${fragment}` : ""}` };
  }
  if (!isFile(source)) return undefined;
  linkedFiles.set(source, addressOf(source));
  return { href: `${posix.relative(from, addressOf(source))}`, isCopy: true };
}

/** A plugin of markdown-it. */
export function resolveLinks(markdown) {
  markdown.core.ruler.after("inline", "resolve_links", ({ tokens, env }) => {
    if (!env.relativePath) return;
    for (const { children } of tokens) {
      const links = children?.filter(({ type }) => type === "link_open" || type === "link_close") ?? [];
      for (let i = 0; i + 1 < links.length; i += 2) {
        const [open, close] = [links[i], links[i + 1]];
        const resolved = resolve(env.relativePath, open.attrGet("href") ?? "");
        if (!resolved) {
          // A folder of the repository: its name is shown, without a link.
          open.type = close.type = "text";
          open.tag = close.tag = "";
        } else {
          open.attrSet("href", resolved.href);
          // The router of the site leaves links with a target alone.
          if (resolved.isCopy) open.attrSet("target", "_self");
        }
      }
    }
  });
}

/** The anchors that code hosts generate, so that a link to a heading works in both places. */
export function slugify(heading) {
  return heading
    .trim()
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\p{M}_ -]/gu, "")
    .replaceAll(" ", "-");
}
