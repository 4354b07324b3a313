// Values of the fields on this page, as their frames report them.

import { Channel, configurationError, failure } from "../messages/channel";
import type { Source } from "./places";
import type { ElementType, Placement, Report } from "../messages/protocol";

interface Field {
  type: ElementType;
  frame: Window;
  channel: Channel;
  report: Report;
  /** The field whose value this one shows. */
  followed?: string;
}

/** What fills a gap of a payload. */
export interface Resolved extends Source {
  value: unknown;
  typed: Report["display"];
  errors: Report["errors"];
}

interface Expiration {
  month: number;
  year: number;
  text: string;
}

const EMPTY: Report = {
  value: null,
  display: "",
  isTransformed: false,
  complete: false,
  errors: "incomplete",
  state: { metadata: { complete: false, valid: true, maskSatisfied: true, empty: true } },
};
const READ_TIMEOUT_MS = 10_000;
const MONTHS = [
  "January", "February", "March", "April", "May", "June",
  "July", "August", "September", "October", "November", "December",
];

export class Fields {
  #fields = new Map<string, Field>();

  /** Admits a frame. A page may choose ids, so an id in use stays with its frame. */
  join(id: string, type: ElementType, frame: Window, port: MessagePort, more: [string, (...args: never[]) => unknown][]): void {
    if (this.#find(id)) {
      return;
    }
    const handlers = new Map<string, (...args: never[]) => unknown>([
      ["report", (report: Report) => this.#receive(id, report)],
      ["follow", (source: string) => this.#follow(id, source)],
      ["read", () => this.#readFollowed(id)],
      ["pressed", () => this.#finishOthers(id)],
      ["leave", () => this.forget(id)],
      ...more,
    ]);
    this.#fields.set(id, { type, frame, channel: new Channel(port, handlers), report: EMPTY });
  }

  /** Wipes a value. */
  forget(id: string): void {
    const field = this.#fields.get(id);
    if (field) {
      field.report = EMPTY;
      field.channel.close(new Error("Element was removed from the DOM"));
      this.#fields.delete(id);
    }
  }

  forgetAll(): void {
    [...this.#fields.keys()].forEach((id) => this.forget(id));
  }

  /** Takes the current values of fields: what was typed last may still be on its way. */
  async refresh(ids: string[]): Promise<void> {
    const late = new Promise<never>((_, reject) => {
      setTimeout(() => reject(failure("Timeout while trying to securely read elements values")), READ_TIMEOUT_MS);
    });
    const seen = new Set<string>();
    await Promise.race([Promise.all(ids.map((id) => this.#use(id, seen))), late]);
  }

  /** Uses the followed field first: a value counts as used wherever it is shown. */
  async #use(id: string, seen: Set<string>): Promise<void> {
    const field = this.#find(id);
    if (!field || seen.has(id)) {
      return;
    }
    seen.add(id);
    if (field.followed) {
      await this.#use(field.followed, seen);
    }
    const report = await field.channel.call("use");
    if (report) {
      this.#receive(id, report as Report);
    }
  }

  /** The value for a place in a payload, and the errors if the field is not complete. */
  resolve({ elementId, method, format }: Placement): Resolved {
    const field = this.#find(elementId);
    if (!field) {
      throw failure("Element was removed from the DOM");
    }
    const { type, report } = field;
    if (type === "copyButton" || type === "data") {
      throw configurationError("A copy button has no value");
    }
    return {
      value: valueFor(field, method, format),
      errors: report.complete ? null : report.errors ?? "incomplete",
      type,
      typed: report.display,
      isTransformed: report.isTransformed,
    };
  }

  /** A field whose frame is still on the page; the value of any other is wiped. */
  #find(id: string): Field | undefined {
    const field = this.#fields.get(id);
    if (field?.frame.closed) {
      this.forget(id);
      return undefined;
    }
    return field;
  }

  /** A click into one field is proof that the cardholder has left the others. */
  #finishOthers(id: string): void {
    for (const [other, { channel }] of this.#fields) {
      if (other !== id) {
        channel.notify("finish");
      }
    }
  }

  #receive(id: string, report: Report): void {
    const field = this.#find(id);
    if (!field) {
      return;
    }
    field.report = report;
    for (const follower of this.#fields.values()) {
      if (follower.followed === id && follower.type !== "copyButton") {
        follower.channel.notify("followed", report.display, report.state);
      }
    }
  }

  /** Shows the value of another field. Only a copy button may follow a field of another type. */
  #follow(id: string, source: string): void {
    const [follower, followed] = [this.#find(id), this.#find(source)];
    if (!follower || !followed || id === source) {
      throw failure("Element is not mounted");
    }
    const fits = follower.type === followed.type || (follower.type === "copyButton" && followed.type !== "card");
    if (!fits || followed.followed === id) {
      throw configurationError("An element can follow another element of the same type only");
    }
    follower.followed = source;
    if (follower.type !== "copyButton") {
      follower.channel.notify("followed", followed.report.display, followed.report.state);
    }
  }

  #readFollowed(id: string): string {
    const field = this.#find(id);
    const source = field?.followed ? this.#find(field.followed) : undefined;
    const display = field?.type === "copyButton" ? source?.report.display : undefined;
    if (typeof display !== "string") {
      throw failure("Element is not mounted");
    }
    return display;
  }
}

function valueFor({ type, report }: Field, method?: string, format?: string): unknown {
  if (type !== "cardExpirationDate" || report.value === null) {
    return report.value;
  }
  const { month, year, text } = report.value as Expiration;
  switch (method) {
    case "month":
      return month;
    case "year":
      return year;
    case "format":
      return formatDate(month, year, String(format));
    default:
      return text;
  }
}

/** Formats a month by the tokens of Luxon that apply to one. */
export function formatDate(month: number, year: number, format: string): string {
  const name = MONTHS[month - 1] ?? "";
  const tokens: Record<string, string> = {
    yyyy: String(year),
    y: String(year),
    yy: String(year).slice(-2),
    MMMM: name,
    MMM: name.slice(0, 3),
    MM: String(month).padStart(2, "0"),
    M: String(month),
    LL: String(month).padStart(2, "0"),
    L: String(month),
  };
  return format.slice(0, 50).replace(/yyyy|yy|y|MMMM|MMM|MM|M|LL|L/g, (token) => tokens[token]);
}
