// The copy button: copies the value of another field, after a click of the cardholder.

import type { Channel } from "../messages/channel";
import type { State } from "../messages/protocol";
import { copy, Visibility } from "./clipboard";
import { FieldOptions, type Given } from "./options";
import { Style } from "./style";
import type { Surroundings } from "./surroundings";

const STATE: State = { metadata: { complete: true, valid: true, maskSatisfied: true, empty: true, errors: [] } };

export class CopyButton {
  readonly #options = new FieldOptions();
  readonly #style = new Style(true);
  readonly #button = document.createElement("button");

  constructor(readonly page: Channel, readonly coordinator: Channel, readonly surroundings: Surroundings) {}

  configure(given: Given): State {
    const container = document.createElement("div");
    container.className = "container";
    container.append(this.#button);
    this.#button.type = "button";
    this.#button.className = "button";
    document.body.replaceChildren(container);
    const visibility = new Visibility(this.#button);
    this.#button.addEventListener("click", (event) => void this.#click(event, visibility));
    for (const type of ["focus", "blur"] as const) {
      this.#button.addEventListener(type, () => this.#tell(type));
    }
    this.surroundings.watchHeight(container);
    return this.update(given);
  }

  update(changes: Given): State {
    this.#options.merge(changes, false, true);
    const style = this.#options.raw("style");
    if (style !== undefined && style !== null) {
      this.#style.apply(style);
    }
    this.#button.textContent = this.#options.text("text") ?? this.surroundings.texts.copy;
    this.#button.disabled = this.#options.flag("disabled");
    document.documentElement.lang = this.surroundings.language;
    document.title = this.#button.textContent;
    return STATE;
  }

  focus(): void {
    this.#button.focus();
  }

  blur(): void {
    this.#button.blur();
  }

  validate(): void {}

  clear(): void {}

  setValue(): void {}

  follow(source: string): void {
    this.coordinator.call("follow", source).catch(() => {});
  }

  showFollowed(): void {}

  finish(): void {}

  use(): undefined {
    return undefined;
  }

  wipe(): void {
    this.coordinator.notify("leave");
  }

  async #click(event: Event, visibility: Visibility): Promise<void> {
    if (!event.isTrusted) {
      return;
    }
    this.#tell("click");
    if (await copy(event, visibility, async () => String(await this.coordinator.call("read")))) {
      this.#tell("copy");
    }
  }

  #tell(type: "click" | "copy" | "focus" | "blur"): void {
    this.page.notify("event", type, { targetId: this.#options.text("targetId") ?? "copyButton" }, STATE);
  }
}
