// The operations that a page can request: where a value may go, what is sent, and what the page gets back.

import { configurationError, ReportedError } from "../messages/channel";
import { camelKeys, snakeKeys } from "./keys";
import type { Payload, RequestOptions } from "../messages/protocol";
import { encrypt, parsePem } from "./encrypt";
import type { Fields } from "./fields";
import { fill, type Filled } from "./fill";
import { checkRequests, KEEP_NAMES, redact, withoutDetails } from "./guard";
import { anywhere, inData, inTokenizedData, inTokenRequests, nowhere, type PathRule } from "./places";
import { type Answer, type Api, pageHeaders, request } from "./http";
import type { References } from "./references";

export interface Context {
  api: Api;
  fields: Fields;
  references: References;
  /** Hosts besides the vault that may receive values, as listed by the tenant. */
  hosts: readonly string[];
}

interface Request {
  target: unknown;
  filled: Filled;
  options: RequestOptions;
}

interface Operation {
  mayHold: PathRule;
  run(context: Context, request: Request): Promise<unknown>;
}

interface ProxyTarget {
  method: string;
  path?: string;
  query?: Record<string, string>;
  headers?: Record<string, string>;
  includeResponseHeaders?: boolean;
}

const RAW_RESPONSE = "bt-expose-raw-proxy-response";
const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"];

export async function run(
  context: Context,
  name: string,
  target: unknown,
  received: Payload,
  options: RequestOptions,
): Promise<unknown> {
  // A message can contain one object in several places, and boxed strings. JSON has neither.
  const payload = JSON.parse(JSON.stringify(received)) as Payload;
  const operation = OPERATIONS.get(name);
  if (!operation) {
    throw configurationError("Unknown operation");
  }
  const hasElements = payload.placements.length > 0;
  if (hasElements) {
    context.api.requireOwnTenant(options ?? {});
  }
  await context.fields.refresh(payload.placements.map(({ elementId }) => elementId));
  const filled = fill(payload, context.fields, operation.mayHold);
  try {
    // Under one idempotency key, the API tells whether two requests are equal: the page could send guesses.
    const sent = hasElements ? { ...options, idempotencyKey: undefined } : options ?? {};
    return await operation.run(context, { target, filled, options: sent });
  } catch (error) {
    if (error instanceof ReportedError) {
      const { data, headers, ...wire } = error.wire;
      throw new ReportedError({ ...wire, data: redact(data, filled.secrets), headers: redact(headers, filled.secrets) });
    }
    throw error;
  }
}

/** An operation on tokens, whose names the API has in snake case and the page in camel case. */
function tokenOperation(method: string, path: (target: unknown) => string): Operation {
  return {
    mayHold: inData,
    async run({ api }, { target, filled, options }) {
      const given = snakeKeys(filled.json);
      if (filled.hasElements) {
        checkRequests({ type: undefined, ...given as object });
      }
      const answer = await api.json(method, path(target), given, options);
      return withDebug(api, answer, camelKeys(forPage(answer.body, filled, method === "PATCH")));
    },
  };
}

function segment(target: unknown): string {
  const text = String(target);
  if (text === "." || text === "..") {
    throw configurationError("This is not an id");
  }
  return encodeURIComponent(text);
}

const OPERATIONS = new Map<string, Operation>([
  ["createToken", tokenOperation("POST", () => "/tokens")],
  ["updateToken", tokenOperation("PATCH", (id) => `/tokens/${segment(id)}`)],
  ["createTokenIntent", tokenOperation("POST", () => "/token-intents")],
  ["tokenize", {
    mayHold: inTokenizedData,
    async run({ api }, { filled, options }) {
      if (filled.hasElements) {
        checkRequests(filled.json);
      }
      const answer = await api.json("POST", "/tokenize", filled.json, options);
      return forPage(answer.body, filled);
    },
  }],
  ["retrieveToken", {
    mayHold: nowhere,
    async run({ api, references }, { target, options }) {
      const answer = await api.json("GET", `/tokens/${segment(target)}`, undefined, options);
      const { data, ...token } = answer.body as Record<string, unknown>;
      return withDebug(api, answer, { ...camelKeys(token) as object, data: references.store(data) });
    },
  }],
  ["createSession", {
    mayHold: nowhere,
    async run({ api }, { options }) {
      const answer = await api.json("POST", "/sessions", undefined, options);
      api.addSession((answer.body as { session_key?: unknown }).session_key, options);
      return withDebug(api, answer, camelKeys(answer.body));
    },
  }],
  ["encrypt", {
    mayHold: inTokenRequests,
    run: encryptRequests,
  }],
  ["proxy", { mayHold: anywhere, run: invokeProxy }],
  ["client", { mayHold: anywhere, run: sendToHost }],
]);

