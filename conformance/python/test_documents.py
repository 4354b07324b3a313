"""Whole documents: tokenized, and filled in again."""

import uuid

import pytest
from basis_theory import BadRequestError, ConflictError, ForbiddenError

from vault import (
    INVALID,
    ONCE,
    TENANT_ID,
    UUID_V4,
    card_basics,
    ids,
    own_container,
    refusal,
    without_security_code,
)

READ = {"number": "4242424242424242", "expiration_month": 12, "expiration_year": 2025}
CARD = {"type": "card", "data": {**READ, "cvc": "123"}}


def output(id: str, filters: str = "") -> str:
    return "{{ " + id + filters + " }}"


@pytest.mark.calls("tokens.tokenize")
def test_an_object_of_values_becomes_an_object_of_ids(vault):
    tokens = vault.tokens.tokenize(request={"first_name": "John", "lastName": "Doe"})

    assert list(tokens) == ["first_name", "lastName"]
    assert UUID_V4.fullmatch(tokens["first_name"])
    assert UUID_V4.fullmatch(tokens["lastName"])
    assert vault.tokens.get(tokens["first_name"]).data == "John"
    assert vault.tokens.get(tokens["lastName"]).data == "Doe"


@pytest.mark.calls("tokens.tokenize")
def test_a_token_becomes_that_token(vault):
    token = vault.tokens.tokenize(
        request={
            "type": "token",
            "data": "Sensitive Value",
            "mask": "{{ data | reveal_last: 4 }}",
            "metadata": {"nonSensitive": "Non-Sensitive Value"},
            "search_indexes": ["{{ data }}"],
            "fingerprint_expression": "{{ data }}",
        }
    )
    read = vault.tokens.get(token["id"])

    assert UUID_V4.fullmatch(token["id"])
    assert token["tenant_id"] == TENANT_ID
    assert token["data"] == "XXXXXXXXXXXalue"
    assert token["metadata"] == {"nonSensitive": "Non-Sensitive Value"}
    assert token["search_indexes"] == ["{{ data }}"]
    assert token["fingerprint_expression"] == "{{ data }}"
    assert token["_extras"] == {"deduplicated": False}
    assert read.data == "Sensitive Value"


@pytest.mark.calls("tokens.tokenize")
def test_a_card_becomes_a_card(vault):
    token = vault.tokens.tokenize(request={**CARD, "metadata": {"a": "b"}})
    read = vault.tokens.get(token["id"])

    assert UUID_V4.fullmatch(token["id"])
    assert token["data"]["number"] == "XXXXXXXXXXXX4242"
    assert token["card"]["last4"] == "4242"
    assert without_security_code(read.data) == READ
    assert card_basics(read.card)["bin"] == "42424242"


@pytest.mark.calls("tokens.tokenize")
def test_an_array_of_four(vault):
    tokens = vault.tokens.tokenize(
        request=[
            "John",
            "Doe",
            {**CARD, "metadata": {"nonSensitive": "Non-Sensitive Value"}},
            {"type": "token", "data": "Sensitive Value"},
        ]
    )

    made = [tokens[0], tokens[1], tokens[2]["id"], tokens[3]["id"]]
    assert len(tokens) == 4
    assert all(UUID_V4.fullmatch(id) for id in made)
    assert len(set(made)) == 4


@pytest.mark.calls("tokens.tokenize")
def test_a_composite_of_five(vault):
    tokens = vault.tokens.tokenize(
        request={
            "first_name": "John",
            "last_name": "Doe",
            "primary_card": CARD,
            "nothing": None,
            "sensitive_tags": ["preferred", {"type": "token", "data": "vip"}],
        }
    )

    assert UUID_V4.fullmatch(tokens["first_name"])
    assert UUID_V4.fullmatch(tokens["last_name"])
    assert UUID_V4.fullmatch(tokens["primary_card"]["id"])
    assert tokens["nothing"] is None
    tags = tokens["sensitive_tags"]
    assert len(tags) == 2
    assert UUID_V4.fullmatch(tags[0])
    assert vault.tokens.get(tags[1]["id"]).data == "vip"


@pytest.mark.calls("tokens.tokenize")
@pytest.mark.parametrize("value", ["John", "", 42, -1.5, True, False], ids=repr)
def test_a_value_alone_becomes_an_id(vault, value):
    id = vault.tokens.tokenize(request=value)

    assert UUID_V4.fullmatch(id)
    read = vault.tokens.get(id).data
    assert read == value
    assert type(read) is type(value)


