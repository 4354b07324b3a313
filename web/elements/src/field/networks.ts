// The choice of a network for a co-badged card.

import type { Texts } from "./texts";

const NAMES: Record<string, string> = {
  "visa": "Visa",
  "mastercard": "Mastercard",
  "maestro": "Maestro",
  "american-express": "American Express",
  "discover": "Discover",
  "cartes-bancaires": "Cartes Bancaires",
  "bancontact": "Bancontact",
  "dankort": "Dankort",
};

export interface BinInfo {
  brand?: string;
  additional?: { brand?: string }[];
}

/** The name of a brand as pages know it: `Cartes Bancaires` is `cartes-bancaires`. */
export const brandId = (name: unknown) => String(name ?? "").toLowerCase().replace(/[\s_]+/g, "-");

/** The networks to choose from; empty unless the card has a co-badge that the page supports. */
export function networksOf(info: BinInfo | undefined, supported: readonly string[]): string[] {
  const all = [info?.brand, ...(info?.additional ?? []).map(({ brand }) => brand)].map(brandId).filter((id) => id !== "");
  const coBadges = all.filter((id) => supported.includes(id));
  const international = all.filter((id) => !["cartes-bancaires", "bancontact", "dankort"].includes(id));
  return coBadges.length > 0 && international.length > 0 ? [...new Set([...international, ...coBadges])] : [];
}

export class NetworkChoice {
  readonly node = document.createElement("fieldset");
  #selected: string | undefined;
  #offered = "";

  constructor(readonly texts: Texts, readonly changed: () => void) {
    this.node.className = "networks";
    this.node.hidden = true;
  }

  get selected(): string | undefined {
    return this.#selected;
  }

  offer(networks: readonly string[], preferred: readonly string[]): void {
    if (this.#offered === networks.join()) {
      return;
    }
    this.#offered = networks.join();
    this.#selected = preferred.find((id) => networks.includes(id));
    this.node.hidden = networks.length === 0;
    const legend = document.createElement("legend");
    legend.className = "hidden";
    legend.textContent = this.texts.network;
    this.node.replaceChildren(legend, ...networks.map((id) => this.#option(id)));
    this.changed();
  }

  #option(id: string): HTMLLabelElement {
    const [label, radio] = [document.createElement("label"), document.createElement("input")];
    radio.type = "radio";
    radio.name = "network";
    radio.value = id;
    radio.checked = id === this.#selected;
    radio.addEventListener("change", () => {
      this.#selected = id;
      this.changed();
    });
    label.append(radio, NAMES[id] ?? id);
    return label;
  }
}
