// What a field takes over from the page around it: direction, language and height.

import type { Channel } from "../messages/channel";
import { type Texts, textsFor } from "./texts";

export class Surroundings {
  readonly texts: Texts;
  readonly language: string;

  constructor(readonly page: Channel, { direction, language }: { direction?: unknown; language?: unknown } = {}) {
    const found = textsFor(typeof language === "string" ? language : navigator.language);
    this.texts = found.texts;
    this.language = found.language;
    document.documentElement.dir = direction === "rtl" ? "rtl" : "ltr";
  }

  /** The page gives the frame the height of its content, which does not depend on a value. */
  watchHeight(node: Element): void {
    const tell = () => this.page.notify("height", node.getBoundingClientRect().height);
    new ResizeObserver(tell).observe(node);
    tell();
  }
}