@pytest.mark.calls("tokens.tokenize")
def test_equal_values_are_one_token_when_deduplicated(vault):
    token = {"type": "token", "data": str(uuid.uuid4()), "deduplicate_token": True}

    tokens = vault.tokens.tokenize(request={"a": token, "b": [token], "c": {**token}})
    again = vault.tokens.tokenize(request=token)

    assert tokens["b"][0]["id"] == tokens["a"]["id"]
    assert tokens["c"]["id"] == tokens["a"]["id"]
    assert again["id"] == tokens["a"]["id"]
    assert again["_extras"]["deduplicated"] is True


@pytest.mark.calls("tokens.tokenize")
def test_an_id_of_ones_own_and_a_conflict_that_leaves_nothing_behind(vault):
    id, container = str(uuid.uuid4()), own_container()
    token = {"id": id, "type": "token", "data": "x", "containers": [container]}
    first = vault.tokens.tokenize(request={"mine": token})

    again = {"other": {**token, "id": str(uuid.uuid4())}, "mine": token}

    assert first["mine"]["id"] == id
    named = {"request": again, "request_options": ONCE}
    refusal(ConflictError, 409, "Conflict", vault.tokens.tokenize, **named)
    assert ids(vault.tokens.list_v2(container=container)) == [id]


INVALID_DOCUMENTS = {
    "six values": (["1", "2", "3", "4", "5", "6"], ["body"]),
    "nothing at all": ({}, ["body"]),
    "nothing but null": ([None, {"a": None}], ["body"]),
    "a wrong number, deep inside": (
        {"name": "x", "cards": [{"type": "card", "data": {"number": "4242424242424241"}}]},
        ["cards[0].data.number"],
    ),
    "two wrong elements": (
        [
            {"type": "passport", "data": "x"},
            {"type": "token", "data": "x", "containers": ["pci"]},
        ],
        ["[0].type", "[1].containers[0]"],
    ),
}


@pytest.mark.calls("tokens.tokenize")
@pytest.mark.parametrize(
    ("document", "attributes"), INVALID_DOCUMENTS.values(), ids=INVALID_DOCUMENTS.keys()
)
def test_what_is_invalid_is_named(vault, document, attributes):
    error = refusal(BadRequestError, 400, INVALID, vault.tokens.tokenize, request=document)

    assert sorted(error.body.errors) == attributes


@pytest.mark.calls("tokens.tokenize")
def test_one_invalid_element_leaves_no_token_behind(vault):
    container = own_container()
    good = {"type": "token", "data": "x", "containers": [container]}

    document = [good, good, {**good, "expires_at": "soon"}]

    refusal(BadRequestError, 400, INVALID, vault.tokens.tokenize, request=document)
    assert ids(vault.tokens.list_v2(container=container)) == []


@pytest.mark.calls("tokens.tokenize")
def test_an_idempotency_key_is_accepted(vault):
    id = vault.tokens.tokenize(request="x", idempotency_key=str(uuid.uuid4()))

    assert UUID_V4.fullmatch(id)


@pytest.mark.calls("tokens.tokenize")
def test_a_public_key_tokenizes_and_a_management_key_does_not(browser, management):
    card = browser.tokens.tokenize(request={"card": CARD})["card"]

    assert card["data"]["number"] == "XXXXXXXXXXXX4242"
    refusal(ForbiddenError, 403, "Forbidden", management.tokens.tokenize, request={"card": CARD})


@pytest.mark.calls("tokens.detokenize")
def test_a_part_of_a_card_by_its_path(vault):
    id = vault.tokens.create(**CARD).id

    filled = vault.tokens.detokenize(request={"card_number": output(id, " | json: '$.number'")})

    assert filled == {"card_number": "4242424242424242"}


@pytest.mark.calls("tokens.detokenize")
def test_an_array_of_cards_each_with_its_blanks(vault):
    number = {"number": "4111111111111111"}
    first = vault.tokens.create(**CARD).id
    second = vault.tokens.create(type="card", data={**READ, **number}).id

    filled = vault.tokens.detokenize(
        request={"tokens": [output(first), output(second, " "), "{{" + second + "}}"]}
    )

    assert without_security_code(filled["tokens"][0]) == READ
    assert filled["tokens"][1:] == [{**READ, **number}] * 2


@pytest.mark.calls("tokens.detokenize")
@pytest.mark.parametrize(
    "value", ["text", "", 19.95, 0, True, {"Deep": [1, None]}, []], ids=repr
)
def test_a_value_keeps_its_type(vault, value):
    id = vault.tokens.create(type="token", data=value).id

    filled = vault.tokens.detokenize(request={"value": output(id)})

    assert filled == {"value": value}
    assert type(filled["value"]) is type(value)


