"""All requests to the vault. The server handles ids only; the vault adds the card on its way to the processor."""

import datetime as dt

import httpx
from basis_theory import BasisTheory

from environment import ENVIRONMENT

CHARGE_TIMEOUT_SECONDS = 30
# Errors of the vault with a 5xx status after which nothing was sent: see docs/guides/proxy.md.
NOT_SENT = [
    "destination_unreachable",
    "destination_tls",
    "audit_unavailable",
    "busy",
    "destination_overloaded",
    "destination_circuit_open",
]
# 4xx statuses after which the processor may have charged the card.
UNKNOWN = [408, 409]

vault = BasisTheory(api_key=ENVIRONMENT["VAULT_PRIVATE_KEY"], base_url=ENVIRONMENT["VAULT_API_URL"])

# The merchant, as the acquirer has registered it for 3-D Secure.
MERCHANT = {
    "mid": "9876543210001",
    "acquirer_bin": "000000999",
    "name": "Coat & Hat",
    "country_code": "276",
    "category_code": "5651",
}
REQUESTOR = {"id": "9876543210001", "name": "Coat & Hat", "url": "https://shop.example"}
# ISO 4217, as 3-D Secure has it.
CURRENCY_NUMBERS = {"EUR": "978"}


def authenticate(order):
    """Authenticates with 3-D Secure."""
    return vault.threeds.sessions.authenticate(
        order.session_id,
        authentication_category="payment",
        authentication_type="payment-transaction",
        purchase_info={
            "amount": str(order.item["amount"]),
            "currency": CURRENCY_NUMBERS[order.item["currency"]],
            "exponent": "2",
            "date": dt.datetime.now(dt.timezone.utc).strftime("%Y%m%d%H%M%S"),
            "transaction_type": "purchase",
        },
        merchant_info=MERCHANT,
        requestor_info=REQUESTOR,
        cardholder_info={"name": order.name, "email": order.email},
    )


def read_challenge_result(order):
    return vault.threeds.sessions.get_challenge_result(order.session_id)


def save_card(order):
    """Converts the token intent to a token. An intent can be converted once."""
    return vault.tokens.create(token_intent_id=order.token_intent_id, metadata={"order_id": order.id})


def delete_card(token_id):
    vault.tokens.delete(token_id)


def charge(order, token_id, authentication):
    """Charges a token at the processor, through the vault's proxy. Returns the state of the order."""

    def card(path):
        return f"{{{{ {token_id} | json: '$.{path}' }}}}"

    try:
        response = httpx.post(
            f"{ENVIRONMENT['VAULT_API_URL']}/proxy/payments",
            headers={
                "BT-API-KEY": ENVIRONMENT["VAULT_PRIVATE_KEY"],
                "BT-PROXY-KEY": ENVIRONMENT["PROXY_KEY"],
                # The processor charges an order once, however often it is asked.
                "Cko-Idempotency-Key": order.id,
            },
            json={
                "source": {
                    "type": "card",
                    "number": card("number"),
                    "expiry_month": card("expiration_month"),
                    "expiry_year": card("expiration_year"),
                    "cvv": card("cvc"),
                },
                "amount": order.item["amount"],
                "currency": order.item["currency"],
                "reference": order.id,
                # Proof of the authentication, which shifts the liability for fraud to the issuer.
                "3ds": {
                    "enabled": True,
                    "eci": authentication.eci,
                    "cryptogram": authentication.authentication_value,
                    "xid": authentication.ds_transaction_id,
                    "version": authentication.threeds_version,
                },
            },
            timeout=CHARGE_TIMEOUT_SECONDS,
        )
        return state_after(response)
    except Exception:
        return "pending"


def state_after(response):
    """Unless the response says otherwise, the processor may have charged the card."""
    status = response.status_code
    if 400 <= status < 500:
        return "pending" if status in UNKNOWN else "failed"
    body = response.json()
    if "BT-PROXY-DESTINATION-STATUS" not in response.headers:
        return "failed" if body["proxy_error"]["code"] in NOT_SENT else "pending"
    if status != 201 or not isinstance(body["approved"], bool):
        return "pending"
    return "paid" if body["approved"] else "declined"
