// Verifies deliveries of webhooks, as docs/guides/webhooks.md describes.

import { createHmac, timingSafeEqual } from "node:crypto";

import { environment } from "./environment.mjs";

const AGE_MAX_SECONDS = 5 * 60;
const SECRET = Buffer.from(environment.WEBHOOK_SECRET.replace(/^whsec_/, ""), "base64");

/** The event of a delivery. Undefined if the signature is invalid or older than five minutes. */
export function readEvent(headers, body, now = Date.now() / 1000) {
  const { "webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": signatures = "" } = headers;
  const expected = createHmac("sha256", SECRET).update(`${id}.${timestamp}.`).update(body).digest();
  const isSigned = signatures.split(" ").some((signature) => {
    const sent = Buffer.from(signature.replace(/^v1,/, ""), "base64");
    return sent.length === expected.length && timingSafeEqual(sent, expected);
  });
  if (!isSigned || !(Math.abs(now - Number(timestamp)) <= AGE_MAX_SECONDS)) {
    return undefined;
  }
  return JSON.parse(body).event;
}
