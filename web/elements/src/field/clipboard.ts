// Copies a value for the cardholder, who must see what they click.

/** Whether a node is visible, as far as the browser can tell: not covered, not transparent, not moved away. */
export class Visibility {
  #isVisible = true;

  constructor(node: Element) {
    const options = { trackVisibility: true, delay: 100, threshold: [0.9] };
    new IntersectionObserver((entries) => {
      const last = entries[entries.length - 1] as IntersectionObserverEntry & { isVisible?: boolean };
      // Undefined in browsers that do not track it.
      this.#isVisible = last.isVisible !== false && last.isIntersecting;
    }, options as IntersectionObserverInit).observe(node);
  }

  get isVisible(): boolean {
    return this.#isVisible;
  }
}

/** Copies after a click of the cardholder, not of a script. */
export async function copy(event: Event, visibility: Visibility, read: () => Promise<string> | string): Promise<boolean> {
  if (!event.isTrusted || !visibility.isVisible) {
    return false;
  }
  try {
    await navigator.clipboard.writeText(await read());
    return true;
  } catch {
    return false;
  }
}
