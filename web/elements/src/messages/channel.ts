// Calls and events over a MessagePort.

import type { WireError } from "./protocol";

type Handler = (...args: never[]) => unknown;

/** Methods by name, in a Map: names come from the other side, and `constructor` must not be one. */
export type Handlers = Map<string, Handler>;

interface Call {
  call: number;
  method: string;
  args: unknown[];
}
interface Reply {
  reply: number;
  value?: unknown;
  error?: WireError;
}
interface Notice {
  notice: string;
  args: unknown[];
}

/** A failure that the other side reported. */
export class RemoteError extends Error {
  constructor(readonly wire: WireError) {
    super(wire.message);
    this.name = wire.name;
  }
}

export class Channel {
  #port: MessagePort;
  #handlers: Handlers;
  #next = 1;
  #pending = new Map<number, { resolve: (value: unknown) => void; reject: (error: unknown) => void }>();

  constructor(port: MessagePort, handlers: Handlers) {
    this.#port = port;
    this.#handlers = handlers;
    port.onmessage = (event) => this.#receive(event.data);
  }

  /** Calls a method of the other side. */
  call(method: string, ...args: unknown[]): Promise<unknown> {
    const call = this.#next++;
    return new Promise((resolve, reject) => {
      this.#pending.set(call, { resolve, reject });
      this.#port.postMessage({ call, method, args } satisfies Call);
    });
  }

  /** Reports something without waiting for a result. */
  notify(notice: string, ...args: unknown[]): void {
    this.#port.postMessage({ notice, args } satisfies Notice);
  }

  /** Rejects what is pending and stops listening. */
  close(reason: Error): void {
    this.#port.onmessage = null;
    this.#port.close();
    for (const { reject } of this.#pending.values()) {
      reject(reason);
    }
    this.#pending.clear();
  }

  #receive(data: Partial<Call & Reply & Notice> | null): void {
    if (typeof data !== "object" || data === null) {
      return;
    }
    if (typeof data.reply === "number") {
      const pending = this.#pending.get(data.reply);
      this.#pending.delete(data.reply);
      if (data.error) {
        pending?.reject(new RemoteError(data.error));
      } else {
        pending?.resolve(data.value);
      }
    } else if (typeof data.method === "string" && typeof data.call === "number") {
      void this.#run(data as Call);
    } else if (typeof data.notice === "string") {
      const handler = this.#handlers.get(data.notice);
      try {
        handler?.(...((Array.isArray(data.args) ? data.args : []) as never[]));
      } catch {
        // A notice has no one to report a failure to, and the text of an error must not reach the console.
      }
    }
  }

  async #run({ call, method, args }: Call): Promise<void> {
    const handler = this.#handlers.get(method);
    let reply: Reply;
    try {
      if (!handler) {
        throw new Error("Failed to communicate with Basis Theory Elements");
      }
      reply = { reply: call, value: await handler(...((Array.isArray(args) ? args : []) as never[])) };
    } catch (error) {
      reply = { reply: call, error: toWire(error) };
    }
    this.#port.postMessage(reply);
  }
}

/** Only errors that were made for the other side carry their message; those of the browser might quote a value. */
export class ReportedError extends Error {
  constructor(readonly wire: WireError) {
    super(wire.message);
  }
}

function toWire(error: unknown): WireError {
  if (error instanceof ReportedError || error instanceof RemoteError) {
    return error.wire;
  }
  return { name: "Error", message: "Failed to communicate with Basis Theory Elements" };
}

export function configurationError(message: string, type = "invalid-configuration"): ReportedError {
  return new ReportedError({ name: "BasisTheoryConfigurationError", message, details: { type, message } });
}

export function failure(message: string): ReportedError {
  return new ReportedError({ name: "Error", message });
}
