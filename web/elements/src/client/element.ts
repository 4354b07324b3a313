// One element of a page: its frame, its options and its events.

import type { Channel, Handlers } from "../messages/channel";
import {
  type CardMetadata,
  type DataElementReference,
  type ElementType,
  EVENT_TYPES,
  type EventType,
  type Metadata,
  type State,
} from "../messages/protocol";
import type { Coordinator } from "./coordinator";
import { fromFrame } from "./errors";
import { connect, frameUrl, newId } from "./frame";
import { cleanOptions, type Options, serializeOptions } from "./options";

type Listener = (event: Record<string, unknown>) => void;

const EMPTY: Metadata = { complete: false, valid: true, maskSatisfied: true, empty: true, errors: [] };
const NOT_MOUNTED = "Element is not mounted";
const REMOVED = "Element was removed from the DOM";
const HAS_CARD = new Set<ElementType>(["card", "cardNumber"]);
const isReference = (value: unknown): value is DataElementReference =>
  typeof value === "object" && value !== null && "correlationId" in value && "elementId" in value && "path" in value;

/** Live elements by the id of their target. */
const mounted = new Map<string, Element>();

export function findMounted(targetId: string): Element | undefined {
  return mounted.get(targetId);
}

export class Element {
  #id = newId();
  #type: ElementType;
  #options: Options;
  #coordinator: Coordinator;
  #frame: HTMLIFrameElement | undefined;
  #channel: Channel | undefined;
  #observer: MutationObserver | undefined;
  #phase: "new" | "mounting" | "mounted" | "gone" = "new";
  #state: State;
  #listeners = new Map<EventType, Set<Listener>>();

  constructor(type: ElementType, options: Options, coordinator: Coordinator) {
    this.#type = type;
    this.#options = cleanOptions(type, options);
    this.#coordinator = coordinator;
    this.#state = { metadata: EMPTY, cardMetadata: HAS_CARD.has(type) ? { cardBrand: "unknown" } : undefined };
    for (const event of EVENT_TYPES) {
      const name = `on${event[0].toUpperCase()}${event.slice(1)}`;
      if (typeof options[name] === "function") {
        this.on(event, options[name] as Listener);
      }
    }
  }

  static isElement(value: unknown): value is Element {
    return typeof value === "object" && value !== null && #id in value;
  }

  get id(): string {
    return this.#id;
  }

  get type(): ElementType {
    return this.#type;
  }

  get targetId(): string | undefined {
    return this.#options.targetId as string | undefined;
  }

  get mounted(): boolean {
    return this.#phase === "mounted";
  }

  get metadata(): Metadata {
    return this.#state.metadata;
  }

  get cardMetadata(): CardMetadata | undefined {
    return this.#state.cardMetadata;
  }

