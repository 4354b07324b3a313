// The hidden frame that holds values and sends requests: one per page, key and base URL.

import type { Channel } from "../messages/channel";
import type { Payload, RequestOptions } from "../messages/protocol";
import { fromFrame } from "./errors";
import { connect, frameUrl, newId, type Settings } from "./frame";

const REQUEST_TIMEOUT_MS = 60_000;

export class Coordinator {
  readonly id = newId();
  readonly #settings: Settings;
  #channel: Promise<Channel> | undefined;
  #frame: HTMLIFrameElement | undefined;

  constructor(settings: Settings) {
    this.#settings = settings;
  }

  get settings(): Settings {
    return this.#settings;
  }

  /** Connects, again if a script removed the frame. */
  channel(): Promise<Channel> {
    if (!this.#channel || this.#frame?.isConnected === false) {
      const frame = document.createElement("iframe");
      frame.src = frameUrl(this.#settings, "coordinator.html", {
        id: this.id,
        debug: String(this.#settings.debug),
      });
      frame.title = "Payment fields";
      frame.tabIndex = -1;
      frame.ariaHidden = "true";
      frame.style.cssText = "display:none";
      this.#frame = frame;
      const channel = connect(frame, document.body ?? document.documentElement, this.id, new Map());
      this.#channel = channel;
      channel.catch(() => {
        frame.remove();
        if (this.#channel === channel) {
          this.#channel = undefined;
        }
      });
    }
    return this.#channel;
  }

  async call(method: string, ...args: unknown[]): Promise<unknown> {
    const channel = await this.channel();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise((_, reject) => {
      const error = new Error("Timeout while trying to securely read elements values");
      timer = setTimeout(() => reject(error), REQUEST_TIMEOUT_MS);
    });
    try {
      return await Promise.race([channel.call(method, ...args), late]);
    } catch (error) {
      throw fromFrame(error);
    } finally {
      clearTimeout(timer);
    }
  }

  /** Sends an API request whose gaps the coordinator fills. */
  request(operation: string, target: unknown, payload: Payload, options: RequestOptions): Promise<unknown> {
    return this.call("request", operation, target, payload, options);
  }

  /** Wipes the value of an element whose frame is gone. */
  forget(elementId: string): void {
    void this.#channel?.then((channel) => channel.notify("forget", elementId), () => {});
  }
}
