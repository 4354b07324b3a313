// A field: its inputs, its state, and what the page and the coordinator are told about it.

import { Channel, configurationError } from "../messages/channel";
import type {
  CardMetadata,
  DataElementReference,
  ElementType,
  ErrorKind,
  FieldError,
  Report,
  State,
} from "../messages/protocol";
import { applyIconStyle, Style } from "./style";
import { copy, Visibility } from "./clipboard";
import { brandOf } from "./brands";
import { Disclosure } from "./disclosure";
import { brandIcon, copyIcon, showBrand } from "./icons";
import { Input } from "./input";
import { type BinInfo, brandId, NetworkChoice, networksOf } from "./networks";
import { FieldOptions, type Given } from "./options";
import { codeBrand, formatOf, type Part, type PartName, PARTS, textsOf, valueOf } from "./parts";
import type { Surroundings } from "./surroundings";

const LISTENABLE_KEYS = ["Enter", "Escape"];
/** Keys by which a cardholder leaves an input. */
const LEAVING_KEYS = ["Enter", "Tab"];
const BIN_MIN = 6;
const BIN_MAX = 8;

/** Members of a card that an input provides. */
const MEMBERS: Record<PartName, string[]> = {
  number: ["number"],
  date: ["expiration_month", "expiration_year"],
  code: ["cvc"],
  text: ["text"],
};

type FieldType = keyof typeof PARTS;

export class Field {
  readonly #type: FieldType;
  readonly #page: Channel;
  readonly #coordinator: Channel;
  readonly #surroundings: Surroundings;
  readonly #options = new FieldOptions();
  readonly #style = new Style(false);
  readonly #container = document.createElement("form");
  readonly #inputs = new Map<PartName, Input>();
  readonly #icon = brandIcon();
  readonly #networks: NetworkChoice;
  readonly #disclosure = new Disclosure();
  /** Inputs whose errors are shown. */
  readonly #judged = new Set<PartName>();
  #binInfo: BinInfo | undefined;
  #lookedUp = "";
  #reported = "";
  /** The state of the followed field, while this one shows its value. */
  #followed: State | undefined;
  #staticValue = "";
  /** Whether the value is the cardholder's. */
  #isTyped = false;

  constructor(type: ElementType, page: Channel, coordinator: Channel, surroundings: Surroundings) {
    this.#type = type as FieldType;
    this.#page = page;
    this.#coordinator = coordinator;
    this.#surroundings = surroundings;
    this.#networks = new NetworkChoice(surroundings.texts, () => this.#settle());
  }

  configure(given: Given): State {
    this.#options.merge(given, false, true);
    this.#build();
    this.#render();
    this.#takeValue();
    this.#coordinator.notify("report", this.report());
    return this.#state();
  }

  update(changes: Given): State {
    this.#options.merge(changes, true, [...this.#inputs.values()].every((input) => input.isEmpty));
    this.#render();
    this.#takeValue();
    this.#settle();
    return this.#state();
  }

  validate(): void {
    this.#parts().forEach(({ part }) => this.#judged.add(part));
    this.#settle(true);
  }

  clear(): void {
    this.#followed = undefined;
    this.#isTyped = false;
    this.#inputs.forEach((input) => input.wipe());
    this.#judged.clear();
    this.#settle();
  }

