// The inputs of each element type, and the value that they form for the API.

import { brandOf, type CardType, findType } from "./brands";
import type { Disclosure } from "./disclosure";
import type { ElementType } from "../messages/protocol";
import {
  cardNumberFormat,
  expirationFormat,
  type Format,
  parseExpiration,
  securityCodeFormat,
  textFormat,
} from "./formats";
import type { Input } from "./input";
import type { FieldOptions } from "./options";
import type { Texts } from "./texts";

export type PartName = "number" | "date" | "code" | "text";

export interface Part {
  part: PartName;
  /** The `targetId` of an input of a `card`. */
  name: string;
  /** Member of `autoComplete` and `placeholder` of a `card`. */
  completes: string;
  placeholder: string;
  inputMode: string;
  label: (texts: Texts) => string;
}

const NUMBER: Part = {
  part: "number", name: "cardNumber", completes: "number", placeholder: "cardNumber", inputMode: "numeric",
  label: (texts) => texts.cardNumber,
};
const DATE: Part = {
  part: "date", name: "expirationDate", completes: "expirationDate", placeholder: "cardExpirationDate", inputMode: "numeric",
  label: (texts) => texts.expirationDate,
};
const CODE: Part = {
  part: "code", name: "cvc", completes: "csc", placeholder: "cardSecurityCode", inputMode: "numeric",
  label: (texts) => texts.securityCode,
};
const TEXT: Part = { part: "text", name: "text", completes: "", placeholder: "", inputMode: "text", label: (texts) => texts.text };

export const PARTS: Record<Exclude<ElementType, "copyButton" | "data">, Part[]> = {
  card: [NUMBER, DATE, CODE],
  cardNumber: [NUMBER],
  cardExpirationDate: [DATE],
  cardVerificationCode: [CODE],
  text: [TEXT],
};

interface Surrounding {
  disclosure: Disclosure;
  brand: () => CardType | undefined;
}

export function formatOf(part: PartName, options: FieldOptions, { disclosure, brand }: Surrounding): Format {
  switch (part) {
    case "number":
      return cardNumberFormat(disclosure);
    case "date":
      return expirationFormat({
        showsSpacing: () => options.flag("showSpacing"),
        // A negative number would let the page choose a date to compare with.
        maxElapsedYears: () => Math.max(options.number("maxElapsedExpirationYear") ?? 0, 0),
        now: () => new Date(),
      });
    case "code":
      return securityCodeFormat(brand);
    case "text":
      return textFormat({ mask: options.mask, maxLength: options.number("maxLength"), validation: () => options.validation });
  }
}

/** The brand that decides about the security code: of the number beside it, or as the page tells. */
export function codeBrand(options: FieldOptions, number: Input | undefined): CardType | undefined {
  if (!number) {
    return findType(options.raw("cardBrand"));
  }
  const brand = brandOf(number.value);
  return brand.type === "unknown" ? undefined : brand;
}

/** The value that the coordinator sends to the API. */
export function valueOf(type: ElementType, inputs: Map<PartName, Input>, options: FieldOptions): unknown {
  const expiration = parseExpiration(inputs.get("date")?.value ?? "");
  switch (type) {
    case "card":
      return {
        number: inputs.get("number")?.value,
        expiration_month: expiration?.month,
        expiration_year: expiration?.year,
        cvc: inputs.get("code")?.value,
      };
    case "cardExpirationDate":
      return expiration ? { ...expiration, text: inputs.get("date")?.shown } : null;
    case "text": {
      const shown = inputs.get("text")?.shown ?? "";
      return options.transform ? shown.replace(...options.transform) : shown;
    }
    default:
      return [...inputs.values()][0]?.value ?? null;
  }
}

/** The texts of a value that the page or the vault provides, by input. */
export function textsOf(type: ElementType, value: unknown): Map<PartName, string> {
  const texts = new Map<PartName, string>();
  const add = (part: PartName, text: unknown) => {
    if (typeof text === "string" || typeof text === "number") {
      texts.set(part, String(text));
    }
  };
  const date = (month: unknown, year: unknown) =>
    month !== undefined && year !== undefined
      ? `${String(month).padStart(2, "0")}/${String(year).slice(-2)}`
      : undefined;
  const given = (typeof value === "object" && value !== null ? value : {}) as Record<string, unknown>;
  switch (type) {
    case "card":
      add("number", given.number);
      add("date", date(given.expiration_month, given.expiration_year));
      add("code", given.cvc);
      break;
    case "cardExpirationDate":
      add("date", typeof value === "string" ? value : date(given.month, given.year));
      break;
    case "text":
      add("text", value);
      break;
    default:
      add(type === "cardNumber" ? "number" : "code", value);
  }
  return texts;
}
