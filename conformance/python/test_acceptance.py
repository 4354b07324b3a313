"""What the official integration tests of the client assert, one after the other, in one tenant."""

import itertools
import re
import uuid

import pytest
from basis_theory import NotFoundError, UnauthorizedError

from vault import client, refusal

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[1-5][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
VISA = "4242424242424242"
MASTERCARD = "5555555555554444"
BANK = {"routing_number": "021000021", "account_number": "00001"}


def card(number: str = VISA) -> dict:
    data = {"number": number, "expiration_month": 4, "expiration_year": 2025, "cvc": 123}
    return {"type": "card", "data": data}


@pytest.mark.calls("tenants.self_.get")
def test_the_tenants_name_is_sdk_integration_tests(management):
    assert management.tenants.self_.get().name == "SDK Integration Tests"


@pytest.mark.calls("tokens.get")
def test_a_private_key_reads_a_card_back_whole(vault):
    token = vault.tokens.create(**card())

    data = vault.tokens.get(token.id).data

    assert data["number"] == VISA
    assert (data["expiration_month"], data["expiration_year"]) == (4, 2025)


@pytest.mark.calls("tokens.detokenize")
def test_a_private_key_detokenizes_a_card(vault):
    token = vault.tokens.create(**card())

    shown = vault.tokens.detokenize(request={"card": "{{ " + token.id + " }}"})

    assert shown["card"]["number"] == VISA


@pytest.mark.calls("tokens.create")
def test_an_expired_card_a_numeric_code_indexes_and_a_malformed_mask_are_created(vault):
    created = vault.tokens.create(
        **card(),
        metadata={"nonSensitiveField": "Non-Sensitive Value"},
        search_indexes=["{{ data.expiration_month }}", "{{ data.number | last4 }}"],
        fingerprint_expression="{{ data.number }}",
        mask={"number": "{{ data.number, reveal_last: 4 }}", "cvc": "{{ data.cvc }}"},
        deduplicate_token=False,
        containers=["/general/high/"],
    )
    read = vault.tokens.get(created.id)

    assert UUID.fullmatch(created.id)
    assert created.metadata["nonSensitiveField"] == "Non-Sensitive Value"
    assert VISA not in created.model_dump_json()
    assert read.data["number"] == VISA
    assert read.mask["number"] == "{{ data.number, reveal_last: 4 }}"


@pytest.mark.calls("tokens.update")
def test_a_deduplicated_token_is_created_again_and_again_and_updated_with_its_own_data(vault):
    change = {
        "data": "Sensitive Value",
        "mask": "{{ data | reveal_last: 4 }}",
        "containers": ["/general/high/"],
        "metadata": {"nonSensitiveField": "Non-Sensitive Value"},
        "search_indexes": ["{{ data }}", "{{ data | last4 }}"],
        "fingerprint_expression": "{{ data }}",
        "deduplicate_token": True,
        "expires_at": "8/26/2030 7:23:57 PM -07:00",
    }

    first = vault.tokens.create(type="token", **change)
    again = vault.tokens.create(type="token", **change)
    updated = vault.tokens.update(first.id, **change)

    assert first.id == again.id == updated.id
    assert first.fingerprint == again.fingerprint
    assert vault.tokens.get(first.id).data == "Sensitive Value"


@pytest.mark.calls("tokens.update")
def test_another_number_is_merged_into_a_card_and_read_back(vault):
    token = vault.tokens.create(**card())

    vault.tokens.update(token.id, data={"number": MASTERCARD})
    data = vault.tokens.get(token.id).data

    assert (data["number"], data["expiration_month"]) == (MASTERCARD, 4)


@pytest.mark.calls("tokens.delete")
def test_what_was_deleted_is_not_found(vault):
    token = vault.tokens.create(**card())

    vault.tokens.delete(token.id)

    refusal(NotFoundError, 404, "Not Found", vault.tokens.get, token.id)


@pytest.mark.calls("tokens.create")
def test_two_cards_with_one_idempotency_key_are_one_token(vault):
    key = str(uuid.uuid4())

    first = vault.tokens.create(**card(VISA), idempotency_key=key)
    second = vault.tokens.create(**card(MASTERCARD), idempotency_key=key)

    assert second.id == first.id
    assert vault.tokens.get(first.id).data["number"] == VISA


@pytest.mark.calls("tokens.list_v2")
def test_pages_of_three_go_on_past_the_first(vault):
    for number in range(4):
        vault.tokens.create(type="token", data=number)

    seen = {token.id for token in itertools.islice(vault.tokens.list_v2(size=3), 4)}

    assert len(seen) == 4


@pytest.mark.calls("tokens.tokenize")
def test_an_object_is_tokenized(vault):
    made = vault.tokens.tokenize(request={"first_name": "John", "last_name": "Doe"})

    assert UUID.fullmatch(made["first_name"])
    assert UUID.fullmatch(made["last_name"])


@pytest.mark.calls("tokens.tokenize")
def test_one_token_is_tokenized(vault):
    made = vault.tokens.tokenize(
        request={
            "type": "token",
            "data": "Sensitive Value",
            "metadata": {"nonSensitiveField": "Non-Sensitive Value"},
            "search_indexes": ["{{ data }}"],
            "fingerprint_expression": "{{ data }}",
        }
    )

    assert UUID.fullmatch(made["id"])
    assert made["type"] == "token"
    assert made["metadata"] == {"nonSensitiveField": "Non-Sensitive Value"}


@pytest.mark.calls("tokens.tokenize")
def test_a_card_is_tokenized(vault):
    made = vault.tokens.tokenize(request=card())

    assert UUID.fullmatch(made["id"])
    assert made["type"] == "card"
    assert vault.tokens.get(made["id"]).data["number"] == VISA


@pytest.mark.calls("tokens.tokenize")
def test_an_array_of_four_is_tokenized(vault):
    made = vault.tokens.tokenize(request=["John", "Doe", card(), {"type": "token", "data": "x"}])

    ids = [made[0], made[1], made[2]["id"], made[3]["id"]]
    assert len(made) == 4
    assert all(UUID.fullmatch(id) for id in ids)
    assert made[2]["type"] == "card"


@pytest.mark.calls("tokens.tokenize")
def test_a_composite_of_five_tokens_is_tokenized(vault):
    made = vault.tokens.tokenize(
        request={
            "first_name": "John",
            "last_name": "Doe",
            "primary_card": card(),
            "sensitive_tags": ["preferred", {"type": "token", "data": "vip"}],
        }
    )

    tags = made["sensitive_tags"]
    ids = [made["first_name"], made["last_name"], made["primary_card"]["id"], tags[0], tags[1]["id"]]
    assert all(UUID.fullmatch(id) for id in ids)
    assert len(set(ids)) == 5


@pytest.mark.calls("tokens.detokenize")
def test_one_value_of_a_card_is_detokenized(vault):
    token = vault.tokens.create(**card())

    expression = "{{ " + token.id + " | json: '$.number' }}"
    shown = vault.tokens.detokenize(request={"number": expression})

    assert shown == {"number": VISA}


@pytest.mark.calls("tokens.detokenize")
def test_an_array_is_detokenized_with_blanks_behind_an_expression(vault):
    first = vault.tokens.create(type="token", data="John")
    second = vault.tokens.create(type="token", data="Doe")

    document = ["{{ " + first.id + " }}", "{{ " + second.id + " }}  "]
    shown = vault.tokens.detokenize(request=document)

    assert [shown[0], shown[1].strip()] == ["John", "Doe"]


@pytest.mark.calls("enrichments.bank_account_verify")
def test_the_test_account_is_enabled(vault):
    token = vault.tokens.create(type="bank", data=BANK)

    assert vault.enrichments.bank_account_verify(token_id=token.id).status == "enabled"


@pytest.mark.calls("token_intents.create")
def test_a_private_key_makes_an_intent_with_a_uuid_for_an_id(vault):
    assert UUID.fullmatch(vault.token_intents.create(**card()).id)


@pytest.mark.calls("keys.create")
def test_a_key_is_made_without_arguments_found_deleted_and_not_found(management):
    created = management.keys.create()
    read = management.keys.get(created.key_id)
    management.keys.delete(created.key_id)

    assert created.public_key_pem.startswith("-----BEGIN PUBLIC KEY-----")
    assert created.key_id and read.key_id == created.key_id
    assert read.expires_at
    refusal(NotFoundError, 404, "Not Found", management.keys.get, created.key_id)


@pytest.mark.calls("applications.create")
def test_an_application_with_token_use_is_made_renamed_and_deleted(management):
    permissions = ["token:use"]

    created = management.applications.create(
        name="(Deletable) python-SDK", type="private", permissions=permissions
    )
    management.applications.update(
        created.id, name="(Deletable) python-SDK renamed", permissions=permissions
    )
    read = management.applications.get(created.id)
    management.applications.delete(created.id)

    assert read.name == "(Deletable) python-SDK renamed"
    refusal(NotFoundError, 404, "Not Found", management.applications.get, created.id)


@pytest.mark.calls("tokens.get")
def test_a_key_that_is_none_is_unauthorized():
    stranger = client("not-a-key")

    refusal(UnauthorizedError, 401, "Unauthorized", stranger.tokens.get, str(uuid.uuid4()))
