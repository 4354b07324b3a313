"""Whole documents: tokenized, and filled in again."""

import pytest
from basistheory import ApiException

from vault import INVALID, UUID_V4, own_value, refusal, without_security_code

READ = {"number": "4242424242424242", "expiration_month": 12, "expiration_year": 2025}
CARD = {"type": "card", "data": {**READ, "cvc": "123"}}


@pytest.mark.calls("tokenize")
def test_a_composite_of_five(vault):
    tokens = vault.tokenize(
        body={
            "first_name": "John",
            "last_name": "Doe",
            "primary_card": CARD,
            "tags": ["preferred", {"type": "token", "data": "vip"}],
        }
    )

    tags = tokens["tags"]
    for id in (tokens["first_name"], tokens["last_name"], tags[0], tags[1]["id"]):
        assert UUID_V4.fullmatch(id)
    assert vault.tokens.get_by_id(tokens["first_name"]).data == "John"
    card = vault.tokens.get_by_id(tokens["primary_card"]["id"])
    assert without_security_code(card.data) == READ
    assert tokens["primary_card"]["card"]["last4"] == "4242"


@pytest.mark.calls("tokenize")
@pytest.mark.parametrize("value", ["John", "", 42, 0, True, False], ids=repr)
def test_a_value_alone_becomes_an_id(vault, value):
    id = vault.tokenize(body=value)

    assert UUID_V4.fullmatch(id)
    assert vault.tokens.get_by_id(id).data == value


@pytest.mark.calls("tokenize")
def test_without_a_body_there_is_nothing_to_tokenize(vault):
    refusal(ApiException, 400, INVALID, vault.tokenize)
    refusal(ApiException, 400, INVALID, vault.tokenize, body={})


@pytest.mark.calls("detokenize")
def test_parts_arrays_and_text(vault):
    id = vault.create(**CARD).id

    filled = vault.detokenize(
        body={
            "number": "{{ " + id + " | json: '$.number' }}",
            "tokens": ["{{ " + id + "  }}", 7, None, True],
            "text": "ends in {{ " + id + " | json: '$.number' | last4 }}",
        }
    )

    assert filled["number"] == "4242424242424242"
    assert without_security_code(filled["tokens"][0]) == READ
    assert filled["tokens"][1:] == [7, None, True]
    assert filled["text"] == "ends in 4242"


@pytest.mark.calls("detokenize")
def test_unknown_ids_are_named(vault):
    unknown = own_value()

    title = "Invalid detokenize request"
    body = {"a": "{{ " + unknown + " }}"}
    problem = refusal(ApiException, 400, title, vault.detokenize, body=body)

    assert problem["detail"] == f"Failed to detokenize some tokens: {unknown}"