@pytest.mark.calls("tokens.detokenize")
def test_text_around_it_makes_text_and_filters_apply(vault):
    id = vault.tokens.create(**CARD).id
    last4 = output(id, " | json: '$.number' | last4")
    year = output(id, " | json: '$.expiration_year'")
    rest = {
        "{{ keys }}": "stay as they are",
        "others": [1, True, None, "plain", "{{ not closed"],
    }

    filled = vault.tokens.detokenize(
        request={
            **rest,
            "text": f"Card {last4} of {year}.",
            "month": output(id, " | json: '$.expiration_month' | pad_left: 3, '0'"),
        }
    )

    assert filled == {**rest, "text": "Card 4242 of 2025.", "month": "012"}


@pytest.mark.calls("tokens.detokenize")
def test_the_whole_token_and_what_is_known_of_it(vault):
    id = vault.tokens.create(**CARD, metadata={"order": "1"}).id

    filled = vault.tokens.detokenize(
        request={
            "token": output(f"token: {id}"),
            "order": output(f"token: {id}", " | json: '$.metadata.order'"),
            "number": "{{token:" + id + " | json: '$.data.number'}}",
        }
    )

    token = filled["token"]
    assert (token["id"], token["tenant_id"], token["type"]) == (id, TENANT_ID, "card")
    assert without_security_code(token["data"]) == READ
    assert token["enrichments"]["card_details"]["last4"] == "4242"
    assert filled["order"] == "1"
    assert filled["number"] == "4242424242424242"


@pytest.mark.calls("tokens.detokenize")
def test_a_document_that_is_only_an_expression(vault):
    id = vault.tokens.create(type="token", data={"a": 1}).id

    assert vault.tokens.detokenize(request=output(id)) == {"a": 1}
    assert vault.tokens.detokenize(request=[output(id, " | json: '$.a'")]) == [1]
    assert vault.tokens.detokenize(request="nothing to fill in") == "nothing to fill in"
    assert vault.tokens.detokenize(request=7) == 7


@pytest.mark.calls("tokens.detokenize")
def test_what_was_tokenized_comes_back(vault):
    document = {"name": "Ada", "tags": ["a", True, 7], "nothing": None}

    tokens = vault.tokens.tokenize(request=document)
    filled = vault.tokens.detokenize(
        request={
            "name": output(tokens["name"]),
            "tags": [output(id) for id in tokens["tags"]],
            "nothing": None,
        }
    )

    assert filled == document


@pytest.mark.calls("tokens.detokenize")
def test_unknown_ids_are_named_and_nothing_is_filled_in(vault):
    id = vault.tokens.create(type="token", data="secret value").id
    unknown = [str(uuid.uuid4()), "not there"]
    document = [output(one) for one in (id, *unknown)]

    title = "Invalid detokenize request"
    error = refusal(BadRequestError, 400, title, vault.tokens.detokenize, request=document)

    assert error.body.detail == f"Failed to detokenize some tokens: {', '.join(unknown)}"
    assert error.body.errors == {}
    assert "secret value" not in str(error)


@pytest.mark.calls("tokens.detokenize")
def test_five_expressions_are_filled_in_and_six_are_too_many(vault):
    id = vault.tokens.create(type="token", data="x").id

    assert vault.tokens.detokenize(request=[output(id)] * 5) == ["x"] * 5
    too_many = {"request": [output(id)] * 6}
    error = refusal(BadRequestError, 400, INVALID, vault.tokens.detokenize, **too_many)
    assert list(error.body.errors) == ["body"]


@pytest.mark.calls("tokens.detokenize")
def test_an_unknown_filter_is_named_by_its_place(vault):
    id = vault.tokens.create(type="token", data="x").id
    document = {"a": {"b": [output(id, " | shout")]}}

    error = refusal(BadRequestError, 400, INVALID, vault.tokens.detokenize, request=document)

    assert list(error.body.errors) == ["a.b[0]"]


@pytest.mark.calls("tokens.detokenize")
def test_a_public_key_may_not_detokenize(browser, management):
    id = browser.tokens.create(type="token", data="x").id

    refusal(ForbiddenError, 403, "Forbidden", browser.tokens.detokenize, request=output(id))
    refusal(ForbiddenError, 403, "Forbidden", management.tokens.detokenize, request="x")
