// Creates a frame of the vault and connects a port to it.

import { Channel, type Handlers } from "../messages/channel";
import { isGreeting, PROTOCOL } from "../messages/protocol";
import { BasisTheoryConfigurationError } from "./errors";

/** As documented for the hosted service. */
const TIMEOUT_MS = 15_000;
/** A frame greets before its `load` event; the message may arrive a little later. */
const BLOCKED_MS = 3_000;

export interface Settings {
  apiKey: string;
  /** Ends with a slash. */
  baseUrl: string;
  debug: boolean;
}

/** Random, so that elements of two scripts on one page do not collide. */
export function newId(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(12)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** The key identifies the tenant, whose list of sites decides whether the frame may be embedded. */
export function frameUrl(settings: Settings, page: string, parameters: Record<string, string>): string {
  const url = new URL(page, settings.baseUrl);
  url.searchParams.set("apiKey", settings.apiKey);
  url.hash = new URLSearchParams(parameters).toString();
  return url.href;
}

/** Inserts a frame and resolves when it has taken its port. */
export function connect(
  frame: HTMLIFrameElement,
  container: Element,
  id: string,
  handlers: Handlers,
): Promise<Channel> {
  const origin = new URL(frame.src).origin;
  return new Promise((resolve, reject) => {
    let blocked: ReturnType<typeof setTimeout> | undefined;
    const settle = (action: () => void) => {
      window.removeEventListener("message", greet);
      clearTimeout(late);
      clearTimeout(blocked);
      action();
    };
    const late = setTimeout(() => settle(() => reject(new Error("Element mount timeout"))), TIMEOUT_MS);
    const greet = ({ source, origin: sender, data }: MessageEvent) => {
      const isOurs = source === frame.contentWindow && sender === origin && isGreeting(data);
      if (isOurs && data.kind === "hello" && data.id === id) {
        const { port1, port2 } = new MessageChannel();
        frame.contentWindow?.postMessage({ elements: PROTOCOL, kind: "connect" }, origin, [port2]);
        settle(() => resolve(new Channel(port1, handlers)));
      }
    };
    window.addEventListener("message", greet);
    frame.addEventListener("load", () => {
      blocked = setTimeout(() => settle(() => reject(blockedError())), BLOCKED_MS);
    }, { once: true });
    container.append(frame);
  });
}

function blockedError(): Error {
  return new BasisTheoryConfigurationError(
    `The vault does not allow elements on ${location.origin}: the API key is not a valid public key, or the `
      + "tenant setting elements_sites does not list this site.",
  );
}
