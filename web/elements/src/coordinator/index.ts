// The coordinator frame: holds the values of all fields of a page, and sends the requests that contain them.

import { Channel } from "../messages/channel";
import {
  type DataElementReference,
  isGreeting,
  MOUNTABLE_TYPES,
  type Payload,
  PROTOCOL,
  type RequestOptions,
} from "../messages/protocol";
import { BinLookup } from "./bins";
import { Fields } from "./fields";
import { Api } from "./http";
import { type Context, run } from "./operations";
import { References } from "./references";

const parameters = new URLSearchParams(location.hash.slice(1));
const apiKey = new URLSearchParams(location.search).get("apiKey") ?? "";
const listed = document.querySelector<HTMLMetaElement>("meta[name=elements-hosts]")?.content ?? "";

const context: Context = {
  api: new Api(apiKey, parameters.get("debug") === "true"),
  fields: new Fields(),
  references: new References(),
  hosts: listed.split(",").filter((host) => host !== ""),
};
const bins = new BinLookup(context.api);

let page: Channel | undefined;

/** The page gets one port, for operations. It carries values in neither direction. */
function connectPage(port: MessagePort): void {
  page ??= new Channel(port, new Map<string, (...args: never[]) => unknown>([
    ["request", (name: string, target: unknown, payload: Payload, options: RequestOptions) =>
      run(context, name, target, payload, options)],
    ["forget", (id: string) => context.fields.forget(id)],
  ]));
}

window.addEventListener("message", ({ data, origin, source, ports: [port] }) => {
  if (!isGreeting(data) || !port) {
    return;
  }
  if (data.kind === "connect" && source === window.parent) {
    connectPage(port);
    return;
  }
  // Only documents of this origin can send this, and the page is none: browsers set `origin`. A sibling has the same
  // parent, so a field of another page cannot join either.
  const isSibling = origin === location.origin && source !== null && (source as Window).parent === window.parent;
  if (data.kind === "join" && isSibling && MOUNTABLE_TYPES.includes(data.type) && typeof data.id === "string") {
    context.fields.join(data.id, data.type, source as Window, port, [
      ["resolve", (reference: DataElementReference) => context.references.read(reference)],
      ["lookUpBin", (bin: string) => bins.find(bin)],
      ["welcome", () => true],
    ]);
  }
});

window.addEventListener("pagehide", () => {
  context.fields.forgetAll();
  context.references.forgetAll();
});

// An embedded page only: as a top-level document it has no purpose.
if (window.parent !== window) {
  window.parent.postMessage({ elements: PROTOCOL, kind: "hello", id: parameters.get("id") ?? "" }, "*");
}
