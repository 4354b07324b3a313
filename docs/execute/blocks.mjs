// The fenced blocks of a page that are executed, compared or skipped.
//
// The words after the language of a fence say what happens to a block:
//
//   ```sh                              executed in the shell of the page
//   ```sh background until="vault.env" started, and ready when the file exists
//   ```sh fails                        executed; an error is what the page shows
//   ```sh no-run reason="needs root"   not executed; counted and printed with the reason
//   ```json output                     compared with the output of the executed block before it
//
// `<!-- execute ... -->` has commands that a reader need not see, such as creating a file that the reader has.

const languages = { sh: "shell", js: "node", python: "python" };
const outputs = ["json", "text"];

const attribute = (info, name) => info.match(new RegExp(`\\b${name}="([^"]*)"`))?.[1];

function blockOf(info, lines, line) {
  const [language, ...words] = info.split(/\s+/);
  const text = lines.join("\n");
  if (outputs.includes(language) && words.includes("output")) return { action: "compare", language, text, line };
  if (!languages[language]) return undefined;
  if (words.includes("no-run")) return { action: "skip", reason: attribute(info, "reason") ?? "", text, line };
  const until = words.includes("background") ? attribute(info, "until") : undefined;
  return { action: "execute", language, text, line, until, mayFail: words.includes("fails") };
}

/** The blocks of a Markdown text, in order. Blocks in lists are indented; the indentation is removed. */
export function blocksOf(markdown) {
  const blocks = [];
  const lines = markdown.split("\n");
  for (let at = 0; at < lines.length; at += 1) {
    const hidden = lines[at].match(/^<!-- execute$/);
    const fence = lines[at].match(/^(\s*)```(\S.*)$/);
    if (!hidden && !fence) continue;
    const start = at + 1;
    const isEnd = (line) => (hidden ? line === "-->" : line.trim() === "```");
    while (at + 1 < lines.length && !isEnd(lines[at + 1])) at += 1;
    const content = lines.slice(start, at + 1);
    at += 1;
    const indentation = fence?.[1].length ?? 0;
    const block = hidden
      ? { action: "execute", language: "sh", text: content.join("\n"), line: start, isHidden: true }
      : blockOf(fence[2], content.map((line) => line.slice(indentation)), start);
    if (block) blocks.push(block);
  }
  return blocks;
}
