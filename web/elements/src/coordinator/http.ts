// Requests of this frame: to the API of its own origin, and to hosts that the tenant lists.

import { configurationError, ReportedError } from "../messages/channel";
import type { RequestOptions } from "../messages/protocol";

const TIMEOUT_MS = 40_000;

export interface Answer {
  status: number;
  headers: Headers;
  body: unknown;
}

/** The API is where these files are, up to a prefix of its own. */
const API = location.origin + location.pathname.slice(0, Math.max(location.pathname.indexOf("/web-elements/"), 0));

export class Api {
  /** Keys of sessions that this frame created with its own key, and which therefore belong to the same tenant. */
  readonly #sessions = new Set<string>();

  constructor(readonly key: string, readonly isDebug: boolean) {}

  /**
   * Rejects a key of the page for a request with values of elements.
   *
   * Whoever owns the key owns the tenant that would store the values, or the proxy that would receive them.
   */
  requireOwnTenant({ apiKey }: RequestOptions): void {
    if (!isAbsent(apiKey) && apiKey !== this.key && !this.#sessions.has(String(apiKey))) {
      throw configurationError(
        "With elements, apiKey can only be the key that elements were initialized with, or a session key that "
          + "sessions.create returned on this page",
      );
    }
  }

  addSession(key: unknown, { apiKey }: RequestOptions): void {
    if (typeof key === "string" && (isAbsent(apiKey) || apiKey === this.key)) {
      this.#sessions.add(key);
    }
  }

  async send(method: string, path: string, body: unknown, options: RequestOptions = {}, headers: Headers = new Headers()): Promise<Answer> {
    const type = method === "PATCH" && path.startsWith("/tokens") ? "application/merge-patch+json" : "application/json";
    if (body !== undefined && !headers.has("content-type")) {
      headers.set("content-type", type);
    }
    headers.set("bt-api-key", text(options.apiKey) ?? this.key);
    const optional = { "bt-trace-id": text(options.correlationId), "bt-idempotency-key": text(options.idempotencyKey) };
    for (const [name, value] of Object.entries(optional)) {
      if (value !== undefined) {
        headers.set(name, value);
      }
    }
    return request(API + path, method, headers, body);
  }

  /** The body of a success; anything else is an error for the page. */
  async json(...request: Parameters<Api["send"]>): Promise<Answer> {
    const answer = await this.send(...request);
    if (answer.status < 200 || answer.status > 299) {
      throw new ReportedError({
        name: "BasisTheoryApiError",
        message: String((answer.body as { title?: unknown })?.title ?? "API request failed"),
        status: answer.status,
        data: answer.body,
        debug: this.debug(answer),
      });
    }
    return answer;
  }

  debug({ headers }: Answer): Record<string, unknown> | undefined {
    return this.isDebug ? { btTraceId: headers.get("bt-trace-id") } : undefined;
  }
}

export async function request(url: string, method: string, headers: Headers, body: unknown): Promise<Answer> {
  let response: Response;
  try {
    response = await fetch(url, {
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      credentials: "omit",
      cache: "no-store",
      redirect: "error",
      referrerPolicy: "no-referrer",
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
  } catch {
    throw new ReportedError({ name: "BasisTheoryApiError", message: "The API could not be reached", status: -1 });
  }
  const received = await response.text();
  return { status: response.status, headers: response.headers, body: parse(received) };
}

function parse(received: string): unknown {
  try {
    return received === "" ? undefined : JSON.parse(received);
  } catch {
    return received;
  }
}

const isAbsent = (value: unknown) => value === undefined || value === null;

/** Options come from the page: anything but a text that a header can hold is treated as absent. */
function text(value: unknown): string | undefined {
  return typeof value === "string" && /^[\x20-\x7e]{1,400}$/.test(value) ? value : undefined;
}

/** Headers that a page chose. The key and the identity of the page are not among them. */
export function pageHeaders(given: unknown): Headers {
  const headers = new Headers();
  for (const [name, value] of Object.entries((given ?? {}) as Record<string, unknown>)) {
    const isToken = /^[A-Za-z0-9-]{1,100}$/.test(name) && name.toLowerCase() !== "bt-api-key";
    if (isToken && typeof value === "string" && /^[\x20-\x7e\t]*$/.test(value)) {
      headers.set(name, value);
    }
  }
  return headers;
}
