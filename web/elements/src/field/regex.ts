// Regular expressions of a page, for the text of a cardholder.

const SOURCE_MAX = 500;
/** More unbounded quantifiers in one expression can make matching slow even without nesting. */
const UNBOUNDED_MAX = 6;
/** Repetitions of a group that itself contains a quantifier. */
const NESTED_MAX = 10;

export interface Pattern {
  source: string;
  flags: string;
}

/** Compiles an expression, or returns undefined if it is invalid or could take exponential time. */
export function compile(given: unknown, flags?: string): RegExp | undefined {
  const { source, flags: own } = (given ?? {}) as Partial<Pattern>;
  if (typeof source !== "string" || source.length > SOURCE_MAX || !isSafe(source)) {
    return undefined;
  }
  try {
    return new RegExp(source, flags ?? String(own ?? "").replace(/[gy]/g, ""));
  } catch {
    return undefined;
  }
}

/** Rejects backreferences, nested variable repetition, and alternatives under unbounded repetition. */
export function isSafe(source: string): boolean {
  if (/\\[1-9]|\\k</.test(source)) {
    return false;
  }
  const groups: { isVariable: boolean }[] = [{ isVariable: false }];
  let closed: { isVariable: boolean } | undefined;
  let unbounded = 0;
  const tokens = source.matchAll(/\\.|\[(?:\\.|[^\]\\])*\]|\(\?(?:[:=!]|<[=!]|<\w+>)|[()|]|[*+?]\??|\{\d+(?:,\d*)?\}\??|./gsu);
  for (const [token] of tokens) {
    const repeat = repetition(token);
    if (repeat) {
      const [from, to] = repeat;
      const isVariable = from !== to;
      if (closed?.isVariable && to > NESTED_MAX) {
        return false;
      }
      unbounded += to === Infinity ? 1 : 0;
      const group = groups[groups.length - 1];
      group.isVariable ||= isVariable || (closed?.isVariable ?? false);
      closed = undefined;
      continue;
    }
    if (closed) {
      // A group without a repetition of its own.
      groups[groups.length - 1].isVariable ||= closed.isVariable;
      closed = undefined;
    }
    if (token.startsWith("(")) {
      groups.push({ isVariable: false });
    } else if (token === ")") {
      closed = groups.length > 1 ? groups.pop() : undefined;
    } else if (token === "|") {
      groups[groups.length - 1].isVariable = true;
    }
  }
  return unbounded <= UNBOUNDED_MAX;
}

function repetition(token: string): [number, number] | undefined {
  switch (token[0]) {
    case "*":
      return [0, Infinity];
    case "+":
      return [1, Infinity];
    case "?":
      return [0, 1];
    case "{": {
      const [, from, comma, to] = /^\{(\d+)(,?)(\d*)\}/.exec(token) ?? [];
      return from === undefined ? undefined : [Number(from), comma ? (to ? Number(to) : Infinity) : Number(from)];
    }
    default:
      return undefined;
  }
}
