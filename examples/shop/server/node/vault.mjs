// All requests to the vault. The server handles ids only; the vault adds the card on its way to the processor.

import { BasisTheoryClient } from "@basis-theory/node-sdk";

import { environment } from "./environment.mjs";

const { VAULT_API_URL, VAULT_PRIVATE_KEY, PROXY_KEY } = environment;
const CHARGE_TIMEOUT_MS = 30_000;
/** Errors of the vault with a 5xx status after which nothing was sent: see docs/guides/proxy.md. */
const NOT_SENT = [
  "destination_unreachable",
  "destination_tls",
  "audit_unavailable",
  "busy",
  "destination_overloaded",
  "destination_circuit_open",
];
/** 4xx statuses after which the processor may have charged the card. */
const UNKNOWN = [408, 409];

const vault = new BasisTheoryClient({ apiKey: VAULT_PRIVATE_KEY, baseUrl: VAULT_API_URL });

/** The merchant, as the acquirer has registered it for 3-D Secure. */
const MERCHANT = { mid: "9876543210001", acquirerBin: "000000999", name: "Coat & Hat", countryCode: "276", categoryCode: "5651" };
const REQUESTOR = { id: "9876543210001", name: "Coat & Hat", url: "https://shop.example" };
/** ISO 4217, as 3-D Secure has it. */
const CURRENCY_NUMBERS = { EUR: "978" };

/** Authenticates with 3-D Secure. */
export function authenticate({ sessionId, item, name, email }) {
  return vault.threeds.sessions.authenticate(sessionId, {
    authenticationCategory: "payment",
    authenticationType: "payment-transaction",
    purchaseInfo: {
      amount: String(item.amount),
      currency: CURRENCY_NUMBERS[item.currency],
      exponent: "2",
      date: new Date().toISOString().replace(/\D/g, "").slice(0, 14),
      transactionType: "purchase",
    },
    merchantInfo: MERCHANT,
    requestorInfo: REQUESTOR,
    cardholderInfo: { name, email },
  });
}

export function readChallengeResult({ sessionId }) {
  return vault.threeds.sessions.getChallengeResult(sessionId);
}

/** Converts the token intent to a token. An intent can be converted once. */
export function saveCard({ id, tokenIntentId }) {
  return vault.tokens.create({ tokenIntentId, metadata: { order_id: id } });
}

export function deleteCard(tokenId) {
  return vault.tokens.delete(tokenId);
}

/** Charges a token at the processor, through the vault's proxy. Returns the state of the order. */
export async function charge({ id, item }, tokenId, authentication) {
  const card = (path) => `{{ ${tokenId} | json: '$.${path}' }}`;
  const request = {
    method: "POST",
    headers: {
      "BT-API-KEY": VAULT_PRIVATE_KEY,
      "BT-PROXY-KEY": PROXY_KEY,
      // The processor charges an order once, however often it is asked.
      "Cko-Idempotency-Key": id,
      "Content-Type": "application/json",
    },
    body: JSON.stringify({
      source: {
        type: "card",
        number: card("number"),
        expiry_month: card("expiration_month"),
        expiry_year: card("expiration_year"),
        cvv: card("cvc"),
      },
      amount: item.amount,
      currency: item.currency,
      reference: id,
      // Proof of the authentication, which shifts the liability for fraud to the issuer.
      "3ds": {
        enabled: true,
        eci: authentication.eci,
        cryptogram: authentication.authenticationValue,
        xid: authentication.dsTransactionId,
        version: authentication.threedsVersion,
      },
    }),
    signal: AbortSignal.timeout(CHARGE_TIMEOUT_MS),
  };
  try {
    const response = await fetch(`${VAULT_API_URL}/proxy/payments`, request);
    return stateAfter(response, await response.text());
  } catch {
    return "pending";
  }
}

/** Unless the response says otherwise, the processor may have charged the card. */
function stateAfter({ status, headers }, text) {
  if (status >= 400 && status < 500) {
    return UNKNOWN.includes(status) ? "pending" : "failed";
  }
  const body = JSON.parse(text);
  if (!headers.has("BT-PROXY-DESTINATION-STATUS")) {
    return NOT_SENT.includes(body.proxy_error.code) ? "failed" : "pending";
  }
  if (status !== 201 || typeof body.approved !== "boolean") {
    return "pending";
  }
  return body.approved ? "paid" : "declined";
}
