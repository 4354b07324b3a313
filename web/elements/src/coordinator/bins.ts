// Details of a BIN, from the vault's table.

import { camelKeys } from "./keys";
import type { Api } from "./http";

const CACHED_MAX = 50;

export class BinLookup {
  #found = new Map<string, Promise<unknown>>();

  constructor(readonly api: Api) {}

  /** Finds details; undefined if the vault has none or cannot be reached. A field works without them. */
  find(bin: string): Promise<unknown> {
    if (!/^\d{6,8}$/.test(bin)) {
      return Promise.resolve(undefined);
    }
    let found = this.#found.get(bin);
    if (!found) {
      found = this.api.json("GET", `/enrichments/card-details?bin=${bin}`, undefined)
        .then(({ body }) => camelKeys(body), () => undefined);
      this.#found.set(bin, found);
      const [oldest] = this.#found.keys();
      if (this.#found.size > CACHED_MAX) {
        this.#found.delete(oldest);
      }
    }
    return found;
  }
}
