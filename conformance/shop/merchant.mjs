// What the shop's server received and sent, and requests to it past the browser.

import { createHmac } from "node:crypto";

import { until } from "./server.mjs";
import { ask, shop } from "./vault.mjs";

/** What the shop's page creates before it places an order. */
export async function intentAndSession(number) {
  const key = shop.environment.VAULT_PUBLIC_KEY;
  const data = { number, expiration_month: 12, expiration_year: 2031, cvc: "739" };
  const intent = await ask("/token-intents", { key, method: "POST", body: { type: "card", data } });
  const device_info = {
    browser_javascript_enabled: true, browser_java_enabled: false, browser_language: "en-US", browser_color_depth: "24",
    browser_screen_height: "900", browser_screen_width: "1440", browser_tz: "0", browser_user_agent: "Mozilla/5.0",
  };
  const session = await ask("/3ds/sessions", {
    key, method: "POST", body: { token_intent_id: intent.body.id, type: "customer", device: "browser", device_info },
  });
  return { token_intent_id: intent.body.id, session_id: session.body.id };
}

export const order = (ids) => ({ id: crypto.randomUUID(), name: "Ada Example", email: "ada@shop.example", ...ids });

/** Nine digits in a row, and the number as people write it. */
export function parts(number) {
  const runs = Array.from({ length: number.length - 8 }, (_, at) => number.slice(at, at + 9));
  return [...runs, number.replace(/(.{4})(?=.)/g, "$1 "), number.replace(/(.{4})(?=.)/g, "$1-")];
}

export function sign(body, timestamp, secret = shop.environment.WEBHOOK_SECRET) {
  const key = Buffer.from(secret.replace("whsec_", ""), "base64");
  const text = `msg_1.${timestamp}.${JSON.stringify(body)}`;
  const signature = createHmac("sha256", key).update(text).digest("base64");
  return { "webhook-id": "msg_1", "webhook-timestamp": String(timestamp), "webhook-signature": `v1,${signature}` };
}

/** The event of an order's token, once it has been delivered. An event can arrive more than once, and late. */
export function eventOf(server, orderId) {
  return until(() => {
    const bodies = server.toShop.text().match(/\{"delivered_at":.*\}/g) ?? [];
    const events = bodies.map((body) => JSON.parse(body).event);
    return events.find(({ data }) => data.token.metadata.order_id === orderId);
  });
}

/** Bodies that the server sent to the vault's proxy. */
export function charges(server) {
  const bodies = server.toVault.text().match(/\{"source":\s?\{.*?"3ds":\s?\{[^}]*\}\}/g) ?? [];
  return bodies.map((body) => JSON.parse(body));
}

/** How many orders the server was asked for. */
export function orders(server) {
  return server.toShop.text().split("POST /orders HTTP").length - 1;
}

/** How many token intents the server asked the vault to convert. */
export function conversions(server) {
  return server.toVault.text().split("POST /tokens HTTP").length - 1;
}
