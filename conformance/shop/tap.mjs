// A TCP proxy that records every byte in both directions.

import { once } from "node:events";
import { connect, createServer } from "node:net";

/** Forwards `port` (0 for a free one) to `target`, which may change between connections. */
export async function openTap(port, target) {
  const chunks = [];
  const tap = { target, text: () => Buffer.concat(chunks).toString("latin1"), close };
  const sockets = new Set();
  const server = createServer((client) => {
    const upstream = connect(tap.target, "127.0.0.1");
    for (const [from, to] of [[client, upstream], [upstream, client]]) {
      sockets.add(from);
      from.on("data", (chunk) => chunks.push(chunk));
      from.pipe(to);
      from.on("error", () => to.destroy());
      from.on("close", () => sockets.delete(from));
    }
  });
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  tap.port = server.address().port;

  function close() {
    sockets.forEach((socket) => socket.destroy());
    server.close();
  }
  return tap;
}
