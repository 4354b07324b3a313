// Blocks are found, executed and compared as their fences say. `npm test` runs it.

import assert from "node:assert/strict";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";

import { blocksOf } from "./blocks.mjs";
import { compare } from "./compare.mjs";
import { Shell } from "./shell.mjs";

const json = (text) => ({ language: "json", text });

test("fences say what happens to a block", () => {
  const page = [
    "```sh", "echo 1", "```",
    "```json output", "{}", "```",
    "```json", "{}", "```",
    '```sh no-run reason="needs root"', "reboot", "```",
    "<!-- execute", "touch logo.png", "-->",
    "1. In a list:", "", "   ```python", "   if True:", "       print(1)", "   ```",
  ].join("\n");
  const blocks = blocksOf(page);
  assert.deepEqual(blocks.map(({ action }) => action), ["execute", "compare", "skip", "execute", "execute"]);
  assert.equal(blocks[2].reason, "needs root");
  assert.equal(blocks[3].isHidden, true);
  assert.equal(blocks[4].text, "if True:\n    print(1)");
});

test("shown members must be in the output, others may be", () => {
  assert.equal(compare(json('{"a": 1}'), '{"a": 1, "b": 2}'), undefined);
  assert.match(compare(json('{"a": 1}'), '{"a": 2}'), /\$\.a is 2, not 1/);
  assert.match(compare(json('{"a": 1}'), "{}"), /missing/);
  assert.match(compare(json('{"a": 1}'), '{"a": 1}{"a": 1}'), /2/);
  assert.match(compare(json('{"a": [1]}'), '{"a": [1, 2]}'), /2 items/);
  assert.equal(compare(json('{"a": [1, "..."]}'), '{"a": [1, 2]}'), undefined);
});

test("ids, times and secrets are not compared", () => {
  const shown = '{"id": "0197...", "at": "2030-01-31T12:00:00.9+00:00", "key": "key_test_us_pub_A"}';
  const actual = '{"id": "9a9a8a4c-5d3e-4b2f-8c1d-0e7f6a5b4c3d", "at": "2026-11-18T18:04:51.271717+00:00", "key": "key_test_us_pub_ZXhcPKtu5eNXtEbDSC8CxR"}';
  assert.equal(compare(json(shown), actual), undefined);
});

test("text is compared line by line, and an ellipsis skips lines", () => {
  const text = (shown) => ({ language: "text", text: shown });
  assert.equal(compare(text("a\nb"), "a\nb\n"), undefined);
  assert.match(compare(text("a"), "a\nb\n"), /more/);
  assert.match(compare(text("a\nc"), "a\nb\n"), /lacks/);
  assert.equal(compare(text("a\n...\nd"), "a\nb\nc\nd\n"), undefined);
});

test("blocks of a page share variables, and a failure is reported", async () => {
  const shell = new Shell(mkdtempSync(join(tmpdir(), "docs-")), "");
  const run = (text, language = "sh") => shell.run({ text, language });
  assert.equal((await run("A=1; export B=2")).error, undefined);
  assert.equal((await run("echo $A")).output, "1\n");
  assert.equal((await run("console.log(process.env.B)", "js")).output, "2\n");
  assert.match((await run("echo shown; false | true")).error, /exited with 1[^]*shown/);
  await shell.stop();
});

test("an unset variable fails a block", async () => {
  const shell = new Shell(mkdtempSync(join(tmpdir(), "docs-")), "");
  assert.match((await shell.run({ text: "echo $UNSET_VARIABLE", language: "sh" })).error, /unbound variable/);
  await shell.stop();
});
