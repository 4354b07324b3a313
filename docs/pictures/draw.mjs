// Draws every Mermaid source of this folder, and those in fenced blocks of pages, as a light and a dark SVG.
//
// The pictures are committed: the site and code hosts need neither Mermaid nor a browser. A comment in each picture has the
// digest of its source; the build of the site fails if it is outdated.

import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

import { chromium } from "playwright-core";

import { digest, sources } from "../.vitepress/pictures.mjs";

const folder = dirname(fileURLToPath(import.meta.url));
const mermaid = readFileSync(join(folder, "node_modules/mermaid/dist/mermaid.min.js"), "utf8");

/** Both have a background of their own, so that a picture is readable wherever it is shown. */
const themes = {
  "": {
    background: "#ffffff", primaryColor: "#e8f0fa", primaryBorderColor: "#1d5fa8", primaryTextColor: "#1b1f24",
    lineColor: "#4a5568", clusterBkg: "#f6f8fa", clusterBorder: "#8b98a9", edgeLabelBackground: "#ffffff",
    noteBkgColor: "#fff4d6", noteTextColor: "#1b1f24", noteBorderColor: "#b58900", textColor: "#1b1f24", sequenceNumberColor: "#ffffff",
  },
  "-dark": {
    background: "#1b1b1f", primaryColor: "#22344d", primaryBorderColor: "#7db4f0", primaryTextColor: "#f0f3f6",
    lineColor: "#b3bdc9", clusterBkg: "#202127", clusterBorder: "#7a8796", edgeLabelBackground: "#1b1b1f",
    noteBkgColor: "#4a3f1d", noteTextColor: "#f0f3f6", noteBorderColor: "#d6a93a", textColor: "#f0f3f6",
    actorTextColor: "#f0f3f6", signalTextColor: "#f0f3f6", signalColor: "#b3bdc9", sequenceNumberColor: "#1b1b1f", darkMode: true,
  },
};

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
const page = await browser.newPage();
await page.setContent("<html><body></body></html>");
await page.addScriptTag({ content: mermaid });
for (const { name, text } of sources()) {
  for (const [suffix, variables] of Object.entries(themes)) {
    const svg = await page.evaluate(
      async ({ id, text, variables }) => {
        globalThis.mermaid.initialize({
          startOnLoad: false,
          theme: "base",
          themeVariables: { fontFamily: "system-ui, sans-serif", fontSize: "15px", ...variables },
          htmlLabels: false,
          deterministicIds: true,
          deterministicIDSeed: id,
          flowchart: { htmlLabels: false, curve: "basis", nodeSpacing: 28, rankSpacing: 44, padding: 10, subGraphTitleMargin: { top: 4, bottom: 14 } },
          state: { nodeSpacing: 70, rankSpacing: 56 },
          sequence: { mirrorActors: false },
        });
        const { svg } = await globalThis.mermaid.render(id, text);
        // Mermaid returns HTML, in which some elements are not closed; a file must be XML.
        const container = document.createElement("div");
        container.innerHTML = svg;
        // The title of a group at its left: in the middle, edges would cross it.
        for (const group of container.querySelectorAll(".cluster")) {
          const box = group.querySelector("rect");
          const label = group.querySelector(".cluster-label");
          const y = label?.getAttribute("transform")?.match(/, ?(-?[\d.]+)\)/)?.[1];
          if (box && y) label.setAttribute("transform", `translate(${Number(box.getAttribute("x")) + 8}, ${y})`);
          for (const text of label?.querySelectorAll("text, tspan") ?? []) text.setAttribute("text-anchor", "start");
        }
        return new XMLSerializer().serializeToString(container.firstElementChild);
      },
      { id: `${name}${suffix}`, text, variables },
    );
    const { background } = variables;
    const opened = svg.replace(/<svg ([^>]*?)style="[^"]*"/, `<svg $1style="background: ${background}; font-family: system-ui, sans-serif"`);
    writeFileSync(join(folder, `${name}${suffix}.svg`), `<!-- source ${digest(text)} -->\n${opened}\n`);
  }
  console.log(name);
}
await browser.close();
