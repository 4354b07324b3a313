// Orders: authenticated by the cardholder's bank, charged, and confirmed by the webhook.

import * as vault from "./vault.mjs";

/** What the shop sells. The price is the server's: the page only shows it. */
export const ITEM = { name: "Wool coat", description: "Bordeaux, size M", amount: 4250, currency: "EUR" };

const ID = /^[0-9a-f-]{36}$/;
const NAME = /^.{1,45}$/;
const EMAIL = /^[^\s@]{1,64}@[^\s@]{1,189}$/;

/** A real shop has a database, in which the id of an order is unique. */
const orders = new Map();

export const findOrder = (id) => orders.get(id);

/** What the page sees of an order. */
export function view({ id, state, card, isCardSaved, challenge }) {
  return { id, state, card, card_saved: isCardSaved, challenge };
}

/**
 * Authenticates a new order, and charges it unless the bank wants a challenge. Undefined if the request is invalid.
 *
 * The page chooses the id. A repeated request, after a lost response for example, returns the order of the first one.
 */
export async function placeOrder({ id, token_intent_id: tokenIntentId, session_id: sessionId, name, email }) {
  const isText = [id, tokenIntentId, sessionId, name, email].every((value) => typeof value === "string");
  const areIds = isText && [id, tokenIntentId, sessionId].every((value) => ID.test(value));
  if (!areIds || !NAME.test(name) || !EMAIL.test(email)) {
    return undefined;
  }
  if (orders.has(id)) {
    return orders.get(id);
  }
  const order = { id, state: "authenticating", item: ITEM, tokenIntentId, sessionId, name, email, isCardSaved: false };
  orders.set(id, order);
  return advance(order, () => vault.authenticate(order));
}

/** Charges an order after its challenge. A repeated request changes nothing, so that no card is charged twice. */
export async function completeChallenge(order) {
  if (order.state !== "challenge") {
    return order;
  }
  Object.assign(order, { state: "authenticating", challenge: undefined });
  return advance(order, () => vault.readChallengeResult(order));
}

/** The vault has the card of this order. */
export function markCardSaved(id) {
  const order = orders.get(id);
  if (order) {
    order.isCardSaved = true;
  }
}

async function advance(order, authenticate) {
  try {
    const authentication = await authenticate();
    order.state = stateAfter(authentication, order);
    if (order.state === "challenge") {
      order.challenge = {
        session_id: order.sessionId,
        acs_challenge_url: authentication.acsChallengeUrl,
        acs_transaction_id: authentication.acsTransactionId,
        threeds_version: authentication.threedsVersion,
      };
    } else if (order.state === "charging") {
      await charge(order, authentication);
    }
  } catch (error) {
    // Nothing was charged: `vault.charge` returns a state for every outcome.
    logError(order, error);
    order.state = "failed";
  }
  return order;
}

function stateAfter({ tokenIntentId, authenticationStatus }, order) {
  // The page names intent and session. Without this check, one card could be authenticated and another one charged.
  if (tokenIntentId !== order.tokenIntentId) {
    return "not_authenticated";
  }
  switch (authenticationStatus) {
    case "challenge":
      return "challenge";
    case "successful":
    case "attempted":
      return "charging";
    default:
      return "not_authenticated";
  }
}

/** Stores the card as a token and charges it. A card that cannot be charged is deleted. */
async function charge(order, authentication) {
  const token = await vault.saveCard(order);
  order.card = { last4: token.card?.last4 };
  order.state = await vault.charge(order, token.id, authentication);
  if (["declined", "failed"].includes(order.state)) {
    await vault.deleteCard(token.id).catch((error) => logError(order, error));
  }
}

function logError({ id }, error) {
  console.error(`order ${id}: ${error.statusCode ?? error.message}`);
}
