"""Token intents: data that waits to become a token, or to be forgotten."""

import uuid

import pytest
from basis_theory import BadRequestError, ForbiddenError, NotFoundError

from vault import (
    FINGERPRINT,
    INVALID,
    TENANT_ID,
    UUID_V4,
    card_basics,
    is_from_now,
    own_container,
    problem,
    refusal,
    sent,
)

DAY = 24 * 3_600
NUMBER = "4242424242424242"
DATA = {"number": NUMBER, "expiration_month": 12, "expiration_year": 2030, "cvc": "123"}
CARD = {"type": "card", "data": DATA}
BANK = {"type": "bank", "data": {"routing_number": "021000021", "account_number": "00001"}}
FORBIDDEN = (ForbiddenError, 403, "Forbidden")
NOT_FOUND = (NotFoundError, 404, "Not Found")


@pytest.mark.calls("token_intents.create")
def test_a_card_shows_itself_and_never_its_data(vault):
    created = vault.token_intents.create(**CARD)
    read = vault.token_intents.get(created.id)

    rest = sent(created)
    assert UUID_V4.fullmatch(rest.pop("id"))
    assert UUID_V4.fullmatch(rest.pop("created_by"))
    assert FINGERPRINT.fullmatch(rest.pop("fingerprint"))
    assert is_from_now(rest.pop("created_at"), seconds=0)
    assert is_from_now(rest.pop("expires_at"), seconds=DAY)
    assert card_basics(rest.pop("card")) == {
        "bin": "42424242",
        "last4": "4242",
        "expiration_month": 12,
        "expiration_year": 2030,
    }
    assert rest == {"type": "card", "tenant_id": TENANT_ID}
    assert sent(read) == sent(created)


@pytest.mark.calls("token_intents.create")
def test_its_fingerprint_is_that_of_the_token_with_the_same_data(vault):
    intent = vault.token_intents.create(**CARD)

    assert intent.fingerprint == vault.tokens.create(**CARD).fingerprint


@pytest.mark.calls("token_intents.create")
def test_a_bank_account_shows_itself_too(vault):
    intent = vault.token_intents.create(**BANK)

    assert intent.bank.routing_number == "021000021"
    assert intent.bank.account_number_last4 == "0001"
    assert intent.card is None


@pytest.mark.calls("token_intents.create")
def test_public_keys_make_them_and_neither_read_nor_delete(vault, browser, management):
    id = browser.token_intents.create(**CARD).id

    refusal(*FORBIDDEN, browser.token_intents.get, id)
    refusal(*FORBIDDEN, browser.token_intents.delete, id)
    assert vault.token_intents.get(id).id == id
    refusal(*FORBIDDEN, management.token_intents.create, **CARD)


INVALID_INTENTS = {
    "a number that fails the Luhn check": (
        {"type": "card", "data": {"number": "4242424242424241"}},
        ["data.number"],
    ),
    "a network token": ({**CARD, "type": "network_token"}, ["type"]),
    "an unknown type": ({"type": "passport", "data": "x"}, ["type"]),
}


@pytest.mark.calls("token_intents.create")
@pytest.mark.parametrize(
    ("body", "attributes"), INVALID_INTENTS.values(), ids=INVALID_INTENTS.keys()
)
def test_what_is_invalid_is_named(vault, body, attributes):
    error = refusal(BadRequestError, 400, INVALID, vault.token_intents.create, **body)

    assert list(error.body.errors) == attributes


@pytest.mark.calls("token_intents.delete")
def test_it_is_gone(vault):
    id = vault.token_intents.create(**CARD).id

    assert vault.token_intents.delete(id) is None

    refusal(*NOT_FOUND, vault.token_intents.get, id)
    refusal(*NOT_FOUND, vault.token_intents.delete, id)


@pytest.mark.calls("token_intents.get")
def test_an_unknown_one_is_not_found(vault):
    refusal(*NOT_FOUND, vault.token_intents.get, str(uuid.uuid4()))


@pytest.mark.calls("tokens.create")
def test_an_intent_becomes_a_token_once_and_without_its_security_code(vault, browser):
    intent = browser.token_intents.create(**CARD)
    containers = [own_container()]
    request = {
        "token_intent_id": intent.id,
        "containers": containers,
        "metadata": {"from": "intent"},
    }

    token = vault.tokens.create(**request)
    read = vault.tokens.get(token.id)

    assert (token.type, token.containers) == ("card", containers)
    assert token.metadata == {"from": "intent"}
    assert read.data == {name: value for name, value in DATA.items() if name != "cvc"}
    refusal(*NOT_FOUND, vault.token_intents.get, intent.id)
    error = refusal(BadRequestError, 400, INVALID, vault.tokens.create, **request)
    assert list(error.body.errors) == ["token_intent_id"]


@pytest.mark.calls("tokens.create")
def test_an_intent_of_what_is_there_updates_that_token(vault):
    containers = [own_container()]
    first = vault.tokens.create(**CARD, containers=containers)
    changed = {"type": "card", "data": {**DATA, "expiration_year": 2035}}
    intent = vault.token_intents.create(**changed)

    token = vault.tokens.create(
        token_intent_id=intent.id, containers=containers, deduplicate_token=True
    )

    assert token.id == first.id
    assert token.extras.deduplicated is True
    assert vault.tokens.get(first.id).data["expiration_year"] == 2035


@pytest.mark.calls("tokens.create")
def test_an_intent_with_a_type_or_data_beside_it_is_refused(vault):
    id = vault.token_intents.create(**CARD).id

    refusal(BadRequestError, 400, INVALID, vault.tokens.create, **CARD, token_intent_id=id)

    # And is there still.
    assert vault.token_intents.get(id).id == id


@pytest.mark.calls("tokens.tokenize")
def test_an_intent_becomes_a_token_inside_a_document(vault):
    id = vault.token_intents.create(**CARD).id

    made = vault.tokens.tokenize(request={"name": "Ada", "card": {"token_intent_id": id}})

    assert made["card"]["type"] == "card"
    assert vault.tokens.get(made["card"]["id"]).data["number"] == NUMBER
    refusal(*NOT_FOUND, vault.token_intents.get, id)


@pytest.mark.calls("tokens.detokenize")
def test_an_intent_gives_its_data_to_callers_that_may_see_it_revealed(vault):
    id = vault.token_intents.create(**CARD).id
    document = {"number": "{{ token_intent: " + id + " | json: '$.data.number' }}"}

    shown = vault.tokens.detokenize(request=document)

    assert shown == {"number": CARD["data"]["number"]}
