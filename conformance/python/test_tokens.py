"""Tokens: created, read back, deleted."""

import asyncio
import datetime as dt
import uuid

import pytest
from basis_theory import AsyncBasisTheory, ConflictError, NotFoundError, Privacy

from vault import (
    BASE_URL,
    PRIVATE_KEY,
    UUID_V4,
    card_basics,
    given,
    refusal,
    without_security_code,
)

CARD_MASK = {
    "number": "{{ data.number | reveal_last: 4 }}",
    "expiration_month": "{{ data.expiration_month }}",
    "expiration_year": "{{ data.expiration_year }}",
}

# What a token of the type `token` has without being asked.
KEPT = {"type": "token", "containers": ["/general/high/"], "search_indexes": []}
# And this as well, unless there is nothing to make a fingerprint of.
PRINTED = {"fingerprint_expression": "{{ data | stringify }}"}

VALUES = {
    "a string": "Sensitive Value",
    "an empty string": "",
    "text of many alphabets": 'naïve Ω 名前 ☃ 𝄞 "\\\n',
    "an object": {"firstName": "Ada", "last_name": "L", "Zip-Code": {"Inner": [1, None]}},
    "an empty object": {},
    "an array": [1, "two", None, {"Three": 3}, [True]],
    "an empty array": [],
    "an integer": 9007199254740993,
    "a decimal number": -12.5,
    "zero": 0,
    "true": True,
    "false": False,
}


@pytest.mark.calls("tokens.create")
@pytest.mark.parametrize("data", VALUES.values(), ids=VALUES.keys())
def test_data_is_kept_and_read_back_as_it_was(vault, data):
    created = vault.tokens.create(type="token", data=data)
    read = vault.tokens.get(created.id)

    # Without a mask there is nothing of the data that a masked answer could show.
    kept = KEPT if data == "" else {**KEPT, **PRINTED}
    assert given(created) == {**kept, "extras": {"deduplicated": False}}
    assert given(read) == {**kept, "data": data}
    assert type(read.data) is type(data)
    assert read.id == created.id
    assert read.created_by == created.created_by
    assert read.created_at == created.created_at


@pytest.mark.calls("tokens.create")
def test_a_card_is_answered_masked_and_read_back_whole(vault):
    data = {"number": "4242424242424242", "expiration_month": 12, "expiration_year": 2030}

    created = vault.tokens.create(type="card", data=data)
    read = vault.tokens.get(created.id)

    answered = given(created)
    card = answered.pop("card")
    assert answered == {
        "type": "card",
        "data": {**data, "number": "XXXXXXXXXXXX4242"},
        "mask": CARD_MASK,
        "containers": ["/pci/high/"],
        "search_indexes": [],
        "fingerprint_expression": "{{ data.number }}",
        "extras": {"deduplicated": False},
    }
    rest = given(read)
    assert rest.pop("card") == card
    assert rest == {
        "type": "card",
        "data": data,
        "mask": CARD_MASK,
        "containers": ["/pci/high/"],
        "search_indexes": [],
        "fingerprint_expression": "{{ data.number }}",
    }
    assert card_basics(card) == {
        "bin": "42424242",
        "last4": "4242",
        "expiration_month": 12,
        "expiration_year": 2030,
    }


@pytest.mark.calls("tokens.create")
def test_month_and_year_as_strings_become_numbers(vault):
    data = {"number": "4242424242424242", "expiration_month": "02", "expiration_year": "2031"}

    created = vault.tokens.create(type="card", data=data)
    read = vault.tokens.get(created.id)

    assert read.data == {**data, "expiration_month": 2, "expiration_year": 2031}
    assert created.card.expiration_month == 2
    assert created.card.expiration_year == 2031


@pytest.mark.calls("tokens.create")
@pytest.mark.parametrize("cvc", [123, "0123"], ids=["number", "string"])
def test_a_security_code_is_accepted_and_not_shown(vault, cvc):
    data = {"number": "4242424242424242", "expiration_month": 4, "expiration_year": 2030}

    created = vault.tokens.create(type="card", data={**data, "cvc": cvc})
    read = vault.tokens.get(created.id)

    assert created.data == {**data, "number": "XXXXXXXXXXXX4242"}
    assert without_security_code(read.data, cvc) == data


