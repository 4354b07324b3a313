// Builds what the vault serves, into dist/, which is committed: building the vault needs no Node.
//
// `node build.mjs --check` builds in memory and fails if dist/ differs.

import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { gunzipSync, gzipSync } from "node:zlib";

import { build } from "esbuild";

const SCRIPTS = ["client", "coordinator", "field", "checkout"];
const PAGES = ["coordinator", "field"];
/** Compressed sizes that a payment page can afford, in bytes. */
const BUDGETS = { client: 25_000, coordinator: 60_000, field: 60_000, checkout: 20_000 };

const here = (path) => new URL(path, import.meta.url);
const files = new Map();
const assets = {};

for (const name of SCRIPTS) {
  const { outputFiles: [bundle] } = await build({
    entryPoints: [here(`src/${name}/index.ts`).pathname],
    bundle: true,
    write: false,
    minify: true,
    format: "iife",
    target: "es2021",
    charset: "utf8",
    legalComments: "none",
    absWorkingDir: here(".").pathname,
  });
  const bytes = Buffer.from(bundle.contents);
  const digest = createHash("sha384").update(bytes).digest();
  const integrity = `sha384-${digest.toString("base64")}`;
  const compressed = gzipSync(bytes, { level: 9 });
  files.set(`${name}.js`, bytes);
  // The hosted card form is served by the vault's own page, which needs neither.
  if (name !== "checkout") {
    assets[`${name}.js`] = { integrity, version: digest.toString("hex").slice(0, 16) };
    files.set(`${name}.js.gz`, compressed);
  }
  if (compressed.length > BUDGETS[name]) {
    throw new Error(`${name}.js has ${compressed.length} bytes compressed, more than ${BUDGETS[name]}`);
  }
  console.log(`${name}.js: ${bytes.length} bytes, ${compressed.length} compressed`);
}

for (const name of PAGES) {
  const { integrity, version } = assets[`${name}.js`];
  const page = readFileSync(here(`src/${name}.html`), "utf8")
    .replace("{script}", `${name}.js?v=${version}`)
    .replace("{integrity}", integrity);
  files.set(`${name}.html`, Buffer.from(page));
}
files.set("assets.json", Buffer.from(`${JSON.stringify(assets, null, 2)}\n`));

// Versions of zlib compress differently; what matters is what comes out.
const content = (name, bytes) => (name.endsWith(".gz") ? gunzipSync(bytes) : bytes);

if (process.argv.includes("--check")) {
  const stale = [...files].filter(([name, bytes]) => {
    const path = here(`dist/${name}`);
    return !existsSync(path) || !content(name, readFileSync(path)).equals(content(name, bytes));
  });
  if (stale.length > 0) {
    console.error(`out of date: ${stale.map(([name]) => `web/elements/dist/${name}`).join(", ")}`);
    console.error("run: cd web/elements && npm ci && npm run build");
    process.exit(1);
  }
} else {
  mkdirSync(here("dist/"), { recursive: true });
  files.forEach((bytes, name) => writeFileSync(here(`dist/${name}`), bytes));
}
