"""What each of the nine types brings along: container, mask, indexes, fingerprint and details."""

import pytest

from vault import card_basics, given

LAST4 = "{{ data | reveal_last: 4 }}"
NINE_DIGITS = ["{{ data }}", "{{ data | replace: '-' }}", "{{ data | last4 }}"]
CARD_MASK = {
    "number": "{{ data.number | reveal_last: 4 }}",
    "expiration_month": "{{ data.expiration_month }}",
    "expiration_year": "{{ data.expiration_year }}",
}

TYPES = {
    "token": {
        "data": {"any": ["thing"]},
        "containers": ["/general/high/"],
        "fingerprint_expression": "{{ data | stringify }}",
    },
    "card": {
        "data": {"number": "5555555555554444", "expiration_month": 1, "expiration_year": 2032},
        "masked": {"number": "XXXXXXXXXXXX4444", "expiration_month": 1, "expiration_year": 2032},
        "mask": CARD_MASK,
        "containers": ["/pci/high/"],
        "fingerprint_expression": "{{ data.number }}",
        "card": {
            "bin": "55555555",
            "last4": "4444",
            "expiration_month": 1,
            "expiration_year": 2032,
        },
    },
    "card_number": {
        "data": "4242424242424242",
        "masked": "XXXXXXXXXXXX4242",
        "mask": LAST4,
        "containers": ["/pci/high/"],
        "fingerprint_expression": "{{ data }}",
        "card": {"bin": "42424242", "last4": "4242"},
    },
    "network_token": {
        "data": {"number": "4242424242424241", "expiration_month": 2, "expiration_year": 2033},
        "masked": {"number": "XXXXXXXXXXXX4241", "expiration_month": 2, "expiration_year": 2033},
        "mask": CARD_MASK,
        "containers": ["/pci/high/"],
        "fingerprint_expression": "{{ data.number }}",
        "network_token": {
            "bin": "42424242",
            "last4": "4241",
            "expiration_month": 2,
            "expiration_year": 2033,
        },
    },
    "bank": {
        "data": {"routing_number": "021000021", "account_number": "00001"},
        "masked": {"routing_number": "021000021", "account_number": "X0001"},
        "mask": {
            "routing_number": "{{ data.routing_number }}",
            "account_number": "{{ data.account_number | reveal_last: 4 }}",
        },
        "containers": ["/bank/high/"],
        "fingerprint_expression": "{{ data.account_number }}|{{ data.routing_number }}",
        "bank": {"routing_number": "021000021", "account_number_last4": "0001"},
    },
    "us_bank_account_number": {
        "data": "1234567890",
        "masked": "XXXXXX7890",
        "mask": LAST4,
        "containers": ["/bank/high/"],
        "fingerprint_expression": "{{ data }}",
    },
    "us_bank_routing_number": {
        "data": "021000021",
        "masked": "XXXXX0021",
        "mask": LAST4,
        "containers": ["/bank/low/"],
        "fingerprint_expression": "{{ data }}",
    },
    "social_security_number": {
        "data": "123-45-6789",
        "masked": "XXX-XX-6789",
        "mask": LAST4,
        "containers": ["/pii/high/"],
        "search_indexes": NINE_DIGITS,
        "fingerprint_expression": "{{ data | remove: '-' }}",
    },
    "employer_id_number": {
        "data": "12-3456789",
        "masked": "XX-XXX6789",
        "mask": LAST4,
        "containers": ["/pii/high/"],
        "search_indexes": NINE_DIGITS,
        "fingerprint_expression": "{{ data | remove: '-' }}",
    },
}


@pytest.mark.calls("tokens.create")
@pytest.mark.parametrize("type", TYPES.keys())
def test_a_type_brings_its_own_along(vault, type):
    own = {"type": type, "search_indexes": [], **TYPES[type]}
    data = own.pop("data")

    created = vault.tokens.create(type=type, data=data)
    read = vault.tokens.get(created.id)

    answered = given(created)
    for name in ("card", "network_token"):
        if name in answered:
            answered[name] = card_basics(answered[name])
    if "bank" in answered:
        answered["bank"] = answered["bank"].model_dump(exclude_unset=True)
    if "masked" in own:
        own["data"] = own.pop("masked")
    assert answered == {**own, "extras": {"deduplicated": False}}
    assert read.data == data
    assert read.mask == own.get("mask")
