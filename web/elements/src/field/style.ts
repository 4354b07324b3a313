// Styles of a page for the content of a frame: named properties and plain values only.
//
// Nothing here can load a resource, add content, or match the value of an input, so no style can reveal one.

import { configurationError } from "../messages/channel";

const INPUT_PROPERTIES = new Set([
  "backgroundColor", "color", "fontFamily", "fontSize", "fontSmooth", "fontStyle", "fontVariant", "fontWeight",
  "letterSpacing", "lineHeight", "padding", "textAlign", "textDecoration", "textShadow", "textTransform",
]);
const BUTTON_PROPERTIES = new Set([
  "alignItems", "backgroundColor", "border", "borderBottom", "borderColor", "borderLeft", "borderRadius", "borderRight",
  "borderStyle", "borderTop", "borderWidth", "boxShadow", "color", "cursor", "display", "fontFamily", "fontSize",
  "fontWeight", "gap", "height", "justifyContent", "letterSpacing", "lineHeight", "margin", "maxHeight", "maxWidth",
  "minHeight", "minWidth", "opacity", "outline", "padding", "textAlign", "textTransform", "transform", "transition",
  "width",
]);
const INPUT_SELECTORS = [":hover", ":focus", ":read-only", "::placeholder", "::selection", ":disabled"];
const BUTTON_SELECTORS = [":hover", ":focus", ":active"];
const INPUT_VARIANTS: Record<string, string> = {
  base: ".input",
  complete: ".input.complete",
  invalid: ".input.invalid",
  empty: ".input.empty",
  container: ".container",
};
const BUTTON_VARIANTS: Record<string, string> = { base: ".button", container: ".container" };

const FUNCTIONS = new Set([
  "rgb", "rgba", "hsl", "hsla", "hwb", "lab", "lch", "oklab", "oklch", "calc", "min", "max", "clamp", "translate",
  "translatex", "translatey", "scale", "rotate", "cubic-bezier", "steps",
]);
const PLAIN = /^[\w\s#%.,()+\-*/'"!]{0,200}$/;

/** Whether a value is made of names, numbers, texts and harmless functions. */
export function isPlainValue(value: unknown): value is string | number {
  if (typeof value === "number") {
    return Number.isFinite(value);
  }
  if (typeof value !== "string" || !PLAIN.test(value)) {
    return false;
  }
  const functions = value.matchAll(/([\w-]*)\s*\(/g);
  return [...functions].every(([, name]) => name === "" || FUNCTIONS.has(name.toLowerCase()));
}

const toName = (property: string) => property.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);

/** Replaces the page's style. Properties are set one by one, so no value can end its declaration. */
export class Style {
  #sheet = new CSSStyleSheet();
  #isButton: boolean;

  constructor(isButton: boolean) {
    this.#isButton = isButton;
    document.adoptedStyleSheets = [...document.adoptedStyleSheets, this.#sheet];
  }

  apply(style: unknown): void {
    if (typeof style !== "object" || style === null) {
      throw configurationError("style must be an object");
    }
    this.#sheet.replaceSync("");
    const variants = this.#isButton ? BUTTON_VARIANTS : INPUT_VARIANTS;
    for (const [variant, selector] of Object.entries(variants)) {
      const declared = own(style, variant);
      if (typeof declared === "object" && declared !== null) {
        this.#addRule(selector, declared);
        for (const state of this.#isButton ? BUTTON_SELECTORS : INPUT_SELECTORS) {
          const nested = own(declared, state);
          if (typeof nested === "object" && nested !== null) {
            this.#addRule(selector + state, nested);
          }
        }
      }
    }
  }

  #addRule(selector: string, declared: object): void {
    const index = this.#sheet.insertRule(`${selector} {}`, this.#sheet.cssRules.length);
    const rule = this.#sheet.cssRules[index] as CSSStyleRule;
    const properties = this.#isButton ? BUTTON_PROPERTIES : INPUT_PROPERTIES;
    for (const [property, value] of Object.entries(declared)) {
      if (!properties.has(property) || !isPlainValue(value)) {
        continue;
      }
      const names = property === "fontSmooth"
        ? ["-webkit-font-smoothing", "-moz-osx-font-smoothing"]
        : [toName(property)];
      names.forEach((name) => rule.style.setProperty(name, String(value)));
    }
  }
}

function own(object: object, key: string): unknown {
  return Object.hasOwn(object, key) ? (object as Record<string, unknown>)[key] : undefined;
}

/** Styles of the copy icon. */
export function applyIconStyle(icon: HTMLElement | SVGElement, given: unknown, name: "color" | "successColor"): void {
  const { size, ...colors } = (given ?? {}) as Record<string, unknown>;
  if (isPlainValue(size)) {
    icon.style.width = icon.style.height = String(size);
  }
  if (isPlainValue(colors[name])) {
    icon.style.color = String(colors[name]);
  }
}
