// A small shop: its checkout page, and the server behind it, which alone has the private key.

import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";

import { baseUrl, browserPackage, publicKey, vault } from "./vault.mjs";

const read = (name) => readFileSync(new URL(`shop/${name}`, import.meta.url), "utf8");
const HTML = "text/html; charset=utf-8";
const SCRIPT = "text/javascript; charset=utf-8";

/** All that a merchant's page has to allow: the vault may be called, and framed. */
const POLICY = [
  "default-src 'self'",
  `connect-src 'self' ${baseUrl}`,
  `frame-src ${baseUrl}`,
  "style-src 'self' 'unsafe-inline'",
  "img-src data:",
].join("; ");

/** What is bought. The amount has no meaning to a simulated issuer. */
export function purchase(more = {}) {
  return {
    authenticationCategory: "payment",
    authenticationType: "payment-transaction",
    purchaseInfo: {
      amount: "4250",
      currency: "978",
      exponent: "2",
      date: new Date().toISOString().replace(/\D/g, "").slice(0, 14),
      transactionType: "purchase",
    },
    merchantInfo: {
      mid: "9876543210001",
      acquirerBin: "000000999",
      name: "Coat & Hat",
      countryCode: "826",
      categoryCode: "5651",
      url: "https://shop.example",
    },
    requestorInfo: {
      id: "9876543210001",
      name: "Coat & Hat",
      url: "https://shop.example",
    },
    cardholderInfo: { name: "Ada Example", email: "ada@shop.example" },
    ...more,
  };
}

const pages = {
  "/": { type: HTML, body: read("checkout.html"), policy: POLICY },
  // Where the page may ask for anything, so that it shows what it would ask for.
  "/unguarded": { type: HTML, body: read("checkout.html") },
  "/checkout.js": { type: SCRIPT, body: read("checkout.js") },
  "/web-threeds.js": { type: SCRIPT, body: browserPackage },
  "/settings.js": {
    type: SCRIPT,
    body: `window.settings = ${JSON.stringify({ baseUrl, publicKey })};`,
  },
  "/success": { type: HTML, body: read("success.html") },
  "/failure": { type: HTML, body: read("failure.html") },
};

const calls = {
  "/authenticate": ({ sessionId, more }) =>
    vault.threeds.sessions.authenticate(sessionId, purchase(more)),
  "/result": ({ sessionId }) => vault.threeds.sessions.getChallengeResult(sessionId),
};

/** Opens the shop on a free port, and tells its address and how to close it. */
export async function openShop() {
  const server = createServer((request, response) => {
    answer(request, response).catch((error) => {
      const status = error.statusCode ?? 500;
      const body = error.body ?? { title: String(error) };
      response.writeHead(status, { "Content-Type": "application/json" });
      response.end(JSON.stringify(body));
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${server.address().port}`;
  const close = () => {
    server.closeAllConnections();
    server.close();
  };
  return { url, close };
}

async function answer(request, response) {
  const { pathname } = new URL(request.url, "http://shop");
  if (request.method === "POST" && calls[pathname]) {
    const chunks = await request.toArray();
    const asked = JSON.parse(Buffer.concat(chunks).toString("utf8"));
    const body = JSON.stringify(await calls[pathname](asked));
    response.writeHead(200, { "Content-Type": "application/json" });
    response.end(body);
    return;
  }
  const page = pages[pathname] ?? { type: "text/plain", body: "There is no such page." };
  const policy = page.policy ? { "Content-Security-Policy": page.policy } : {};
  response.writeHead(pages[pathname] ? 200 : 404, { "Content-Type": page.type, ...policy });
  response.end(page.body);
}
