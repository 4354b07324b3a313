// What a page is told of a number besides its brand: BIN and last four, of one number.

import { binOf } from "./brands";

const SHORTEST_BIN = 6;

/**
 * Limits what a page learns of a number to the BIN and last four of one complete value.
 *
 * Some brands have numbers of 12 to 19 digits, so the beginning of a number can be complete too, and its last four digits
 * are digits from the middle. Only the cardholder decides when a number is finished: a page can move the focus and send
 * requests while the number is being typed.
 */
export class Disclosure {
  #number = "";
  #isFinished = false;

  facts(number: string): { cardLast4?: string; cardBin?: string } {
    return this.#isFinished && number === this.#number ? { cardLast4: number.slice(-4), cardBin: binOf(number) } : {};
  }

  /** The cardholder left the field with a complete number. */
  finish(number: string): void {
    this.use(number);
    this.#isFinished ||= number === this.#number;
  }

  /** A request contains a complete number; its response has the last four. */
  use(number: string): void {
    this.#number ||= number;
  }

  /** Whether a number continues the disclosed one: two last fours of one number would be too much of it. */
  isExtendedBy(number: string): boolean {
    return this.#number !== "" && number !== this.#number && number.startsWith(this.#number);
  }

  /** Starts over once the cardholder deleted the BIN. Changes by the page, such as `clear`, do not count. */
  typed(number: string): void {
    if (!number.startsWith(this.#number.slice(0, SHORTEST_BIN))) {
      this.#number = "";
      this.#isFinished = false;
    }
  }
}
