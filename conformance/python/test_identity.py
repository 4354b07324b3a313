"""What makes two tokens the same: fingerprints, deduplication and ids of one's own."""

import asyncio
import random
import re
import uuid
from urllib.parse import unquote

import pytest
from basis_theory import AsyncBasisTheory

from vault import BASE_URL, FINGERPRINT, PRIVATE_KEY, TENANT_ID, UUID_V4, given, ids


def value() -> str:
    return str(uuid.uuid4())


def extras(token) -> dict:
    return token.extras.model_dump(exclude_unset=True)


@pytest.mark.calls("tokens.create")
def test_the_same_data_of_one_type_has_one_fingerprint(vault):
    data = str(random.randint(100_000_000, 999_999_999))

    first = vault.tokens.create(type="us_bank_account_number", data=data)
    second = vault.tokens.create(type="us_bank_account_number", data=data)
    other_type = vault.tokens.create(type="token", data=data)
    other_data = vault.tokens.create(type="us_bank_account_number", data=f"{data}1")

    assert FINGERPRINT.fullmatch(first.fingerprint)
    assert second.fingerprint == first.fingerprint
    assert second.id != first.id
    assert other_type.fingerprint != first.fingerprint
    assert other_data.fingerprint != first.fingerprint


@pytest.mark.calls("tokens.create")
def test_a_fingerprint_is_made_of_what_its_expression_says(vault):
    expression = "{{ data.email | downcase }}"
    name = value()

    def create(data):
        return vault.tokens.create(type="token", data=data, fingerprint_expression=expression)

    first = create({"email": f"{name}@example.com", "since": 2020})
    second = create({"email": f"{name.upper()}@EXAMPLE.com", "since": 2021})

    assert first.fingerprint_expression == expression
    assert second.fingerprint == first.fingerprint


@pytest.mark.calls("tokens.create")
def test_with_deduplication_an_equal_token_is_returned_instead(vault):
    request = {"type": "token", "data": f"value {value()}", "deduplicate_token": True}

    first = vault.tokens.create(**request, metadata={"order": "1"})
    again = vault.tokens.create(**request, metadata={"order": "2"})
    another = vault.tokens.create(**{**request, "deduplicate_token": False})

    assert extras(first) == {"deduplicated": False}
    assert again.id == first.id
    assert extras(again) == {"deduplicated": True, "deduplication_behavior": "read_existing"}
    # Whoever may read it gets it as a read would show it, unchanged.
    assert again.data == request["data"]
    assert again.metadata == {"order": "1"}
    assert another.id != first.id


@pytest.mark.calls("tokens.create")
def test_deduplication_keeps_to_one_container(vault):
    request = {"type": "token", "data": value(), "deduplicate_token": True}

    first = vault.tokens.create(**request, containers=["/conformance/a/"])
    second = vault.tokens.create(**request, containers=["/conformance/b/"])

    assert second.id != first.id
    assert second.fingerprint == first.fingerprint


@pytest.mark.calls("tokens.create")
def test_whoever_may_not_read_meets_a_duplicate_and_sees_little_of_it(vault, browser):
    containers = [f"/conformance/{random.randrange(2**40)}/"]
    request = {
        "type": "card",
        "data": {"number": "6011000990139424"},
        "metadata": {"secret": "yes"},
        "deduplicate_token": True,
        "containers": containers,
    }
    first = vault.tokens.create(**request)

    met = browser.tokens.create(**request)

    assert met.model_dump(exclude_unset=True, by_alias=True) == {
        "id": first.id,
        "type": "card",
        "tenant_id": TENANT_ID,
        "fingerprint": first.fingerprint,
        "containers": containers,
        "_extras": {"deduplicated": True, "deduplication_behavior": "read_existing"},
    }


@pytest.mark.calls("tokens.create")
def test_a_public_key_compares_nothing_but_cards(vault, browser):
    request = {"type": "token", "data": value(), "deduplicate_token": True}
    first = vault.tokens.create(**request)

    other = browser.tokens.create(**request)

    assert other.id != first.id
    assert other.fingerprint is None