@pytest.mark.calls("tokens.create")
def test_a_card_of_fifteen_digits_has_a_bin_of_six(vault):
    created = vault.tokens.create(type="card", data={"number": "378282246310005"})
    read = vault.tokens.get(created.id)

    assert created.data["number"] == "XXXXXXXXXXX0005"
    assert created.card.bin == "378282"
    assert created.card.last4 == "0005"
    assert created.card.expiration_month is None
    assert read.data == {"number": "378282246310005"}


@pytest.mark.calls("tokens.create")
def test_a_test_tenant_takes_the_3d_secure_test_numbers(vault):
    created = vault.tokens.create(type="card", data={"number": "4200000000000002"})
    read = vault.tokens.get(created.id)

    assert read.data == {"number": "4200000000000002"}


@pytest.mark.calls("tokens.create")
def test_a_mask_shows_what_it_says_and_no_more(vault):
    mask = "{{ data | reveal_last: 4 }}"

    created = vault.tokens.create(type="token", data="123-45-6789", mask=mask)
    read = vault.tokens.get(created.id)

    assert (created.data, created.mask) == ("XXX-XX-6789", mask)
    assert (read.data, read.mask) == ("123-45-6789", mask)


@pytest.mark.calls("tokens.create")
def test_names_inside_data_mask_and_metadata_keep_their_case(vault):
    data = {"camelCase": "a", "snake_case": "b", "Kebab-Case": "c"}
    mask = {"camelCase": "{{ data.camelCase }}", "snake_case": "*", "Kebab-Case": "***"}
    metadata = {"camelCase": "1", "snake_case": "2", "Kebab-Case": "3"}

    created = vault.tokens.create(type="token", data=data, mask=mask, metadata=metadata)
    read = vault.tokens.get(created.id)

    masked = {"camelCase": "a", "snake_case": "*", "Kebab-Case": "***"}
    assert (created.data, created.mask, created.metadata) == (masked, mask, metadata)
    assert (read.data, read.mask, read.metadata) == (data, mask, metadata)


@pytest.mark.calls("tokens.create")
def test_a_container_is_kept_in_lower_case(vault):
    created = vault.tokens.create(type="token", data="x", containers=["/Customers/VIP-1/e_u/"])
    read = vault.tokens.get(created.id)

    assert created.containers == ["/customers/vip-1/e_u/"]
    assert read.containers == ["/customers/vip-1/e_u/"]


@pytest.mark.calls("tokens.create")
def test_the_older_privacy_attribute_chooses_the_container(vault):
    privacy = Privacy(classification="pii", impact_level="low")

    created = vault.tokens.create(type="token", data="x", privacy=privacy)

    assert created.containers == ["/pii/low/"]
    assert created.privacy is None


@pytest.mark.calls("tokens.create")
def test_an_attribute_given_as_none_counts_as_absent(vault):
    names = "id mask containers metadata expires_at search_indexes privacy encrypted"
    names += " fingerprint_expression deduplicate_token token_intent_id"

    created = vault.tokens.create(type="token", data="x", **dict.fromkeys(names.split()))

    assert given(created) == {**KEPT, **PRINTED, "extras": {"deduplicated": False}}


@pytest.mark.calls("tokens.create")
def test_an_attribute_that_is_not_known_here_is_ignored(vault):
    created = vault.tokens.create(type="token", data="x", owner_merchant_id=str(uuid.uuid4()))
    read = vault.tokens.get(created.id)

    assert read.data == "x"


@pytest.mark.calls("tokens.create")
def test_metadata_without_a_value_is_dropped(vault):
    metadata = {"kept": "yes", "dropped": None}

    created = vault.tokens.create(type="token", data="x", metadata=metadata)
    read = vault.tokens.get(created.id)

    assert created.metadata == {"kept": "yes"}
    assert read.metadata == {"kept": "yes"}


