// Executes the commands of the site's pages, page by page, each page against a new vault.

import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";

import { markdownFiles, root } from "../.vitepress/sources.mjs";
import { blocksOf } from "./blocks.mjs";
import { compare } from "./compare.mjs";
import { executeReference } from "./reference.mjs";
import { add, emptyResult } from "./result.mjs";
import { Shell } from "./shell.mjs";
import { evaluate, rowsOf } from "./tables.mjs";
import { Vault } from "./vault.mjs";

/** Pages at a time: a vault waits for its database more than it computes. */
const concurrency = 3;

const { values: options } = parseArgs({
  options: {
    program: { type: "string" },
    folder: { type: "string" },
    page: { type: "string", multiple: true },
    record: { type: "boolean", default: false },
  },
});

/** Whether a page is among those of the options, which name all pages if there are none. */
const isChosen = (file) => !options.page || options.page.some((text) => file.includes(text));

/** Pages that need more than a test vault, and what runs their commands. */
const elsewhere = {
  "docs/operate/audit.md": "needs the days and checkpoints of a running vault; the tests of the audit log run the commands",
  "docs/operate/ha.md": "needs six machines; cargo xtask faults runs the deployment",
  "docs/operate/install.md": "needs root, a database server and certificates; the page of each path is executed",
  "docs/operate/install/compose.md": "packaging/test-compose.sh executes it",
  "docs/operate/install/container.md": "packaging/test-container.sh executes it",
  "docs/operate/install/debian.md": "packaging/test-install.sh executes it",
  "docs/operate/install/dev-container.md": "packaging/test-dev-container.sh executes it",
  "docs/operate/install/managed-postgresql.md": "packaging/test-install.sh executes it",
  "docs/operate/install/kubernetes.md": "needs a cluster; packaging/test-chart.sh validates the chart",
  "docs/operate/keys.md": "needs an HSM, a KMS or custodians; the tests of custody and rotation run the commands",
  "docs/operate/releases.md": "needs a published release; cargo xtask release runs the commands",
};

/** The pages whose commands a reader runs. */
function pages() {
  const inDocs = ["index.md", "get-started.md", ...["guides", "concepts", "api", "operate", "trust"].flatMap(markdownFiles)];
  const files = inDocs.map((page) => join("docs", page));
  return files.filter((file) => !file.includes("/rules/") && isChosen(file));
}

/** Blocks of pages that are run elsewhere are counted as skipped. */
const withReason = (file, block) =>
  block.action === "execute" && !block.isHidden && elsewhere[file] ? { ...block, action: "skip", reason: elsewhere[file] } : block;

/** A folder for `PATH`: the program under test, and an environment for `pip install`. */
function preparePrograms(folder) {
  const environment = join(folder, "python");
  if (!existsSync(join(environment, "bin/pip"))) execFileSync("python3", ["-m", "venv", environment]);
  const programs = join(folder, "bin");
  rmSync(programs, { recursive: true, force: true });
  mkdirSync(programs, { recursive: true });
  symlinkSync(options.program, join(programs, "cloakroom"));
  return `${programs}:${join(environment, "bin")}`;
}

const result = emptyResult();

async function executeBlocks(file, blocks, shell, result) {
  let output = "";
  for (const block of blocks) {
    const place = `${file}:${block.line}`;
    if (block.action === "skip") {
      result.skipped.push({ place, reason: block.reason });
      if (!block.reason) result.failures.push(`${place}: no-run without a reason`);
      output = undefined;
      continue;
    }
    if (block.action === "compare") {
      if (output === undefined) continue;
      result.compared += 1;
      const problem = compare(block, output);
      if (problem) result.failures.push(`${place}: ${problem}\n${output.slice(0, 2000)}`);
      continue;
    }
    const done = await shell.run(block);
    if (!block.isHidden) result.executed += 1;
    if (done.error) {
      result.failures.push(`${place}: ${done.error}`);
      return;
    }
    output = done.output;
  }
}

/** Runs a page, and a second time if it fails: on a busy machine a command can take too long. */
async function executePage(file, path) {
  const first = await attemptPage(file, path);
  if (first.failures.length === 0) return add(result, first);
  console.log(`again: ${first.failures.join("\n")}`);
  return add(result, await attemptPage(file, path));
}

async function attemptPage(file, path) {
  const result = emptyResult();
  await runPage(file, path, result).catch((error) => result.failures.push(`${file}: ${error.stack}`));
  return result;
}

async function runPage(file, path, result) {
  const text = readFileSync(join(root, file), "utf8");
  const blocks = blocksOf(text).map((block) => withReason(file, block));
  const rows = rowsOf(text);
  const folder = join(options.folder, file.replaceAll("/", "-").replace(/\.md$/, ""));
  rmSync(folder, { recursive: true, force: true });
  if (!blocks.some(({ action }) => action === "execute") && rows.length === 0) return executeBlocks(file, blocks, undefined, result);
  const shell = new Shell(join(folder, "work"), path);
  // A page that starts a vault itself is not given another one.
  const vault = blocks.some(({ until }) => until === "vault.env") ? undefined : await Vault.start(options.program, folder);
  try {
    if (vault) await shell.run(vault.setup);
    await executeBlocks(file, blocks, shell, result);
    for (const row of rows) {
      const problem = await evaluate(row, vault.variables);
      if (problem) result.failures.push(`${file}:${row.line}: ${problem}`);
      result.executed += 1;
      result.compared += 1;
    }
  } finally {
    await shell.stop();
    await vault?.stop();
  }
}

async function executeAll(path) {
  const waiting = pages();
  const work = async () => {
    for (let file = waiting.shift(); file; file = waiting.shift()) {
      const started = Date.now();
      await executePage(file, path);
      const seconds = (Date.now() - started) / 1000;
      if (seconds > 1) console.log(`${file}: ${seconds.toFixed(1)} s`);
    }
  };
  await Promise.all(Array.from({ length: concurrency }, work));
}

function report() {
  const { executed, compared, skipped, failures } = result;
  for (const { place, reason } of skipped) console.log(`skipped ${place}: ${reason}`);
  for (const failure of failures) console.error(`FAILED ${failure}\n`);
  console.log(`${((Date.now() - started) / 1000).toFixed(0)} s`);
  console.log(`executed ${executed}, compared ${compared}, skipped ${skipped.length}, failed ${failures.length}`);
  if (failures.length > 0 || executed === 0) process.exit(1);
}

const started = Date.now();
const path = preparePrograms(options.folder);
const hasReference = isChosen("reference");
await Promise.all([executeAll(path), hasReference && executeReference(options, path, result)]);
report();
