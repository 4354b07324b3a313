// The services of the page's object: each hands a payload with gaps to the coordinator.

import type { RequestOptions } from "../messages/protocol";
import type { Coordinator } from "./coordinator";
import { extract } from "./payload";

type Given = RequestOptions & Record<string, unknown>;

const requestOptions = ({ apiKey, correlationId, idempotencyKey }: Given = {}): RequestOptions => ({
  apiKey,
  correlationId,
  idempotencyKey,
});

/** Services that find their coordinator when they are called: `init` may run after a page took them. */
export function services(coordinator: () => Coordinator) {
  const send = (operation: string, target: unknown, body: unknown, options?: Given) =>
    // An error in the payload rejects the promise instead of being thrown.
    Promise.resolve().then(() =>
      coordinator().request(operation, target, extract(body), requestOptions(options))
    );
  const proxy = (method: string) => (options: Given = {}) => {
    const { path, query, headers, body, includeResponseHeaders } = options;
    return send("proxy", { method, path, query, headers, includeResponseHeaders }, body, options);
  };
  const client = (method: string, hasBody: boolean) => (url: string, ...rest: unknown[]) => {
    const [body, config] = hasBody ? rest : [undefined, rest[0]];
    return send("client", { method, url, headers: (config as { headers?: unknown })?.headers }, body);
  };
  return {
    tokens: {
      create: (model: unknown, options?: Given) => send("createToken", null, model, options),
      update: (id: string, model: unknown, options?: Given) => send("updateToken", id, model, options),
      retrieve: (id: string, options?: Given) => send("retrieveToken", id, null, options),
      encrypt: (model: unknown, options?: Given) => send("encrypt", null, model, options),
    },
    tokenize: (body: unknown, options?: Given) => send("tokenize", null, body, options),
    tokenIntents: { create: (model: unknown, options?: Given) => send("createTokenIntent", null, model, options) },
    sessions: { create: (options?: Given) => send("createSession", null, null, options) },
    proxy: {
      get: proxy("GET"),
      post: proxy("POST"),
      put: proxy("PUT"),
      patch: proxy("PATCH"),
      delete: proxy("DELETE"),
    },
    client: {
      post: client("POST", true),
      put: client("PUT", true),
      patch: client("PATCH", true),
      get: client("GET", false),
      delete: client("DELETE", false),
    },
  };
}
