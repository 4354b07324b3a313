// The documentation site. `cargo xtask docs` builds and checks it.

import { cpSync, mkdirSync } from "node:fs";
import { dirname, join } from "node:path";

import { writeCollection } from "../openapi/postman.mjs";
import { check } from "./check.mjs";
import { linkedFiles, resolveLinks, slugify } from "./links.mjs";
import { checkPictures, pictures } from "./pictures.mjs";
import { placeholder, useRelativeBase } from "./relative-base.mjs";
import { wideTables } from "./wide-tables.mjs";
import { root } from "./sources.mjs";
import { sections, sidebar } from "./sidebar.mjs";

const icon =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="7" fill="#1d5fa8"/>' +
  '<path d="M21 12a6.5 6.5 0 1 0 0 8" fill="none" stroke="#fff" stroke-width="3.5" stroke-linecap="round"/></svg>';
const isBuild = process.argv.includes("build");

export default {
  title: "Cloakroom",
  description: "A self-hosted token vault that implements the Basis Theory API.",
  lang: "en-US",
  // In the page itself: browsers otherwise request an icon from the root of the host.
  head: [["link", { rel: "icon", href: `data:image/svg+xml,${encodeURIComponent(icon)}` }]],
  base: isBuild ? placeholder : "/",
  srcExclude: ["node_modules/**", "pictures/node_modules/**"],
  outDir: process.env.DOCS_OUT_DIR,
  cacheDir: process.env.DOCS_CACHE_DIR,
  markdown: {
    anchor: { slugify },
    config: (markdown) => {
      markdown.use(resolveLinks);
      markdown.use(pictures);
      markdown.use(wideTables);
      // Expressions of the vault look like those of Vue, which must not evaluate them.
      for (const rule of ["text", "code_inline"]) {
        const render = markdown.renderer.rules[rule];
        markdown.renderer.rules[rule] = (tokens, at, options, env, self) =>
          render(tokens, at, options, env, self).replaceAll("{{", "&#123;&#123;");
      }
    },
  },
  themeConfig: {
    nav: sections,
    sidebar: sidebar(),
    outline: { level: [2, 3], label: "On this page" },
    search: { provider: "local" },
    docFooter: { prev: false, next: false },
  },
  async buildEnd({ outDir }) {
    checkPictures();
    for (const [source, address] of linkedFiles) {
      const target = join(outDir, address);
      mkdirSync(dirname(target), { recursive: true });
      cpSync(join(root, source), target);
    }
    await writeCollection(join(outDir, "api/postman.json"));
    useRelativeBase(outDir);
    check(outDir);
  },
};
