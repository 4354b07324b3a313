"""Refusals: the client's own class for each status, with a whole problem as its body."""

import uuid

import pytest
from basis_theory import (
    BadRequestError,
    ConflictError,
    ForbiddenError,
    NotFoundError,
    UnauthorizedError,
)

from vault import INVALID, ONCE, PRIVATE_KEY, client, refusal

CARD = {"number": "4242424242424242", "expiration_month": 12, "expiration_year": 2030}
TOKEN = {"type": "token", "data": "x"}


def card(**changes) -> dict:
    return {"type": "card", "data": {**CARD, **changes}}


INVALID_TOKENS = {
    "a card number that fails the Luhn check": (card(number="4242424242424241"), ["data.number"]),
    "a card number with blanks": (card(number="4242 4242 4242 4242"), ["data.number"]),
    "a card without a number": (
        {"type": "card", "data": {"expiration_month": 1}},
        ["data.number"],
    ),
    "a card that is only a string": ({"type": "card", "data": "4242424242424242"}, ["data"]),
    "a thirteenth month": (card(expiration_month=13), ["data.expiration_month"]),
    "a year of two digits": (card(expiration_year=30), ["data.expiration_year"]),
    "a security code of letters": (card(cvc="12a"), ["data.cvc"]),
    "three wrong fields at once": (
        card(number="1", expiration_month=0, cvc="1"),
        ["data.cvc", "data.expiration_month", "data.number"],
    ),
    "an unknown type": ({"type": "passport", "data": "x"}, ["type"]),
    "no type": ({"data": "x"}, ["type"]),
    "no data": ({"type": "token"}, ["data"]),
    "data that is null": ({"type": "token", "data": None}, ["data"]),
    "an id that holds a slash": ({**TOKEN, "id": "not/allowed"}, ["id"]),
    "an id that is an operation": ({**TOKEN, "id": "search"}, ["id"]),
    "an id that is made of nothing": ({**TOKEN, "id": "{{ data.none }}"}, ["id"]),
    "an index of nothing": (
        {**TOKEN, "search_indexes": ["{{ data }}", "{{ data.none }}"]},
        ["search_indexes[1]"],
    ),
    "an index of the security code": (
        {**card(cvc="123"), "search_indexes": ["{{ data.cvc }}"]},
        ["search_indexes[0]"],
    ),
    "eleven indexes": ({**TOKEN, "search_indexes": ["{{ data }}"] * 11}, ["search_indexes"]),
    "a fingerprint of nothing": (
        {**TOKEN, "fingerprint_expression": "{{ data.none }}"},
        ["fingerprint_expression"],
    ),
    "two containers": ({**TOKEN, "containers": ["/a/", "/b/"]}, ["containers"]),
    "no container in the list": ({**TOKEN, "containers": []}, ["containers"]),
    "a container without slashes": ({**TOKEN, "containers": ["pci"]}, ["containers[0]"]),
    "a mask with an unknown filter": ({**TOKEN, "mask": "{{ data | shout }}"}, ["mask"]),
    "a mask that does not close": ({**TOKEN, "mask": "{{ data"}, ["mask"]),
    "metadata that is no string": ({**TOKEN, "metadata": {"age": 7}}, ["metadata.age"]),
    "an expiry in the past": ({**TOKEN, "expires_at": "2020-01-01T00:00:00Z"}, ["expires_at"]),
    "an expiry that is no date": ({**TOKEN, "expires_at": "soon"}, ["expires_at"]),
}


@pytest.mark.calls("tokens.create")
@pytest.mark.parametrize(
    ("request_body", "attributes"), INVALID_TOKENS.values(), ids=INVALID_TOKENS.keys()
)
def test_what_is_invalid_is_named(vault, request_body, attributes):
    error = refusal(BadRequestError, 400, INVALID, vault.tokens.create, **request_body)

    assert sorted(error.body.errors) == attributes
    for messages in error.body.errors.values():
        assert messages
        assert all(isinstance(message, str) and message for message in messages)


