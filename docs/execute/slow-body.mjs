// Starts a request, and does not send its body: `node slow-body.mjs PATH [LENGTH]`. Prints the body of the response and its status.

import { connect } from "node:net";

const { hostname, port } = new URL(process.env.BASE_URL);
const socket = connect(Number(port), hostname);
const head = [
  `POST ${process.argv[2]} HTTP/1.1`,
  `Host: ${hostname}`,
  `BT-API-KEY: ${process.env.PRIVATE_KEY}`,
  "BT-PROXY-URL: https://api.example.com",
  "Content-Type: application/json",
  `Content-Length: ${process.argv[3] ?? 100}`,
];
socket.write(`${head.join("\r\n")}\r\n\r\n{`);
let text = "";
for await (const part of socket.setEncoding("utf8")) {
  text += part;
  const [headers, body] = text.split("\r\n\r\n");
  const length = Number(headers.match(/^content-length: (\d+)$/im)?.[1]);
  if (body?.length >= length) break;
}
socket.destroy();
const [headers, body] = text.split("\r\n\r\n");
console.log(`${body}\n${headers.match(/^HTTP\/1.1 (\d+)/)[1]}`);