  getState(): Metadata & Partial<CardMetadata> {
    return { ...this.#state.metadata, ...this.#state.cardMetadata };
  }

  /** An element reveals nothing when a page serializes it. */
  toJSON(): Record<string, unknown> {
    return { type: this.#type, targetId: this.targetId };
  }

  async mount(target: string | globalThis.Element): Promise<void> {
    const container = typeof target === "string" ? document.querySelector(target) : target;
    if (!container) {
      throw new Error("Unable to find element using selector");
    }
    if (this.#phase !== "new") {
      throw new Error(this.#phase === "gone" ? "Element has been unmounted" : "Element is already mounted");
    }
    this.#phase = "mounting";
    const frame = this.#createFrame(container);
    try {
      const [channel] = await Promise.all([
        connect(frame, container, this.#id, this.#handlers()),
        this.#coordinator.channel(),
      ]);
      this.#channel = channel;
      this.#state = await channel.call("configure", serializeOptions(this.#options), surroundings(container)) as State;
    } catch (error) {
      this.#tearDown(REMOVED);
      throw fromFrame(error);
    }
    this.#phase = "mounted";
    mounted.set(this.targetId ?? this.#id, this);
    this.#emit("ready", {});
  }

  async update(options: Options): Promise<void> {
    const changes = cleanOptions(this.#type, { targetId: this.targetId, ...options }, true);
    if (this.#phase === "new" || this.#phase === "mounting") {
      Object.assign(this.#options, changes);
      if (this.#phase === "new") {
        return;
      }
    }
    const channel = this.#require();
    Object.assign(this.#options, changes);
    if (this.#frame && typeof options.title === "string") {
      this.#frame.title = options.title;
    }
    try {
      this.#state = await channel.call("update", serializeOptions(changes)) as State;
    } catch (error) {
      throw fromFrame(error);
    }
  }

  on(type: EventType, listener: Listener): { unsubscribe(): void } {
    if (!EVENT_TYPES.includes(type)) {
      throw new Error(`Unknown event type: ${type}`);
    }
    const listeners = this.#listeners.get(type) ?? new Set();
    this.#listeners.set(type, listeners.add(listener));
    return { unsubscribe: () => void listeners.delete(listener) };
  }

  validate(): void {
    this.#require().notify("validate");
  }

  clear(): void {
    this.#require().notify("clear");
  }

  focus(): void {
    const channel = this.#require();
    // A frame that has no focus cannot take it from the page by itself in every browser.
    this.#frame?.focus();
    channel.notify("focus");
  }

  blur(): void {
    this.#require().notify("blur");
    if (document.activeElement === this.#frame) {
      this.#frame?.blur();
    }
  }

  unmount(): void {
    this.#require();
    this.#tearDown("Element has been unmounted");
  }

  /** Accepts references to values in the coordinator only: a page has no other way to fill a mounted field. */
  setValue(value: DataElementReference | Record<string, DataElementReference>, validate = true): void {
    const isValid = isReference(value)
      || (typeof value === "object" && value !== null && Object.values(value).every(isReference));
    if (!isValid) {
      throw new Error("Only a reference to a retrieved value can be set");
    }
    this.#require().notify("setValue", structuredClone(value), validate);
  }

  setValueRef(source: unknown): void {
    if (!Element.isElement(source)) {
      throw new Error("Only another element can be followed");
    }
    this.#require().notify("setValueRef", source.id);
  }

  month(): { element: Element; method: string } {
    return { element: this, method: "month" };
  }

  year(): { element: Element; method: string } {
    return { element: this, method: "year" };
  }

  format(format: string): { element: Element; method: string; formattingOptions: { format: string } } {
    return { element: this, method: "format", formattingOptions: { format } };
  }

  #require(): Channel {
    if (this.#phase === "gone" && this.#frame) {
      throw new Error(REMOVED);
    }
    if (!this.#channel || this.#phase === "gone") {
      throw new Error(NOT_MOUNTED);
    }
    return this.#channel;
  }

  #createFrame(container: globalThis.Element): HTMLIFrameElement {
    const frame = document.createElement("iframe");
    frame.src = frameUrl(this.#coordinator.settings, "field.html", {
      id: this.#id,
      type: this.#type,
      coordinator: this.#coordinator.id,
    });
    frame.title = String(this.#options.title ?? `${this.targetId ?? this.#type}`);
    frame.setAttribute("allow", "clipboard-write");
    frame.setAttribute("allowtransparency", "true");
    frame.scrolling = "no";
    // The page in the frame is light. In another color scheme than its page's, a frame would be opaque.
    frame.style.cssText =
      "border:none;margin:0;padding:0;width:100%;min-width:100%;height:1.5em;display:block;overflow:hidden;"
      + "background:transparent;color-scheme:light";
    this.#frame = frame;
    this.#watch(container);
    return frame;
  }

  /** React never calls `unmount`: the removal of the frame wipes the value too. */
  #watch(container: globalThis.Element): void {
    this.#observer = new MutationObserver(() => {
      if (this.#frame && !this.#frame.isConnected) {
        this.#tearDown(REMOVED);
      }
    });
    const root = container.getRootNode();
    this.#observer.observe(root, { childList: true, subtree: true });
    if (root !== document) {
      this.#observer.observe(document, { childList: true, subtree: true });
    }
  }

  #tearDown(reason: string): void {
    this.#phase = "gone";
    this.#observer?.disconnect();
    this.#channel?.notify("unmount");
    this.#channel?.close(new Error(reason));
    this.#coordinator.forget(this.#id);
    if (reason !== REMOVED) {
      this.#frame?.remove();
      this.#frame = undefined;
      this.#channel = undefined;
    } else {
      this.#frame?.remove();
    }
    const key = this.targetId ?? this.#id;
    if (mounted.get(key) === this) {
      mounted.delete(key);
    }
  }

  #handlers(): Handlers {
    return new Map<string, (...args: never[]) => unknown>([
      ["event", (type: EventType, detail: Record<string, unknown>, state: State) => {
        this.#state = state;
        this.#emit(type, detail);
      }],
      ["height", (height: number) => {
        if (this.#frame) {
          this.#frame.style.height = `${Math.ceil(height)}px`;
        }
      }],
    ]);
  }

  #emit(type: EventType, detail: Record<string, unknown>): void {
    for (const listener of this.#listeners.get(type) ?? []) {
      // A listener that throws must not stop the others.
      try {
        listener({ type, ...detail });
      } catch (error) {
        queueMicrotask(() => {
          throw error;
        });
      }
    }
  }
}

/** What a field takes over from the text around it. */
function surroundings(container: globalThis.Element): { direction: string; language: string } {
  const language = container.closest("[lang]")?.getAttribute("lang") ?? navigator.language;
  return { direction: getComputedStyle(container).direction, language };
}
