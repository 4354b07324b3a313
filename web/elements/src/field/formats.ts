// How each kind of input groups, restricts and judges what is typed.

import { brandOf, type CardType, passesLuhn } from "./brands";
import type { Disclosure } from "./disclosure";
import type { ErrorKind } from "../messages/protocol";

export interface Judgment {
  /** Undefined if the value is complete. */
  error?: ErrorKind;
  maskSatisfied: boolean;
}

/** A format of one input: `clean` keeps what the cardholder typed, `show` adds what is typed for them. */
export interface Format {
  clean(text: string): string;
  show(clean: string): string;
  judge(clean: string): Judgment;
  /** Whether nothing more can be typed. */
  isFull?(clean: string): boolean;
}

const digits = (text: string) =>
  // Keyboards in Arabic and other scripts type digits of their own.
  text.normalize("NFKC").replace(/\p{Nd}/gu, (digit) => String(decimalValue(digit))).replace(/[^0-9]/g, "");

function decimalValue(digit: string): number {
  const code = digit.codePointAt(0) as number;
  const zeros = [0x30, 0x660, 0x6f0, 0x966, 0x9e6, 0xe50];
  const zero = zeros.find((zero) => code >= zero && code <= zero + 9);
  return zero === undefined ? NaN : code - zero;
}

const complete: Judgment = { maskSatisfied: true };
const incomplete: Judgment = { error: "incomplete", maskSatisfied: true };
const invalid: Judgment = { error: "invalid", maskSatisfied: true };

export function cardNumberFormat(disclosure?: Disclosure): Format {
  const max = (clean: string) => Math.max(...brandOf(clean).lengths);
  return {
    clean: (text) => {
      const all = digits(text);
      return all.slice(0, max(all));
    },
    show: (clean) => {
      const { gaps } = brandOf(clean);
      return [...clean].map((digit, index) => (gaps.includes(index) ? ` ${digit}` : digit)).join("");
    },
    judge: (clean) => {
      if (!brandOf(clean).lengths.includes(clean.length)) {
        return incomplete;
      }
      return passesLuhn(clean) && !disclosure?.isExtendedBy(clean) ? complete : invalid;
    },
    isFull: (clean) => clean.length === max(clean),
  };
}

export function securityCodeFormat(brand: () => CardType | undefined): Format {
  const size = () => brand()?.code.size;
  return {
    clean: (text) => digits(text).slice(0, size() ?? 4),
    show: (clean) => clean,
    judge: (clean) => {
      const expected = size();
      const fits = expected === undefined ? [3, 4].includes(clean.length) : clean.length === expected;
      return fits ? complete : incomplete;
    },
    isFull: (clean) => clean.length === (size() ?? 4),
  };
}

/** The furthest expiration in the future that is plausible, in years. */
const YEARS_AHEAD_MAX = 19;

export interface Expiration {
  month: number;
  year: number;
}

export function parseExpiration(clean: string): Expiration | undefined {
  return clean.length === 4
    ? { month: Number(clean.slice(0, 2)), year: 2000 + Number(clean.slice(2)) }
    : undefined;
}

export function expirationFormat(options: { showsSpacing: () => boolean; maxElapsedYears: () => number; now: () => Date }): Format {
  return {
    clean: (text) => {
      // The format of `cc-exp` in HTML, which browsers and password managers fill in.
      const [, yearOf, monthOf] = /^\s*20(\d\d)-(\d\d)\s*$/.exec(text) ?? [];
      if (yearOf !== undefined) {
        return `${monthOf}${yearOf}`;
      }
      const [first, second] = text.split(/[/\-. ]+/, 2);
      const [month, rest] = [digits(first ?? ""), digits(second ?? "")];
      // A month of one digit, typed with a separator or because no month starts with it.
      const isSingle = month.length === 1 && (rest !== "" || text.includes("/") || month > "1");
      let all = (isSingle ? `0${month}` : month) + rest;
      // Browsers fill in years of four digits.
      if (all.length === 6 && all.slice(2, 4) === "20") {
        all = all.slice(0, 2) + all.slice(4);
      }
      return all.slice(0, 4);
    },
    show: (clean) => {
      const slash = options.showsSpacing() ? " / " : "/";
      return clean.length < 2 ? clean : clean.slice(0, 2) + slash + clean.slice(2);
    },
    judge: (clean) => {
      const date = parseExpiration(clean);
      const month = Number(clean.slice(0, 2));
      if (clean.length >= 2 && (month < 1 || month > 12)) {
        return invalid;
      }
      if (!date) {
        return incomplete;
      }
      const now = options.now();
      const months = (date.year - now.getFullYear()) * 12 + date.month - (now.getMonth() + 1);
      const isPlausible = months >= -12 * options.maxElapsedYears() && months <= 12 * YEARS_AHEAD_MAX;
      return isPlausible ? complete : invalid;
    },
    isFull: (clean) => clean.length === 4,
  };
}

export type Mask = (RegExp | string)[];

/** Free text, with an optional mask and an optional rule. */
export function textFormat(options: { mask?: Mask; maxLength?: number; validation: () => RegExp | undefined }): Format {
  const { mask, maxLength } = options;
  const length = mask?.reduce((sum, place) => sum + (typeof place === "string" ? place.length : 1), 0);
  const show = (clean: string) => (mask ? fillMask(mask, clean) : clean);
  return {
    clean: (text) => (mask ? stripMask(mask, text) : text.slice(0, maxLength ?? 5_000)),
    show,
    judge: (clean) => {
      const shown = show(clean);
      const maskSatisfied = !mask || shown.length === length;
      const rule = options.validation();
      if (rule && clean !== "" && !rule.test(shown)) {
        return { error: "invalid", maskSatisfied };
      }
      return maskSatisfied ? complete : { error: "incomplete", maskSatisfied };
    },
    isFull: (clean) => (mask ? show(clean).length === length : false),
  };
}

/** The typed characters that fit the places of a mask. */
function stripMask(mask: Mask, text: string): string {
  let clean = "";
  let rest = [...text];
  for (const place of mask) {
    if (typeof place === "string") {
      // The fixed text may have been typed, or already be there.
      if (rest.slice(0, place.length).join("") === place) {
        rest = rest.slice(place.length);
      }
      continue;
    }
    const index = rest.findIndex((letter) => place.test(letter));
    if (index < 0) {
      break;
    }
    clean += rest[index];
    rest = rest.slice(index + 1);
  }
  return clean;
}

/** Adds fixed texts between typed characters, and after the last one that leads up to them. */
function fillMask(mask: Mask, clean: string): string {
  const letters = [...clean];
  let shown = "";
  for (const place of mask) {
    if (letters.length === 0 && (typeof place !== "string" || shown === "")) {
      break;
    }
    shown += typeof place === "string" ? place : letters.shift();
  }
  return shown;
}
