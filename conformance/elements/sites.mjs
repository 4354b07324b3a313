// The hosts of the tests, over TLS on one port: a shop, an attacker, a server of the merchant, and the vault.

import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer as createPlainServer, request as forward } from "node:http";
import { createServer } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { build } from "esbuild";

import { baseUrl, demoShop, management, publicKey } from "./vault.mjs";

export const SHOP = "shop.example";
export const EVIL = "evil.example";
export const MERCHANT = "api.shop.example";
export const ELEMENTS = "elements.vault.test";
export const HOSTS = [SHOP, EVIL, MERCHANT, ELEMENTS];

const HTML = "text/html; charset=utf-8";
const SCRIPT = "text/javascript; charset=utf-8";
const read = (path) => readFileSync(new URL(path, import.meta.url));

/** All that a merchant's page has to allow: the client script, and its frames. */
const POLICY = [
  "default-src 'self'",
  `script-src 'self' https://${ELEMENTS}`,
  `frame-src https://${ELEMENTS}`,
  "style-src 'self' 'unsafe-inline'",
].join("; ");

/** BIN data comes from a provider; the table of a new vault is empty. */
const CO_BADGED = {
  brand: "Visa",
  funding: "Debit",
  segment: "Consumer",
  issuer: { country: "FR", name: "Banque Exemple" },
  binRange: [{ binMin: "40000025", binMax: "40000025" }],
  additional: [{ brand: "Cartes Bancaires", funding: "Debit", issuer: { country: "FR", name: "Banque Exemple" } }],
};

/** Packages of the registry, bundled for a page without a build of its own. */
async function bundle(entry) {
  const { outputFiles: [file] } = await build({
    entryPoints: [new URL(entry, import.meta.url).pathname],
    bundle: true,
    write: false,
    format: "iife",
    platform: "browser",
    define: { "process.env.NODE_ENV": '"production"', global: "window" },
    inject: [],
    logLevel: "error",
    alias: { os: "os-browserify/browser" },
  });
  return Buffer.from(file.contents);
}

