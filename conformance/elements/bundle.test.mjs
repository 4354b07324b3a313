// The files that the vault serves: built from the committed sources, and served as built.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { fileURLToPath } from "node:url";

import { attempt, baseUrl, publicKey } from "./vault.mjs";

const SOURCES = fileURLToPath(new URL("../../web/elements/", import.meta.url));

attempt("bundle", "the committed files are what the sources build, and the types fit", () => {
  execFileSync(process.execPath, ["build.mjs", "--check"], { cwd: SOURCES, stdio: "pipe" });
  execFileSync(process.execPath, ["node_modules/typescript/bin/tsc", "--noEmit"], { cwd: SOURCES, stdio: "pipe" });
});

attempt("bundle", "the served scripts have the published integrity values", async () => {
  const base = `${baseUrl}/web-elements/2.17.0`;
  const published = await (await fetch(`${base}/assets.json`)).json();
  const paths = { "client.js": "client/index.js", "coordinator.js": "hosted-elements/coordinator.js", "field.js": "hosted-elements/field.js" };
  assert.deepEqual(Object.keys(published).sort(), Object.keys(paths).sort());
  for (const [name, { integrity }] of Object.entries(published)) {
    for (const encoding of ["gzip", "identity"]) {
      const response = await fetch(`${base}/${paths[name]}`, { headers: { "Accept-Encoding": encoding } });
      const bytes = Buffer.from(await response.arrayBuffer());
      assert.equal(`sha384-${createHash("sha384").update(bytes).digest("base64")}`, integrity, `${name} ${encoding}`);
    }
  }
  for (const page of ["coordinator", "field"]) {
    const html = await (await fetch(`${base}/hosted-elements/${page}.html?apiKey=${publicKey}`)).text();
    assert.ok(html.includes(`integrity="${published[`${page}.js`].integrity}"`));
  }
});