EXPIRIES = {
    "8/26/2030 7:23:57 PM -07:00": "2030-08-26T19:23:57-07:00",
    "8/26/2030 7:23:57 AM": "2030-08-26T07:23:57+00:00",
    "8/26/2030": "2030-08-26T00:00:00+00:00",
    "2030-08-26T19:23:57+05:30": "2030-08-26T19:23:57+05:30",
    "2030-08-26T19:23:57Z": "2030-08-26T19:23:57+00:00",
    "2030-08-26T19:23:57": "2030-08-26T19:23:57+00:00",
    "2030-08-26": "2030-08-26T00:00:00+00:00",
}


@pytest.mark.calls("tokens.create")
@pytest.mark.parametrize(("asked", "answered"), EXPIRIES.items(), ids=EXPIRIES.keys())
def test_expires_when_asked_in_the_offset_given(vault, asked, answered):
    created = vault.tokens.create(type="token", data="x", expires_at=asked)
    read = vault.tokens.get(created.id)

    # Equal times may have different offsets; equal texts may not.
    assert created.expires_at.isoformat() == answered
    assert read.expires_at.isoformat() == answered
    assert created.expires_at == dt.datetime.fromisoformat(answered)


@pytest.mark.calls("tokens.create")
def test_the_id_may_be_chosen_and_stays_reserved_after_deletion(vault):
    id = str(uuid.uuid4())

    first = vault.tokens.create(id=id, type="token", data="first")
    vault.tokens.delete(id)
    again = {"id": id, "type": "token", "data": "second"}

    assert first.id == id
    refusal(ConflictError, 409, "Conflict", vault.tokens.create, **again)


@pytest.mark.calls("tokens.create")
def test_a_public_key_creates_what_a_private_key_reads(vault, browser):
    data = {"number": "5555555555554444", "expiration_month": 1, "expiration_year": 2032}

    created = browser.tokens.create(type="card", data=data)
    read = vault.tokens.get(created.id)

    assert created.data == {**data, "number": "XXXXXXXXXXXX4444"}
    assert read.data == data
    assert read.created_by == created.created_by


@pytest.mark.calls("tokens.create")
def test_tokens_of_two_applications_name_different_creators(vault, browser):
    first = vault.tokens.create(type="token", data="x")
    second = vault.tokens.create(type="token", data="x")
    third = browser.tokens.create(type="token", data="x")

    assert first.created_by == second.created_by
    assert UUID_V4.fullmatch(third.created_by)
    assert first.created_by != third.created_by


@pytest.mark.calls("tokens.create")
def test_an_idempotency_key_is_accepted(vault):
    created = vault.tokens.create(type="token", data="x", idempotency_key=str(uuid.uuid4()))
    read = vault.tokens.get(created.id)

    assert read.data == "x"


@pytest.mark.calls("tokens.create")
def test_twenty_at_once_are_twenty_different_tokens():
    async def create_and_read():
        vault = AsyncBasisTheory(api_key=PRIVATE_KEY, base_url=BASE_URL)
        created = await asyncio.gather(
            *(vault.tokens.create(type="token", data={"number": n}) for n in range(20))
        )
        read = await asyncio.gather(*(vault.tokens.get(token.id) for token in created))
        return created, read

    created, read = asyncio.run(create_and_read())

    assert len({token.id for token in created}) == 20
    assert [token.data["number"] for token in read] == list(range(20))


@pytest.mark.calls("tokens.delete")
def test_a_deleted_token_is_gone_and_the_others_stay(vault):
    id = vault.tokens.create(type="token", data="gone").id
    other = vault.tokens.create(type="token", data="stays")

    answer = vault.tokens.with_raw_response.delete(id)

    assert answer.data is None
    assert answer.status_code == 204
    refusal(NotFoundError, 404, "Not Found", vault.tokens.get, id)
    refusal(NotFoundError, 404, "Not Found", vault.tokens.delete, id)
    assert vault.tokens.get(other.id).data == "stays"
