// Where the pages of the site come from: the Markdown files of docs/, and a few from the rest of the repository.

import { existsSync, readFileSync, readdirSync, statSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import { fileURLToPath } from "node:url";

export const docs = join(dirname(fileURLToPath(import.meta.url)), "..");
export const root = join(docs, "..");

/** Files outside of docs/ that are pages of the site, by the last part of their address. */
export const projectPages = {
  architecture: "ARCHITECTURE.md",
  changelog: "CHANGELOG.md",
  contributing: "CONTRIBUTING.md",
  readme: "README.md",
  security: "SECURITY.md",
  shop: "examples/shop/README.md",
};

/** The file in the repository that the page of this site was made from. */
export function sourceOf(page) {
  const name = page.match(/^project\/(.*)\.md$/)?.[1];
  return projectPages[name] ?? posix.join("docs", page);
}

/** The page of this site that shows a file of the repository, if one does. */
export function pageOf(source) {
  const [name] = Object.entries(projectPages).find(([, file]) => file === source) ?? [];
  if (name) return `project/${name}.md`;
  return /^docs\/.*\.md$/.test(source) ? source.slice("docs/".length) : undefined;
}

/** Whether the repository has this file, and it is not a folder. */
export function isFile(source) {
  const path = join(root, source);
  return existsSync(path) && statSync(path).isFile();
}

/** The Markdown files of a folder of docs/, including those of its folders. */
export function markdownFiles(folder) {
  return readdirSync(join(docs, folder), { withFileTypes: true })
    .flatMap((entry) => {
      const path = posix.join(folder, entry.name);
      if (entry.isDirectory()) return markdownFiles(path);
      return /^[^[].*\.md$/.test(entry.name) ? [path] : [];
    })
    .sort();
}

/** The first heading of a page of docs/, without markup. */
export function titleOf(page) {
  const heading = readFileSync(join(docs, page), "utf8").match(/^# (.*)$/m)?.[1];
  return (heading ?? page).replaceAll("`", "");
}
