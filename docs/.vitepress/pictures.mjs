// Pictures with a dark version: the site shows the one of its theme, a code host the light one.

import { createHash } from "node:crypto";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join, posix } from "node:path";

import { docs } from "./sources.mjs";

/** Pages with Mermaid in a fenced block, because they are generated. The name of the picture, and the page. */
const blocks = { "threeds-states": "api/threeds.md" };

const fence = /^```mermaid\n([^]*?)^```$/m;

export function digest(text) {
  return createHash("sha256").update(text).digest("hex").slice(0, 16);
}

/** The name and the Mermaid text of every picture. */
export function sources() {
  const files = readdirSync(join(docs, "pictures")).filter((name) => name.endsWith(".mmd"));
  return [
    ...files.map((name) => ({ name: name.slice(0, -".mmd".length), text: readFileSync(join(docs, "pictures", name), "utf8") })),
    // Transitions that do not change the state would cover the others.
    ...Object.entries(blocks).map(([name, page]) => ({
      name,
      text: readFileSync(join(docs, page), "utf8").match(fence)[1].replace(/^\s*(\w+) --> \1\b.*\n/gm, ""),
    })),
  ];
}

/** Throws if a picture does not show its source. */
export function checkPictures() {
  for (const { name, text } of sources()) {
    for (const suffix of ["", "-dark"]) {
      const file = join(docs, "pictures", `${name}${suffix}.svg`);
      const isCurrent = existsSync(file) && readFileSync(file, "utf8").startsWith(`<!-- source ${digest(text)} -->`);
      if (!isCurrent) throw new Error(`pictures/${name}${suffix}.svg is outdated: run npm ci && npm run draw in docs/pictures`);
    }
  }
}

/** The picture of a fenced block, as Markdown. */
function pictureOfBlock(page) {
  const [name] = Object.entries(blocks).find(([, file]) => file === page) ?? [];
  return name && `![${name}](${posix.relative(posix.dirname(page), `pictures/${name}.svg`)})`;
}

/** A plugin of markdown-it. */
export function pictures(markdown) {
  markdown.core.ruler.before("normalize", "mermaid_blocks", (state) => {
    const picture = pictureOfBlock(state.env.relativePath ?? "");
    if (picture) state.src = state.src.replace(fence, picture);
  });
  markdown.core.ruler.after("inline", "pictures", ({ tokens, env, Token }) => {
    const folder = join(docs, posix.dirname(env.relativePath ?? ""));
    for (const block of tokens) {
      block.children = block.children?.flatMap((image) => addDarkVersion(image, folder, Token)) ?? null;
    }
  });
}

function addDarkVersion(image, folder, Token) {
  const source = image.type === "image" ? image.attrGet("src") : "";
  const dark = source.replace(/\.svg$/, "-dark.svg");
  if (dark === source || !existsSync(join(folder, dark))) return [image];
  const twin = Object.assign(new Token("image", "img", 0), image, { attrs: image.attrs.map((pair) => [...pair]) });
  twin.attrSet("src", dark);
  twin.attrSet("class", "picture only-dark");
  image.attrSet("class", "picture only-light");
  return [image, twin];
}
