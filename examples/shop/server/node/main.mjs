// The shop's server: its page, its orders, and the endpoint of its webhook.

import { readFileSync } from "node:fs";
import { createServer } from "node:http";

import { isAllowed, isHuman } from "./card-testing.mjs";
import { environment } from "./environment.mjs";
import { ITEM, completeChallenge, findOrder, markCardSaved, placeOrder, view } from "./orders.mjs";
import { readEvent } from "./webhook.mjs";

const BODY_BYTES_MAX = 65_536;
const { VAULT_HOST, VAULT_PUBLIC_KEY } = environment;
const vault = `https://${VAULT_HOST}`;

/** The page may load the script of web elements and frames from the vault, and nothing from anywhere else. */
const HEADERS = {
  "Content-Security-Policy": [
    "default-src 'none'",
    `script-src 'self' ${vault}/web-elements/`,
    `frame-src ${vault}`,
    `connect-src 'self' ${vault}`,
    "style-src 'self'",
    // The official 3-D Secure package hides its frames with a style attribute.
    "style-src-attr 'unsafe-inline'",
    "img-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join("; "),
  "Cache-Control": "no-store",
  "Referrer-Policy": "no-referrer",
  "X-Content-Type-Options": "nosniff",
};

const read = (path) => readFileSync(new URL(`../../${path}`, import.meta.url));
const FILES = {
  "/": ["text/html; charset=utf-8", read("page/index.html")],
  "/checkout.css": ["text/css; charset=utf-8", read("page/checkout.css")],
  "/checkout.js": ["text/javascript; charset=utf-8", read("page/checkout.js")],
  "/icon.svg": ["image/svg+xml", read("page/icon.svg")],
  "/coat.svg": ["image/svg+xml", read("page/coat.svg")],
  "/web-elements.js": ["text/javascript; charset=utf-8", read("node_modules/@basis-theory/web-elements/dist/bundle/index.js")],
  "/web-threeds.js": ["text/javascript; charset=utf-8", read("node_modules/@basis-theory/web-threeds/dist/bundle/index.js")],
  "/settings.json": [
    "application/json",
    JSON.stringify({ public_key: VAULT_PUBLIC_KEY, vault_host: VAULT_HOST, item: ITEM }),
  ],
};

const ROUTES = [
  ["POST", /^\/orders$/, order],
  ["GET", /^\/orders\/([^/]+)$/, (_, id) => json(200, view(find(id)))],
  ["POST", /^\/orders\/([^/]+)\/challenge$/, async (_, id) => json(200, view(await completeChallenge(find(id))))],
  ["POST", /^\/webhooks$/, webhook],
  ["GET", /^/, file],
];

function respond(request) {
  const { pathname } = new URL(request.url, "http://shop");
  for (const [method, path, handler] of ROUTES) {
    const match = request.method === method && path.exec(pathname);
    if (match) {
      return handler(request, match[1] ?? pathname);
    }
  }
  return json(404, { error: "not_found" });
}

function file(_, path) {
  const [type, body] = FILES[path] ?? [];
  return type ? { status: 200, type, body } : json(404, { error: "not_found" });
}

async function order(request) {
  // Behind a load balancer, take the address from the header that the load balancer sets.
  if (!isAllowed(request.socket.remoteAddress)) {
    return json(429, { error: "too_many_attempts" });
  }
  const body = await readJson(request);
  if (!(await isHuman(request, body.captcha))) {
    return json(403, { error: "not_human" });
  }
  const placed = await placeOrder(body);
  return placed ? json(200, view(placed)) : json(400, { error: "invalid" });
}

async function webhook(request) {
  const event = readEvent(request.headers, await readBody(request));
  if (!event) {
    return json(401, { error: "invalid_signature" });
  }
  if (event.type === "token.created") {
    markCardSaved(event.data.token.metadata?.order_id);
  }
  return { status: 204, body: "" };
}

function find(id) {
  const order = findOrder(id);
  if (!order) {
    throw rejection(404, "not_found");
  }
  return order;
}

async function readJson(request) {
  const text = await readBody(request);
  try {
    return Object(JSON.parse(text));
  } catch {
    throw rejection(400, "invalid");
  }
}

async function readBody(request) {
  const chunks = [];
  let size = 0;
  for await (const chunk of request) {
    size += chunk.length;
    if (size > BODY_BYTES_MAX) {
      throw rejection(413, "invalid");
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** An error that is returned to the page. */
function rejection(status, code) {
  return Object.assign(new Error(code), { status, code });
}

function json(status, value) {
  return { status, type: "application/json", body: JSON.stringify(value) };
}

const server = createServer(async (request, response) => {
  let result;
  try {
    result = await respond(request);
  } catch (error) {
    if (!error.status) {
      console.error(error);
    }
    result = json(error.status ?? 500, { error: error.status ? error.code : "failed" });
  }
  const { status, type, body } = result;
  response.writeHead(status, { ...HEADERS, ...(type && { "Content-Type": type }) });
  response.end(body);
  // Without the query, which could contain anything.
  console.log(`${request.method} ${request.url.split("?")[0]} ${status}`);
});
server.listen(environment.PORT, "127.0.0.1");