  focus(): void {
    [...this.#inputs.values()][0]?.node.focus();
  }

  blur(): void {
    this.#inputs.forEach((input) => input.node.blur());
  }

  /** Shows values of the vault. */
  async setValue(reference: DataElementReference | Record<string, DataElementReference>, validates: boolean): Promise<void> {
    const read = (reference: unknown) => this.#coordinator.call("resolve", reference);
    const value = "correlationId" in reference
      ? await read(reference)
      : Object.fromEntries(
        await Promise.all(Object.entries(reference).map(async ([name, part]) => [name, await read(part)] as const)),
      );
    this.#followed = undefined;
    for (const [part, text] of textsOf(this.#type, value)) {
      this.#inputs.get(part)?.set(text, part === "text");
    }
    if (validates) {
      this.#parts().forEach(({ part }) => this.#judged.add(part));
    }
    this.#settle();
  }

  follow(source: string): void {
    this.#coordinator.call("follow", source).catch(() => {});
  }

  showFollowed(display: string | Record<string, string>, state: State): void {
    const texts = typeof display === "string" ? { [this.#parts()[0].part]: display } : display;
    Object.entries(texts).forEach(([part, text]) => this.#inputs.get(part as PartName)?.set(text));
    this.#followed = state;
    this.#settle();
  }

  wipe(): void {
    this.clear();
    this.#coordinator.notify("leave");
  }

  #parts(): Part[] {
    return PARTS[this.#type];
  }

  #targetId(part: Part): string {
    return this.#type === "card" ? part.name : this.#options.text("targetId") ?? this.#type;
  }

  #build(): void {
    this.#container.className = `container ${this.#type}`;
    this.#container.noValidate = true;
    this.#container.addEventListener("submit", (event) => event.preventDefault());
    if (this.#type === "card") {
      this.#container.setAttribute("role", "group");
      this.#container.setAttribute("aria-label", this.#surroundings.texts.card);
    }
    const number = () => this.#inputs.get("number");
    for (const part of this.#parts()) {
      const brand = () => codeBrand(this.#options, number());
      const format = formatOf(part.part, this.#options, { disclosure: this.#disclosure, brand });
      const input = new Input(part.name, format, {
        change: () => this.#typed(part),
        focus: () => this.#page.notify("event", "focus", { targetId: this.#targetId(part) }, this.#state()),
        blur: (event) => this.#blurred(part, event),
        keydown: (event) => this.#pressed(part, event),
      });
      this.#inputs.set(part.part, input);
      input.node.classList.toggle("short", part.part === "date" || part.part === "code");
      this.#protect(part, input.node);
      this.#container.append(...input.nodes);
    }
    if (number()) {
      this.#container.prepend(this.#icon);
      this.#container.append(this.#networks.node);
    }
    if (this.#options.flag("enableCopy")) {
      this.#container.append(this.#copyControl());
    }
    document.body.replaceChildren(this.#container);
    this.#surroundings.watchHeight(this.#container);
  }

  /** Selected text could be dragged to the page, or copied where a script of the page waits for a paste. */
  #protect({ part }: Part, node: HTMLInputElement): void {
    node.addEventListener("dragstart", (event) => event.preventDefault());
    if (part === "number" || part === "code") {
      for (const type of ["copy", "cut"]) {
        node.addEventListener(type, (event) => event.preventDefault());
      }
    }
  }

  #copyControl(): HTMLButtonElement {
    const button = document.createElement("button");
    const icon = copyIcon();
    button.type = "button";
    button.className = "copy";
    button.ariaLabel = this.#surroundings.texts.copy;
    button.append(icon);
    applyIconStyle(icon, this.#options.raw("copyIconStyles"), "color");
    const visibility = new Visibility(button);
    button.addEventListener("click", async (event) => {
      const [part] = this.#parts();
      if (await copy(event, visibility, () => this.#display(part.part))) {
        applyIconStyle(icon, this.#options.raw("copyIconStyles"), "successColor");
        button.ariaLabel = this.#surroundings.texts.copied;
        this.#page.notify("event", "copy", { targetId: this.#targetId(part) }, this.#state());
      }
    });
    return button;
  }

  /** Applies options to inputs. */
  #render(): void {
    const { texts } = this.#surroundings;
    const style = this.#options.raw("style");
    if (style !== undefined && style !== null) {
      this.#style.apply(style);
    }
    for (const part of this.#parts()) {
      const input = this.#inputs.get(part.part) as Input;
      const { node } = input;
      node.type = part.part === "text" && this.#options.flag("password") ? "password" : "text";
      node.inputMode = this.#options.inputMode(part.inputMode);
      node.disabled = this.#options.flag("disabled");
      node.readOnly = this.#options.flag("readOnly");
      node.setAttribute("autocomplete", this.#options.autoComplete(part.completes, this.#type));
      node.setAttribute("aria-label", this.#label(part));
      node.placeholder = this.#options.part("placeholder", part.placeholder, this.#type) ?? this.#placeholder(part);
      node.dir = part.part === "text" ? "auto" : "ltr";
      input.refresh();
    }
    const position = this.#options.text("iconPosition") ?? "left";
    this.#icon.classList.toggle("right", position === "right");
    this.#icon.style.display = position === "none" ? "none" : "";
    document.documentElement.lang = this.#surroundings.language;
    document.title = this.#label(this.#parts()[0]) || texts.card;
  }

  #label(part: Part): string {
    return this.#options.text("aria-label") ?? this.#options.text("ariaLabel") ?? part.label(this.#surroundings.texts);
  }

  #placeholder({ part }: Part): string {
    switch (part) {
      case "number":
        return "1234 1234 1234 1234";
      case "date":
        return this.#options.flag("showSpacing") ? "MM / YY" : "MM/YY";
      case "code":
        return codeBrand(this.#options, this.#inputs.get("number"))?.code.name ?? "CVC";
      case "text":
        return "";
    }
  }

  /** Takes over a value that the page itself provides, if it is another one than before. */
  #takeValue(): void {
    const value = this.#options.raw("value");
    const text = JSON.stringify(value ?? null);
    if (value === undefined || value === null || text === this.#staticValue) {
      return;
    }
    // What happens to a value of the cardholder would compare it with that of the page.
    if (this.#isTyped || this.#followed !== undefined) {
      return;
    }
    this.#staticValue = text;
    this.#followed = undefined;
    textsOf(this.#type, value).forEach((text, part) => this.#inputs.get(part)?.set(text));
  }

  #typed(part: Part): void {
    this.#followed = undefined;
    this.#isTyped = [...this.#inputs.values()].some((input) => !input.isEmpty);
    this.#disclosure.typed(this.#inputs.get("number")?.value ?? "");
    // A corrected error disappears while typing; a new one appears when the cardholder leaves the input.
    if (!this.#options.flag("validateOnChange") && !this.#inputs.get(part.part)?.judge().error) {
      this.#judged.delete(part.part);
    }
    if (this.#options.flag("validateOnChange")) {
      this.#judged.add(part.part);
    }
    this.#settle();
    const input = this.#inputs.get(part.part);
    const next = this.#parts()[this.#parts().indexOf(part) + 1];
    if (input?.isFull && !input.judge().error && next && document.activeElement === input.node) {
      this.#inputs.get(next.part)?.node.focus();
    }
  }

  /**
   * The cardholder has finished the number, as far as no page can pretend: by a key, by a click into another field, or by
   * moving on within the frame. A loss of the focus alone proves nothing, because the page can take it.
   */
  finish(): void {
    const number = this.#inputs.get("number");
    if (number && !number.judge().error) {
      this.#disclosure.finish(number.value);
      this.#settle();
    }
  }

  #blurred(part: Part, { relatedTarget }: FocusEvent): void {
    if (relatedTarget) {
      this.finish();
    }
    if (!this.#inputs.get(part.part)?.isEmpty) {
      this.#judged.add(part.part);
    }
    this.#settle();
    const { metadata } = this.#state();
    this.#page.notify("event", "blur", { targetId: this.#targetId(part), ...metadata }, this.#state());
  }

  #pressed(part: Part, event: KeyboardEvent): void {
    if (event.isTrusted && LEAVING_KEYS.includes(event.key)) {
      this.finish();
    }
    if (event.isTrusted && LISTENABLE_KEYS.includes(event.key)) {
      const { key, altKey, ctrlKey, shiftKey, metaKey } = event;
      const detail = { targetId: this.#targetId(part), key, altKey, ctrlKey, shiftKey, metaKey };
      this.#page.notify("event", "keydown", detail, this.#state());
    }
  }

  /** Shows the state, reports the value, and tells the page if what it may know changed. */
  #settle(always = false): void {
    const code = this.#inputs.get("code");
    code?.refresh();
    if (code && !this.#options.part("placeholder", "cardSecurityCode", this.#type)) {
      code.node.placeholder = this.#placeholder(this.#parts()[this.#parts().length - 1]);
    }
    this.#lookUpBin();
    const state = this.#state();
    this.#showState(state);
    this.#coordinator.notify("report", this.report());
    const detail = this.#changeDetail(state);
    const text = JSON.stringify(detail);
    if (always || text !== this.#reported) {
      this.#reported = text;
      this.#page.notify("event", "change", detail, state);
    }
  }

  #changeDetail({ metadata, cardMetadata }: State): Record<string, unknown> {
    return {
      ...metadata,
      ...cardMetadata,
      ...(cardMetadata?.cardBin && this.#options.flag("binLookup") ? { binInfo: this.#binInfo } : {}),
      ...(this.#networks.selected ? { selectedNetwork: this.#networks.selected } : {}),
    };
  }

  #showState({ cardMetadata }: State): void {
    for (const part of this.#parts()) {
      const input = this.#inputs.get(part.part) as Input;
      const { error } = input.judge();
      const shown = this.#judged.has(part.part) ? error : undefined;
      const { invalid, incomplete } = this.#surroundings.texts;
      const label = this.#label(part);
      input.display(shown, !error && !input.isEmpty, shown === "invalid" ? invalid(label) : incomplete(label));
    }
    const brand = cardMetadata?.cardBrand ?? "unknown";
    if (this.#icon.dataset.brand !== brand) {
      showBrand(this.#icon, brand);
    }
  }

  #state(): State {
    if (this.#followed) {
      return this.#followed;
    }
    const judgments = this.#parts().map((part) => ({ part, ...(this.#inputs.get(part.part) as Input).judge() }));
    const errors: FieldError[] = judgments
      .filter(({ part, error }) => error && this.#judged.has(part.part))
      .map(({ part, error }) => ({ targetId: this.#targetId(part), type: error as ErrorKind }));
    const metadata = {
      complete: judgments.every(({ error }) => !error),
      valid: judgments.every(({ error }) => error !== "invalid"),
      maskSatisfied: judgments.every(({ maskSatisfied }) => maskSatisfied),
      empty: [...this.#inputs.values()].every((input) => input.isEmpty),
      errors,
    };
    return { metadata, cardMetadata: this.#cardMetadata() };
  }

  #cardMetadata(): CardMetadata | undefined {
    const number = this.#inputs.get("number");
    if (!number) {
      return undefined;
    }
    const { type } = brandOf(number.value);
    const known = this.#binInfo && type === "unknown" ? brandId(this.#binInfo.brand) : "";
    return { cardBrand: known || type, ...this.#disclosure.facts(number.value) };
  }

  /** The value for a request. */
  use(): Report {
    const number = this.#inputs.get("number");
    if (number && !number.judge().error) {
      this.#disclosure.use(number.value);
    }
    return this.report();
  }

  /** What the coordinator needs to know. */
  report(): Report {
    const judgments = this.#parts().map((part) => [part, (this.#inputs.get(part.part) as Input).judge().error] as const);
    const failed = judgments.flatMap(([{ part }, error]) => (error ? MEMBERS[part].map((name) => [name, error]) : []));
    const errors = this.#type === "card" ? Object.fromEntries(failed) : failed[0]?.[1] ?? null;
    // A follower does not transform: the page could compare results of several transforms of one value.
    const options = this.#followed ? new FieldOptions() : this.#options;
    return {
      value: valueOf(this.#type, this.#inputs, options),
      display: this.#type === "card"
        ? Object.fromEntries(this.#parts().map(({ part }) => [part, this.#display(part)]))
        : this.#display(this.#parts()[0].part),
      isTransformed: options.transform !== undefined,
      complete: this.#followed ? this.#followed.metadata.complete : failed.length === 0,
      errors: failed.length === 0 ? null : errors,
      state: this.#state(),
    };
  }

  #display(part: PartName): string {
    const input = this.#inputs.get(part) as Input;
    return part === "number" || part === "code" ? input.value : input.shown;
  }

  /** Finds the details of the card's BIN, if the page wants them or supports co-badges. */
  #lookUpBin(): void {
    const digits = this.#inputs.get("number")?.value ?? "";
    const coBadges = this.#options.texts("coBadgedSupport");
    const isWanted = this.#options.flag("binLookup") || coBadges.length > 0;
    const bin = isWanted && digits.length >= BIN_MIN
      ? digits.slice(0, digits.length >= BIN_MAX ? BIN_MAX : BIN_MIN)
      : "";
    if (bin === this.#lookedUp) {
      return;
    }
    this.#lookedUp = bin;
    const show = (info: BinInfo | undefined) => {
      if (bin === this.#lookedUp) {
        this.#binInfo = info;
        this.#networks.offer(networksOf(info, coBadges), this.#options.texts("preSelectedNetworks"));
        this.#settle();
      }
    };
    if (bin === "") {
      this.#binInfo = undefined;
      this.#networks.offer([], []);
    } else {
      this.#coordinator.call("lookUpBin", bin).then((info) => show(info as BinInfo | undefined), () => show(undefined));
    }
  }
}

/** Rejects options of the wrong kind before anything is built. */
export function requireOptions(given: unknown): Given {
  if (typeof given !== "object" || given === null) {
    throw configurationError("options must be an object");
  }
  return given as Given;
}
