// Values of responses that stay here: the page gets references to them.

import { failure } from "../messages/channel";
import type { DataElementReference } from "../messages/protocol";

/** Older responses are wiped. */
const RESPONSES_MAX = 100;
const ELEMENT_ID = "data";

export class References {
  #responses = new Map<string, Map<string, unknown>>();

  /** Keeps a JSON value and returns its shape, with a reference in place of each text, number and boolean. */
  store(value: unknown): unknown {
    const correlationId = crypto.randomUUID();
    const leaves = new Map<string, unknown>();
    const refer = (value: unknown, path: string): unknown => {
      if (value === null || value === undefined) {
        return value;
      }
      if (Array.isArray(value)) {
        return value.map((item, index) => refer(item, `${path}[${index}]`));
      }
      if (typeof value === "object") {
        const entries = Object.entries(value);
        return Object.fromEntries(entries.map(([key, item]) => [key, refer(item, path ? `${path}.${key}` : key)]));
      }
      leaves.set(path, value);
      return { correlationId, elementId: ELEMENT_ID, path } satisfies DataElementReference;
    };
    const shape = refer(value, "");
    this.#responses.set(correlationId, leaves);
    for (const oldest of this.#responses.keys()) {
      if (this.#responses.size <= RESPONSES_MAX) {
        break;
      }
      this.#responses.delete(oldest);
    }
    return shape;
  }

  /** For the frames of fields only. */
  read(reference: DataElementReference): unknown {
    const leaves = this.#responses.get(String(reference?.correlationId));
    if (!leaves?.has(String(reference.path))) {
      throw failure("The referenced value is no longer available");
    }
    return leaves.get(String(reference.path));
  }

  forgetAll(): void {
    this.#responses.clear();
  }
}
