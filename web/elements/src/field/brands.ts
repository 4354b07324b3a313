// Card brands: how a number is recognized, grouped and checked.
//
// The table is that of the published package @basis-theory/web-elements (Apache-2.0).

export interface CardType {
  type: string;
  niceType: string;
  /** Prefixes, or ranges of prefixes of equal length. */
  patterns: (number | [number, number])[];
  gaps: number[];
  lengths: number[];
  code: { name: string; size: number };
}

const GAPS = [4, 8, 12];
const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, index) => from + index);

/** The only table: one that a page chooses would tell it at which lengths a number is complete. */
const CARD_TYPES: CardType[] = [
  {
    type: "visa",
    niceType: "Visa",
    patterns: [4],
    gaps: GAPS,
    lengths: [16, 18, 19],
    code: { name: "CVV", size: 3 },
  },
  {
    type: "mastercard",
    niceType: "Mastercard",
    patterns: [[51, 55], [2221, 2229], [223, 229], [23, 26], [270, 271], 2720],
    gaps: GAPS,
    lengths: [16],
    code: { name: "CVC", size: 3 },
  },
  {
    type: "american-express",
    niceType: "American Express",
    patterns: [34, 37],
    gaps: [4, 10],
    lengths: [15],
    code: { name: "CID", size: 4 },
  },
  {
    type: "diners-club",
    niceType: "Diners Club",
    patterns: [[300, 305], 36, 38, 39],
    gaps: [4, 10],
    lengths: [14, 16, 19],
    code: { name: "CVV", size: 3 },
  },
  {
    type: "discover",
    niceType: "Discover",
    patterns: [6011, [644, 649], 65],
    gaps: GAPS,
    lengths: [16, 19],
    code: { name: "CID", size: 3 },
  },
  {
    type: "jcb",
    niceType: "JCB",
    patterns: [2131, 1800, [3528, 3589]],
    gaps: GAPS,
    lengths: range(16, 19),
    code: { name: "CVV", size: 3 },
  },
  {
    type: "unionpay",
    niceType: "UnionPay",
    patterns: [
      620, [62100, 62182], [62184, 62187], [62185, 62197], [62200, 62205], [622010, 622999], 622018,
      [62207, 62209], [623, 626], 6270, 6272, 6276, [627700, 627779], [627781, 627799], [6282, 6289], 6291,
      6292, 810, [8110, 8131], [8132, 8151], [8152, 8163], [8164, 8171],
    ],
    gaps: GAPS,
    lengths: range(14, 19),
    code: { name: "CVN", size: 3 },
  },
  {
    type: "maestro",
    niceType: "Maestro",
    patterns: [
      493698, [500000, 504174], [504176, 506698], [506779, 508999], [56, 59], 63, 67, 6,
    ],
    gaps: GAPS,
    lengths: range(12, 19),
    code: { name: "CVC", size: 3 },
  },
  {
    type: "elo",
    niceType: "Elo",
    patterns: [
      401178, 401179, 438935, 457631, 457632, 431274, 451416, 457393, 504175, [506699, 506778],
      [509000, 509999], 627780, 636297, 636368, [650031, 650033], [650035, 650051], [650405, 650439],
      [650485, 650538], [650541, 650598], [650700, 650718], [650720, 650727], [650901, 650978],
      [651652, 651679], [655000, 655019], [655021, 655058],
    ],
    gaps: GAPS,
    lengths: [16],
    code: { name: "CVE", size: 3 },
  },
  {
    type: "mir",
    niceType: "Mir",
    patterns: [[2200, 2204]],
    gaps: GAPS,
    lengths: range(16, 19),
    code: { name: "CVP2", size: 3 },
  },
  {
    type: "hiper",
    niceType: "Hiper",
    patterns: [637095, 63737423, 63743358, 637568, 637599, 637609, 637612],
    gaps: GAPS,
    lengths: [16],
    code: { name: "CVC", size: 3 },
  },
  {
    type: "hipercard",
    niceType: "Hipercard",
    patterns: [606282],
    gaps: GAPS,
    lengths: [16],
    code: { name: "CVC", size: 3 },
  },
];

/** Applies until a pattern matches. */
const UNKNOWN: CardType = {
  type: "unknown",
  niceType: "",
  patterns: [],
  gaps: GAPS,
  lengths: range(12, 19),
  code: { name: "CVC", size: 4 },
};

/** The brand whose longest matching pattern is the longest of all. */
export function brandOf(digits: string): CardType {
  let best = UNKNOWN;
  let strength = 0;
  for (const type of CARD_TYPES) {
    for (const pattern of type.patterns) {
      const length = matchLength(digits, pattern);
      if (length > strength) {
        best = type;
        strength = length;
      }
    }
  }
  return best;
}

/** The length of a pattern that the number starts with, or 0. */
function matchLength(digits: string, pattern: number | [number, number]): number {
  const [low, high] = typeof pattern === "number" ? [pattern, pattern] : pattern;
  const length = String(low).length;
  const prefix = Number(digits.slice(0, length));
  return digits.length >= length && prefix >= low && prefix <= high ? length : 0;
}

export function findType(name: unknown): CardType | undefined {
  return CARD_TYPES.find((type) => type.type === name);
}

export function passesLuhn(digits: string): boolean {
  let sum = 0;
  for (let index = 0; index < digits.length; index++) {
    const digit = Number(digits[digits.length - 1 - index]);
    const doubled = index % 2 === 1 ? digit * 2 : digit;
    sum += doubled > 9 ? doubled - 9 : doubled;
  }
  return sum % 10 === 0;
}

/** The leading digits that a page may know, once the number is complete. */
export function binOf(digits: string): string {
  return digits.slice(0, digits.length >= 16 ? 8 : 6);
}
