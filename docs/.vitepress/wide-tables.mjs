// Tables with three or more columns: on a phone, each row is shown as a card, with the heading of the column before each value.

const columnsMin = 3;

/** A plugin of markdown-it. */
export function wideTables(markdown) {
  markdown.core.ruler.push("wide_tables", ({ tokens }) => {
    let table;
    let titles = [];
    let column = 0;
    for (const [at, token] of tokens.entries()) {
      if (token.type === "table_open") [table, titles] = [token, []];
      else if (token.type === "tr_open") column = 0;
      else if (token.type === "th_open") titles.push(tokens[at + 1].content.replace(/[`*]/g, ""));
      else if (token.type === "td_open") token.attrSet("data-title", titles[column++] ?? "");
      else if (token.type === "thead_close" && titles.length >= columnsMin) table.attrJoin("class", "wide");
    }
  });
  // That of the theme writes no attributes.
  markdown.renderer.rules.table_open = (tokens, at, options, env, self) => {
    tokens[at].attrSet("tabindex", "0");
    return self.renderToken(tokens, at, options);
  };
}