export async function openSites() {
  // The vault lists the demo shop only. These tests embed elements from other sites.
  const { name, settings } = await management.tenants.self.get();
  if (settings.elements_sites === demoShop.hosts[0]) {
    await management.tenants.self.update({ name, settings: { elements_sites: "" } });
  }

  const folder = mkdtempSync(join(tmpdir(), "elements-"));
  const names = HOSTS.map((host) => `DNS:${host}`).join(",");
  execFileSync("openssl", [
    "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
    "-subj", "/CN=tests", "-addext", `subjectAltName=${names}`, "-keyout", join(folder, "key"), "-out", join(folder, "cert"),
  ], { stdio: "ignore" });
  const tls = { key: readFileSync(join(folder, "key")), cert: readFileSync(join(folder, "cert")) };
  rmSync(folder, { recursive: true });

  const files = {
    "/": { type: HTML, body: read("shop/checkout.html"), policy: POLICY },
    "/unguarded": { type: HTML, body: read("shop/checkout.html") },
    "/react": { type: HTML, body: read("shop/react.html"), policy: POLICY },
    "/legacy": { type: HTML, body: read("shop/legacy.html"), policy: `${POLICY}; connect-src 'self' https://${ELEMENTS}` },
    "/web-elements.js": { type: SCRIPT, body: read("node_modules/@basis-theory/web-elements/dist/bundle/index.js") },
    "/settings.js": { type: SCRIPT, body: `window.settings = ${JSON.stringify({ publicKey, ELEMENTS, EVIL, MERCHANT })};` },
    "/attacks.js": { type: SCRIPT, body: read("shop/attacks.js") },
    "/watch.js": { type: SCRIPT, body: read("shop/watch.js") },
    "/react.js": { type: SCRIPT, body: await bundle("shop/react.jsx") },
    "/legacy.js": { type: SCRIPT, body: await bundle("shop/legacy.js") },
    "/favicon.ico": { type: "image/x-icon", body: "" },
  };
  /** What other hosts than the vault received. */
  const received = [];
  /** Requests to the vault: path and status, and the body where a test needs it. */
  const requests = [];

  const server = createServer(tls, async (request, response) => {
    const host = request.headers.host?.split(":")[0];
    const body = Buffer.concat(await request.toArray());
    if (host === ELEMENTS) {
      proxy(request, body, response, requests);
    } else if (host === SHOP) {
      const file = files[new URL(request.url, "https://shop").pathname];
      const policy = file?.policy ? { "Content-Security-Policy": file.policy } : {};
      response.writeHead(file ? 200 : 404, { "Content-Type": file?.type ?? "text/plain", ...policy });
      response.end(file?.body ?? "");
    } else {
      received.push({ host, method: request.method, url: request.url, headers: request.headers, body: body.toString() });
      const cors = { "Access-Control-Allow-Origin": "*", "Access-Control-Allow-Headers": "*", "Access-Control-Allow-Methods": "*" };
      if (request.method === "OPTIONS") {
        response.writeHead(204, cors);
        response.end();
      } else if (request.url.startsWith("/page")) {
        response.writeHead(200, { "Content-Type": HTML });
        response.end(files["/unguarded"].body);
      } else if (request.url.startsWith("/fail")) {
        response.writeHead(422, { "Content-Type": "application/json", ...cors });
        response.end(JSON.stringify({ echo: body.toString() }));
      } else {
        response.writeHead(200, { "Content-Type": "application/json", ...cors });
        // A server that repeats what it received, as careless ones do.
        response.end(JSON.stringify({ ok: true, echo: body.length ? JSON.parse(body) : null }));
      }
    }
  });
  // On a slow machine the default of five seconds closes connections that the browser is about to use.
  server.keepAliveTimeout = 120_000;
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: server.address().port,
    received,
    requests,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** A server behind the vault's proxy, at the address where the vault expects the demo shop. */
export async function openDestination() {
  const received = [];
  const server = createPlainServer(async (request, response) => {
    const body = Buffer.concat(await request.toArray()).toString();
    // The vault also delivers events to the demo shop's address.
    if (request.url !== "/webhooks") {
      received.push({ method: request.method, url: request.url, body });
    }
    // A destination must not choose what the page sees.
    const headers = { "Content-Type": "application/json", "X-Merchant": "yes", "BT-EXPOSE-RAW-PROXY-RESPONSE": "true" };
    response.writeHead(200, headers);
    response.end(JSON.stringify({ method: request.method, echo: body ? JSON.parse(body) : null }));
  });
  server.listen(Number(demoShop.environment.PORT), "127.0.0.1");
  await once(server, "listening");
  const url = `${demoShop.url}:${demoShop.front.split(":")[1]}`;
  const close = () => {
    server.closeAllConnections();
    server.close();
  };
  return { url, received, close };
}

function proxy(request, body, response, requests) {
  const { pathname, searchParams } = new URL(request.url, "https://vault");
  const entry = { method: request.method, pathname, headers: request.headers, body: body.toString() };
  requests.push(entry);
  if (pathname === "/enrichments/card-details" && searchParams.get("bin")?.startsWith("400000")) {
    response.writeHead(200, { "Content-Type": "application/json" });
    response.end(JSON.stringify(CO_BADGED));
    return;
  }
  // The vault marks no response as raw; the hosted service does.
  const raw = pathname === "/proxy/raw" ? { "BT-EXPOSE-RAW-PROXY-RESPONSE": "true" } : {};
  const upstream = forward(new URL(request.url, baseUrl), { method: request.method, headers: request.headers }, (answer) => {
    entry.status = answer.statusCode;
    response.writeHead(answer.statusCode, { ...answer.headers, ...raw });
    answer.pipe(response);
  });
  upstream.on("error", () => {
    response.writeHead(502);
    response.end();
  });
  upstream.end(body);
}
