// One input element: keeps the caret in place while it groups what is typed, and shows its state.

import type { ErrorKind } from "../messages/protocol";
import type { Format, Judgment } from "./formats";

export interface InputEvents {
  change(): void;
  focus(): void;
  blur(event: FocusEvent): void;
  keydown(event: KeyboardEvent): void;
}

export class Input {
  readonly node = document.createElement("input");
  readonly #message = document.createElement("span");
  #clean = "";
  /** Values of the vault are not judged by rules that the page chose. */
  #isTrusted = false;

  constructor(readonly name: string, readonly format: Format, readonly events: InputEvents) {
    const { node } = this;
    node.className = "input empty";
    node.name = name;
    node.id = name;
    node.spellcheck = false;
    node.setAttribute("autocapitalize", "off");
    node.setAttribute("autocorrect", "off");
    node.autocomplete = "off";
    this.#message.className = "hidden";
    this.#message.id = `${name}-error`;
    this.#message.setAttribute("role", "alert");
    node.setAttribute("aria-describedby", this.#message.id);
    node.addEventListener("input", () => this.#reformat());
    node.addEventListener("focus", () => events.focus());
    node.addEventListener("blur", (event) => events.blur(event));
    node.addEventListener("keydown", (event) => events.keydown(event));
  }

  get nodes(): Node[] {
    return [this.node, this.#message];
  }

  get value(): string {
    return this.#clean;
  }

  get shown(): string {
    return this.format.show(this.#clean);
  }

  get isEmpty(): boolean {
    return this.#clean === "";
  }

  get isFull(): boolean {
    return this.format.isFull?.(this.#clean) ?? false;
  }

  judge(): Judgment {
    return this.#isTrusted && !this.isEmpty ? { maskSatisfied: true } : this.format.judge(this.#clean);
  }

  /** Sets a value that was not typed. */
  set(text: string, isTrusted = false): void {
    this.#isTrusted = isTrusted;
    this.#clean = this.format.clean(text);
    this.node.value = this.shown;
  }

  wipe(): void {
    this.set("");
  }

  /** Groups again, for example when the brand changed the length of a security code. */
  refresh(): void {
    const clean = this.format.clean(this.shown);
    if (clean !== this.#clean || this.node.value !== this.format.show(clean)) {
      this.#clean = clean;
      this.node.value = this.shown;
    }
  }

  display(error: ErrorKind | undefined, isComplete: boolean, message: string): void {
    const { classList } = this.node;
    classList.toggle("empty", this.isEmpty);
    classList.toggle("complete", isComplete);
    classList.toggle("invalid", error !== undefined);
    this.node.setAttribute("aria-invalid", String(error !== undefined));
    const text = error ? message : "";
    if (this.#message.textContent !== text) {
      this.#message.textContent = text;
    }
  }

  #reformat(): void {
    this.#isTrusted = false;
    this.#clean = reformat(this.node, this.format, this.#clean);
    this.events.change();
  }
}

/** Groups what was typed and keeps the caret in place. Returns the typed characters. */
export function reformat(node: HTMLInputElement, format: Format, previous: string): string {
  const caret = node.selectionStart ?? node.value.length;
  const isAtEnd = caret === node.value.length;
  const before = format.clean(node.value.slice(0, caret)).length;
  let clean = format.clean(node.value);
  // A deletion that only removed a separator removes the character before it too. A browser that fills in the same value again,
  // without the separator, deletes nothing.
  const shownBefore = format.show(previous);
  const isDeletion = node.value.length < shownBefore.length && shownBefore.startsWith(node.value);
  const removedSeparator = clean === previous && isDeletion && isAtEnd;
  if (removedSeparator) {
    clean = clean.slice(0, -1);
  }
  const shown = format.show(clean);
  if (node.value !== shown) {
    node.value = shown;
    const position = isAtEnd ? shown.length : positionAfter(before, format, clean);
    node.setSelectionRange(position, position);
  }
  return clean;
}

/** Where the caret stands after a number of typed characters. */
function positionAfter(count: number, format: Format, clean: string): number {
  const shown = format.show(clean);
  for (let position = 0; position <= shown.length; position++) {
    if (format.clean(shown.slice(0, position)).length >= count) {
      return position;
    }
  }
  return shown.length;
}
