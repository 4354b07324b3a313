"""Orders: authenticated by the cardholder's bank, charged, and confirmed by the webhook."""

import re
import sys
from dataclasses import dataclass, field
from threading import Lock

import vault

# What the shop sells. The price is the server's: the page only shows it.
ITEM = {"name": "Wool coat", "description": "Bordeaux, size M", "amount": 4250, "currency": "EUR"}

ID = re.compile(r"[0-9a-f-]{36}")
NAME = re.compile(r".{1,45}")
EMAIL = re.compile(r"[^\s@]{1,64}@[^\s@]{1,189}")


@dataclass
class Order:
    id: str
    token_intent_id: str
    session_id: str
    name: str
    email: str
    item: dict = field(default_factory=lambda: ITEM)
    state: str = "authenticating"
    card: dict | None = None
    is_card_saved: bool = False
    challenge: dict | None = None


# A real shop has a database, in which the id of an order is unique.
orders: dict[str, Order] = {}
# Serializes changes of states, so that concurrent requests cannot charge an order twice.
lock = Lock()


def find(order_id):
    return orders.get(order_id)


def view(order):
    """What the page sees of an order."""
    shown = {
        "id": order.id,
        "state": order.state,
        "card": order.card,
        "card_saved": order.is_card_saved,
        "challenge": order.challenge,
    }
    return {name: value for name, value in shown.items() if value is not None}


def place(body):
    """Authenticates a new order, and charges it unless the bank wants a challenge. None if the request is invalid.

    The page chooses the id. A repeated request, after a lost response for example, returns the order of the first one.
    """
    rules = {"id": ID, "token_intent_id": ID, "session_id": ID, "name": NAME, "email": EMAIL}
    values = {name: body.get(name) for name in rules}
    if not all(isinstance(value, str) and rules[name].fullmatch(value) for name, value in values.items()):
        return None
    with lock:
        if values["id"] in orders:
            return orders[values["id"]]
        order = orders[values["id"]] = Order(**values)
    return advance(order, vault.authenticate)


def complete_challenge(order):
    """Charges an order after its challenge. A repeated request changes nothing, so that no card is charged twice."""
    with lock:
        if order.state != "challenge":
            return order
        order.state = "authenticating"
        order.challenge = None
    return advance(order, vault.read_challenge_result)


def mark_card_saved(order_id):
    """The vault has the card of this order."""
    if order_id in orders:
        orders[order_id].is_card_saved = True


def advance(order, authenticate):
    try:
        authentication = authenticate(order)
        order.state = state_after(authentication, order)
        if order.state == "challenge":
            order.challenge = {
                "session_id": order.session_id,
                "acs_challenge_url": authentication.acs_challenge_url,
                "acs_transaction_id": authentication.acs_transaction_id,
                "threeds_version": authentication.threeds_version,
            }
        elif order.state == "charging":
            charge(order, authentication)
    except Exception as error:
        # Nothing was charged: `vault.charge` returns a state for every outcome.
        log_error(order, error)
        order.state = "failed"
    return order


def state_after(authentication, order):
    # The page names intent and session. Without this check, one card could be authenticated and another one charged.
    if authentication.token_intent_id != order.token_intent_id:
        return "not_authenticated"
    match authentication.authentication_status:
        case "challenge":
            return "challenge"
        case "successful" | "attempted":
            return "charging"
        case _:
            return "not_authenticated"


def charge(order, authentication):
    """Stores the card as a token and charges it. A card that cannot be charged is deleted."""
    token = vault.save_card(order)
    order.card = {"last4": token.card.last4}
    order.state = vault.charge(order, token.id, authentication)
    if order.state in ("declined", "failed"):
        try:
            vault.delete_card(token.id)
        except Exception as error:
            log_error(order, error)


def log_error(order, error):
    reason = getattr(error, "status_code", None) or type(error).__name__
    print(f"order {order.id}: {reason}", file=sys.stderr, flush=True)
