// A vault whose proxy returns prepared responses instead of those of the processor.

import { once } from "node:events";
import { createServer } from "node:http";

import { baseUrl } from "./vault.mjs";

const fromProcessor = (status, body) => ({ status, body, headers: { "BT-PROXY-DESTINATION-STATUS": String(status) } });
const fromVault = (status, code) => ({ status, body: JSON.stringify({ proxy_error: { status, code } }), headers: {} });

/** Responses of the proxy, and the state of the order after them. */
export const OUTCOMES = [
  [fromProcessor(201, '{"approved":true}'), "paid"],
  [fromProcessor(201, '{"approved":false}'), "declined"],
  [fromProcessor(201, '{"approved":'), "pending"],
  [fromProcessor(201, "{}"), "pending"],
  [fromProcessor(202, '{"status":"Pending"}'), "pending"],
  [fromProcessor(401, ""), "failed"],
  [fromProcessor(422, "{}"), "failed"],
  [fromProcessor(409, "{}"), "pending"],
  [fromProcessor(500, "{}"), "pending"],
  [fromProcessor(503, '{"proxy_error":{"code":"busy"}}'), "pending"],
  [fromProcessor(504, "<html>"), "pending"],
  [fromVault(403, "host_not_allowed"), "failed"],
  [fromVault(408, "destination_timeout"), "pending"],
  [fromVault(502, "destination_unreachable"), "failed"],
  [fromVault(502, "destination_interrupted"), "pending"],
  [fromVault(503, "destination_circuit_open"), "failed"],
  [{ status: 504, body: "<html>", headers: {} }, "pending"],
  // The connection is closed within the body.
  [{ ...fromProcessor(201, '{"approved":true}'), isInterrupted: true }, "pending"],
];

/** Forwards requests to the vault, but not those to its proxy. Counts deleted tokens. */
export async function startVault() {
  const vault = { response: undefined, deleted: 0 };
  const server = createServer(async (request, response) => {
    const chunks = await request.toArray();
    if (request.url.startsWith("/proxy/")) {
      const { status, body, headers, isInterrupted } = vault.response;
      response.writeHead(status, { ...headers, "Content-Length": Buffer.byteLength(body) + (isInterrupted ? 1 : 0) });
      response.write(body, () => (isInterrupted ? response.destroy() : response.end()));
      return;
    }
    vault.deleted += request.method === "DELETE" ? 1 : 0;
    const { "bt-api-key": key, "content-type": type = "application/json" } = request.headers;
    const forwarded = await fetch(`${baseUrl}${request.url}`, {
      method: request.method,
      headers: { "BT-API-KEY": key, "Content-Type": type },
      body: chunks.length ? Buffer.concat(chunks) : undefined,
    });
    response.writeHead(forwarded.status, { "Content-Type": forwarded.headers.get("content-type") ?? "text/plain" });
    response.end(Buffer.from(await forwarded.arrayBuffer()));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  vault.url = `http://127.0.0.1:${server.address().port}`;
  vault.close = () => {
    server.closeAllConnections();
    server.close();
  };
  return vault;
}
