// Tables of expressions: every row has data, an expression and its result.

const header = /^\| data \| expression \| result \|$/;

/** The rows of all such tables of a page. */
export function rowsOf(markdown) {
  const lines = markdown.split("\n");
  return lines.flatMap((line, start) => {
    if (!header.test(line)) return [];
    const length = lines.slice(start).findIndex((row) => !row.startsWith("|"));
    const rows = lines.slice(start + 2, start + (length < 0 ? lines.length : length));
    return rows.map((row, at) => {
      const cells = row.split(/(?<!\\)\|/).slice(1, -1);
      const [data, expression, result] = cells.map((cell) => cell.trim().replace(/^`|`$/g, "").replaceAll("\\|", "|"));
      return { line: start + 3 + at, data: JSON.parse(data), expression, result: JSON.parse(result) };
    });
  });
}

/** What is wrong with a row, or undefined: the expression is evaluated as the mask of a token. */
export async function evaluate({ data, expression, result }, { BASE_URL, PUBLIC_KEY }) {
  const response = await fetch(`${BASE_URL}/tokens`, {
    method: "POST",
    headers: { "BT-API-KEY": PUBLIC_KEY, "Content-Type": "application/json" },
    body: JSON.stringify({ type: "token", data, mask: expression }),
  });
  const body = await response.json();
  if (response.status !== 201) return `${expression}: ${JSON.stringify(body)}`;
  const [have, want] = [body.data, result].map((value) => JSON.stringify(value));
  return have === want ? undefined : `${expression} is ${have}, not ${want}`;
}