function forPage(body: unknown, { hasElements, secrets }: Filled, isUpdate = false): unknown {
  return hasElements ? redact(withoutDetails(body, isUpdate), secrets, KEEP_NAMES) : body;
}

function withDebug(api: Api, answer: Answer, value: unknown): unknown {
  const debug = api.debug(answer);
  return debug && typeof value === "object" && value !== null ? { ...value, _debug: debug } : value;
}

/**
 * Encrypts to a key of the tenant.
 *
 * The public key comes from the vault, by its id. A page that could pass one of its own could decrypt the result.
 */
async function encryptRequests({ api }: Context, { filled, options }: Request): Promise<unknown> {
  const given = filled.json as Record<string, unknown>;
  const requests = (given.tokenRequests ?? {}) as Record<string, unknown>;
  const keyId = String(given.keyId ?? given.key_id);
  const path = `/web-elements/2/hosted-elements/keys/${segment(keyId)}?${new URLSearchParams({ apiKey: api.key })}`;
  const answer = await api.json("GET", path, undefined, options);
  const publicKey = parsePem(String((answer.body as { public_key_pem?: unknown }).public_key_pem));
  const seal = async (request: unknown) => {
    const { data, type } = request as { data: unknown; type: unknown };
    return { encrypted: await encrypt(data, keyId, publicKey), type };
  };
  if (typeof requests.type === "string" && "data" in requests) {
    return seal(requests);
  }
  const sealed = Object.entries(requests).map(async ([name, request]) => [name, await seal(request)] as const);
  return Object.fromEntries(await Promise.all(sealed));
}

/** Invokes a proxy of the tenant. The response may contain revealed values, so the page gets references to it. */
async function invokeProxy({ api, references, hosts }: Context, { target, filled, options }: Request): Promise<unknown> {
  const { method, path, query, headers: given, includeResponseHeaders } = target as ProxyTarget;
  const headers = pageHeaders(given);
  const destination = headers.get("bt-proxy-url");
  if (!METHODS.includes(method)) {
    throw configurationError("Unknown method");
  }
  if (filled.hasElements && destination !== null) {
    requireListed(destination, hosts, "BT-PROXY-URL");
  }
  const suffix = path ? `/${String(path).replace(/^\//, "")}` : "";
  const search = new URLSearchParams(Object.entries(query ?? {}).map(([key, value]) => [key, String(value)])).toString();
  const url = `/proxy${suffix}${search && `?${search}`}`;
  // As the browser will resolve it.
  const { pathname } = new URL(url, "https://vault.invalid");
  if (pathname !== "/proxy" && !pathname.startsWith("/proxy/")) {
    throw configurationError("The path leaves the proxy");
  }
  const hasBody = method !== "GET" && filled.json !== null && filled.json !== undefined;
  const answer = await api.json(method, url, hasBody ? filled.json : undefined, options, headers);
  const isRaw = answer.headers.has(RAW_RESPONSE);
  const data = isRaw ? redact(answer.body, filled.secrets) : references.store(answer.body);
  // Without the length of what the page gets a reference to.
  const shown = [...answer.headers].filter(([name]) => name !== "content-length");
  return includeResponseHeaders ? { data, headers: redact(Object.fromEntries(shown), filled.secrets) } : data;
}

/** Sends values to a server of the merchant, if the tenant lists it. The browser enforces the list too, by the CSP. */
async function sendToHost({ hosts }: Context, { target, filled }: Request): Promise<unknown> {
  const { method, url, headers } = target as { method: string; url: string; headers?: unknown };
  requireListed(String(url), hosts, "url");
  if (!METHODS.includes(method)) {
    throw configurationError("Unknown method");
  }
  const sent = pageHeaders(headers);
  const body = filled.json ?? undefined;
  if (body !== undefined && !sent.has("content-type")) {
    sent.set("content-type", "application/json");
  }
  const answer = await request(String(url), method, sent, body);
  if (answer.status < 200 || answer.status > 299) {
    throw new ReportedError({
      name: "HttpClientError",
      message: `Request failed with status ${answer.status}`,
      status: answer.status,
      data: answer.body,
      headers: Object.fromEntries(answer.headers),
    });
  }
  return redact(answer.body, filled.secrets);
}

function requireListed(url: string, hosts: readonly string[], name: string): void {
  let parsed: URL | undefined;
  try {
    parsed = new URL(url);
  } catch {
    // Reported like a host that is not listed.
  }
  const isListed = parsed?.protocol === "https:" && parsed.port === "" && hosts.includes(parsed.hostname);
  if (!isListed || parsed?.username || parsed?.password) {
    throw configurationError(`The host of ${name} is not in the tenant setting elements_hosts`, "missing-permission");
  }
}