@pytest.mark.calls("tokens.create")
def test_twenty_equal_ones_at_once_are_one_token():
    async def create():
        vault = AsyncBasisTheory(api_key=PRIVATE_KEY, base_url=BASE_URL)
        request = {"type": "token", "data": value(), "deduplicate_token": True}
        return await asyncio.gather(*(vault.tokens.create(**request) for _ in range(20)))

    created = asyncio.run(create())

    assert len(set(ids(created))) == 1
    assert [token.extras.deduplicated for token in created].count(False) == 1


@pytest.mark.calls("tokens.create")
def test_created_twice_with_an_american_expiry_then_updated_in_place(vault):
    request = {
        "data": f"Sensitive Value {value()}",
        "mask": "{{ data | reveal_last: 4 }}",
        "metadata": {"nonSensitiveField": "Non-Sensitive Value"},
        "search_indexes": ["{{ data }}", "{{ data | last4 }}"],
        "fingerprint_expression": "{{ data }}",
        "deduplicate_token": True,
    }
    whole = {
        **request,
        "type": "token",
        "containers": ["/general/high/"],
        "expires_at": "8/26/2030 7:23:57 PM -07:00",
    }

    first = vault.tokens.create(**whole)
    second = vault.tokens.create(**whole)
    updated = vault.tokens.update(first.id, **request)

    assert first.expires_at.isoformat() == "2030-08-26T19:23:57-07:00"
    assert first.search_indexes == request["search_indexes"]
    assert second.id == first.id
    assert updated.id == first.id
    assert extras(updated) == {"deduplicated": False}
    assert updated.expires_at == first.expires_at
    assert updated.fingerprint == first.fingerprint


OWN_IDS = {
    "with blanks": "order {} of someone@example.com",
    "of many alphabets": "naïve ☃ {}",
    "with punctuation": "a.b,c:d;e~f'g\"h(i)!$*@{}",
    "that is a UUID in capitals": None,
}


@pytest.mark.calls("tokens.create")
@pytest.mark.parametrize("pattern", OWN_IDS.values(), ids=OWN_IDS.keys())
def test_an_id_of_ones_own_is_found_by_it(vault, pattern):
    id = pattern.format(value()) if pattern else value().upper()

    answer = vault.tokens.with_raw_response.create(id=id, type="token", data="first")
    read = vault.tokens.get(id)
    updated = vault.tokens.update(id, data="second")
    detokenized = vault.tokens.detokenize(request=f"{{{{ {id} }}}}")
    vault.tokens.delete(id)

    assert answer.data.id == id
    assert unquote(answer.headers["location"]) == f"{BASE_URL}/tokens/{id}"
    assert read.data == "first"
    assert updated.id == id
    assert detokenized == "second"


EXPRESSIONS = {
    "{{ data | alias_preserve_format: 0, 4 }}": r"\d{3}-\d{2}-3333",
    "ssn {{ data | alias_preserve_length }}": r"ssn .{11}",
}


@pytest.mark.calls("tokens.create")
@pytest.mark.parametrize(
    ("expression", "pattern"), EXPRESSIONS.items(), ids=EXPRESSIONS.keys()
)
def test_an_id_is_made_of_the_data(vault, expression, pattern):
    created = vault.tokens.create(
        id=expression, type="social_security_number", data="111-22-3333"
    )
    read = vault.tokens.get(created.id)
    vault.tokens.delete(created.id)

    assert re.fullmatch(pattern, created.id)
    assert "111-22-3333" not in created.id
    assert read.data == "111-22-3333"


@pytest.mark.calls("tokens.create")
def test_an_alias_that_is_taken_gives_way_to_a_uuid(vault):
    # One digit is replaced, so that eleven tokens cannot all have an alias of their own.
    run = value()
    id = run + "-{{ data | alias_preserve_format: 0, 10 }}"

    created = ids(vault.tokens.create(id=id, type="token", data="12345678901") for _ in range(11))

    assert len(set(created)) == 11
    assert any(UUID_V4.fullmatch(id) for id in created)
    assert any(id.startswith(run) for id in created)


@pytest.mark.calls("tokens.create")
def test_a_masked_answer_carries_its_fingerprint_as_well(vault, browser):
    created = browser.tokens.create(type="card", data={"number": "6011000990139424"})
    read = vault.tokens.get(created.id)

    assert given(created)["extras"] == {"deduplicated": False}
    assert read.fingerprint == created.fingerprint