@pytest.mark.calls("tokens.create")
def test_a_refused_card_number_is_not_repeated_in_the_answer(vault):
    request = card(number="4111111111111112", cvc="98765")

    error = refusal(BadRequestError, 400, INVALID, vault.tokens.create, **request)

    assert "4111111111111112" not in str(error)
    assert "98765" not in str(error)


@pytest.mark.calls("tokens.create")
def test_an_id_that_is_taken_is_a_conflict(vault):
    id = str(uuid.uuid4())
    vault.tokens.create(id=id, type="token", data="first")

    again = {"id": id, "type": "token", "data": "second", "request_options": ONCE}

    refusal(ConflictError, 409, "Conflict", vault.tokens.create, **again)
    assert vault.tokens.get(id).data == "first"


BAD_KEYS = {
    "an invented key": "key_test_us_pvt_11111111111111111111.11111111111111111111111111111111",
    "no key at all": "",
    "a key with a changed end": PRIVATE_KEY[:-1] + ("1" if PRIVATE_KEY.endswith("0") else "0"),
    "a key with more behind it": PRIVATE_KEY + "0",
}


@pytest.mark.calls("tokens.*")
@pytest.mark.parametrize("api_key", BAD_KEYS.values(), ids=BAD_KEYS.keys())
def test_a_bad_key_is_unauthorized(vault, api_key):
    stranger = client(api_key)
    id = vault.tokens.create(**TOKEN).id

    refusal(UnauthorizedError, 401, "Unauthorized", stranger.tokens.create, **TOKEN)
    refusal(UnauthorizedError, 401, "Unauthorized", stranger.tokens.get, id)
    refusal(UnauthorizedError, 401, "Unauthorized", stranger.tokens.delete, id)
    refusal(UnauthorizedError, 401, "Unauthorized", stranger.tokens.update, id, data="y")
    refusal(UnauthorizedError, 401, "Unauthorized", stranger.tokens.list_v2)
    refusal(UnauthorizedError, 401, "Unauthorized", stranger.tokens.search_v2)
    refusal(UnauthorizedError, 401, "Unauthorized", stranger.tokens.tokenize, request="y")
    refusal(UnauthorizedError, 401, "Unauthorized", stranger.tokens.detokenize, request="y")
    assert vault.tokens.get(id).data == "x"


@pytest.mark.calls("tokens.get")
def test_a_public_key_may_not_read(browser):
    id = browser.tokens.create(**TOKEN).id

    refusal(ForbiddenError, 403, "Forbidden", browser.tokens.get, id)
    # Whoever may read nothing does not learn which ids exist.
    refusal(ForbiddenError, 403, "Forbidden", browser.tokens.get, str(uuid.uuid4()))


@pytest.mark.calls("tokens.delete")
def test_a_public_key_may_not_delete(vault, browser):
    id = browser.tokens.create(**TOKEN).id

    refusal(ForbiddenError, 403, "Forbidden", browser.tokens.delete, id)
    assert vault.tokens.get(id).data == "x"


@pytest.mark.calls("tokens.create")
def test_a_management_key_may_not_create(management):
    refusal(ForbiddenError, 403, "Forbidden", management.tokens.create, **TOKEN)
    # The permission is missing everywhere, so that nothing is said about the rest of the request.
    refusal(ForbiddenError, 403, "Forbidden", management.tokens.create, type="passport")


UNKNOWN_IDS = [
    "00000000-0000-4000-8000-000000000000",
    "with blanks inside",
    "someone@example.com",
    "naïve ☃",
    "100%",
    "a+b&c=d",
    "x" * 400,
]


@pytest.mark.calls("tokens.get")
@pytest.mark.parametrize("id", UNKNOWN_IDS, ids=lambda id: id[:36])
def test_an_unknown_id_is_not_found(vault, id):
    refusal(NotFoundError, 404, "Not Found", vault.tokens.get, id)
    refusal(NotFoundError, 404, "Not Found", vault.tokens.delete, id)


@pytest.mark.calls("tokens.get")
def test_an_id_with_a_slash_is_not_found(vault):
    # This client does not encode the slash, so that nobody is there at all.
    with pytest.raises(NotFoundError):
        vault.tokens.get("not/there")
