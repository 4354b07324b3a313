// The frame of a field: connects to the page and to the coordinator, then shows the element.

import { Channel, failure } from "../messages/channel";
import {
  type DataElementReference,
  type ElementType,
  isGreeting,
  MOUNTABLE_TYPES,
  PROTOCOL,
  type State,
} from "../messages/protocol";
import { applyBaseStyle } from "./base";
import { CopyButton } from "./button";
import { Field, requireOptions } from "./field";
import { Surroundings } from "./surroundings";

const JOIN_TIMEOUT_MS = 10_000;
const COORDINATOR = /\/coordinator\.html$/;

const parameters = new URLSearchParams(location.hash.slice(1));
const id = parameters.get("id") ?? "";
const type = parameters.get("type") as ElementType;

/** Registered before the coordinator is known: it may speak first. */
let element: Field | CopyButton | undefined;
let isConfigured = false;

/**
 * Finds the coordinator among the frames of the page.
 *
 * Only documents of this origin can be read here, so a frame that the page made up is skipped, and the page has no part
 * in the introduction: it neither sees the message nor holds an end of the port.
 */
function findCoordinator(): Window | undefined {
  for (let index = 0; index < window.parent.length; index++) {
    const frame = window.parent[index];
    try {
      const { pathname, hash } = frame.location;
      if (COORDINATOR.test(pathname) && new URLSearchParams(hash.slice(1)).get("id") === parameters.get("coordinator")) {
        return frame;
      }
    } catch {
      // Of another origin.
    }
  }
  return undefined;
}

/** Hands one end of a new port to the coordinator and waits until it is admitted. */
async function join(): Promise<Channel> {
  const coordinator = findCoordinator();
  if (!coordinator) {
    throw failure("Failed to communicate with Basis Theory Elements");
  }
  const { port1, port2 } = new MessageChannel();
  const channel = new Channel(port1, new Map<string, (...args: never[]) => unknown>([
    ["followed", (display: string, state: State) => element?.showFollowed(display, state)],
    ["use", () => element?.use()],
    ["finish", () => element?.finish()],
  ]));
  coordinator.postMessage({ elements: PROTOCOL, kind: "join", id, type }, location.origin, [port2]);
  const late = new Promise<never>((_, reject) => {
    setTimeout(() => reject(failure("Element mount timeout")), JOIN_TIMEOUT_MS);
  });
  await Promise.race([channel.call("welcome"), late]);
  return channel;
}

function connect(port: MessagePort): void {
  const page: Channel = new Channel(port, new Map<string, (...args: never[]) => unknown>([
    ["configure", async (options: unknown, around: object) => {
      // Before anything is awaited: a second call would join another coordinator.
      if (isConfigured) {
        throw failure("Element is already mounted");
      }
      isConfigured = true;
      const coordinator = await join();
      document.addEventListener("pointerdown", ({ isTrusted }) => isTrusted && coordinator.notify("pressed"), true);
      const surroundings = new Surroundings(page, around);
      const created = type === "copyButton"
        ? new CopyButton(page, coordinator, surroundings)
        : new Field(type, page, coordinator, surroundings);
      const state = created.configure(requireOptions(options));
      element = created;
      return state;
    }],
    ["update", (options: unknown) => element?.update(requireOptions(options))],
    ["validate", () => element?.validate()],
    ["clear", () => element?.clear()],
    ["focus", () => element?.focus()],
    ["blur", () => element?.blur()],
    ["setValue", (value: DataElementReference, validates: boolean) =>
      Promise.resolve(element?.setValue(value, validates)).catch(() => {})],
    ["setValueRef", (source: string) => element?.follow(source)],
    ["unmount", () => element?.wipe()],
  ]));
}

window.addEventListener("message", function accept({ data, source, ports: [port] }) {
  if (isGreeting(data) && data.kind === "connect" && source === window.parent && port) {
    window.removeEventListener("message", accept);
    connect(port);
  }
});

window.addEventListener("pagehide", () => element?.wipe());

if (window.parent !== window && MOUNTABLE_TYPES.includes(type)) {
  applyBaseStyle();
  window.parent.postMessage({ elements: PROTOCOL, kind: "hello", id }, "*");
}
