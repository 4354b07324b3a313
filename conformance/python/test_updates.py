"""Updates: what is merged, what is replaced, and what null means."""

import asyncio
import datetime as dt
import uuid

import pytest
from basis_theory import (
    AsyncBasisTheory,
    BadRequestError,
    ConflictError,
    ForbiddenError,
    NotFoundError,
)

from vault import (
    BASE_URL,
    INVALID,
    ONCE,
    PRIVATE_KEY,
    UUID_V4,
    card_basics,
    refusal,
    without_security_code,
)

CARD = {"number": "6011000990139424", "expiration_month": 4, "expiration_year": 2025}
CARD_MASK = {"number": "{{ data.number, reveal_last: 4 }}", "cvc": "{{ data.cvc }}"}
CARD_INDEXES = ["{{ data.expiration_month }}", "{{ data.number | last4 }}"]


@pytest.mark.calls("tokens.*")
def test_the_life_of_a_card_as_the_official_tests_live_it(vault):
    created = vault.tokens.create(
        type="card",
        data={**CARD, "cvc": 123},
        metadata={"customer_id": "3181"},
        search_indexes=CARD_INDEXES,
        fingerprint_expression="{{ data.number }}",
        mask=CARD_MASK,
        deduplicate_token=False,
        containers=["/pci/high/"],
    )
    read = vault.tokens.get(created.id)
    vault.tokens.update(created.id, data={"number": "4242424242424242"})
    changed = vault.tokens.get(created.id)
    vault.tokens.delete(created.id)

    assert UUID_V4.fullmatch(created.id)
    assert created.mask == CARD_MASK
    # A mask that does not say how to mask shows nothing.
    assert without_security_code(created.data) == {"number": None}
    assert created.search_indexes == CARD_INDEXES
    assert created.fingerprint_expression == "{{ data.number }}"
    assert created.metadata == {"customer_id": "3181"}
    assert without_security_code(read.data) == CARD
    assert without_security_code(changed.data) == {**CARD, "number": "4242424242424242"}
    assert card_basics(changed.card) == {
        "bin": "42424242",
        "last4": "4242",
        "expiration_month": 4,
        "expiration_year": 2025,
    }
    assert changed.fingerprint != read.fingerprint
    refusal(NotFoundError, 404, "Not Found", vault.tokens.get, created.id)


@pytest.mark.calls("tokens.update")
def test_the_answer_is_masked_and_says_who_changed_it_and_when(vault):
    data = {"number": "4242424242424242", "expiration_month": 4, "expiration_year": 2030}
    created = vault.tokens.create(type="card", data=data)

    updated = vault.tokens.update(created.id, data={"expiration_year": 2031})
    read = vault.tokens.get(created.id)

    assert (created.modified_at, created.modified_by) == (None, None)
    assert updated.data == {**data, "number": "XXXXXXXXXXXX4242", "expiration_year": 2031}
    assert updated.extras.deduplicated is False
    assert updated.modified_by == created.created_by
    assert updated.modified_at >= created.created_at
    assert updated.created_at == created.created_at
    assert updated.fingerprint == created.fingerprint
    assert read.data == {**data, "expiration_year": 2031}
    assert read.modified_at == updated.modified_at


@pytest.mark.calls("tokens.update")
def test_members_of_data_and_mask_are_added_changed_and_removed(vault):
    id = vault.tokens.create(
        type="token",
        data={"myData": "a", "Gone": "b", "deep": {"kept": 1, "gone": 2}},
        mask={"myData": "{{ data.myData }}", "Gone": "x"},
    ).id

    updated = vault.tokens.update(
        id,
        data={"myNewData": ["c"], "Gone": None, "deep": {"gone": None, "new": 3}},
        mask={"myNewData": "{{ data.myNewData }}", "Gone": None},
    )
    read = vault.tokens.get(id)

    assert read.data == {"myData": "a", "deep": {"kept": 1, "new": 3}, "myNewData": ["c"]}
    assert read.mask == {"myData": "{{ data.myData }}", "myNewData": "{{ data.myNewData }}"}
    assert updated.data == {"myData": "a", "myNewData": ["c"]}


@pytest.mark.calls("tokens.update")
@pytest.mark.parametrize("data", ["text", 7, False, ["a", 1], ""], ids=repr)
def test_data_that_is_no_object_replaces(vault, data):
    id = vault.tokens.create(type="token", data={"a": 1}).id

    vault.tokens.update(id, data=data)

    read = vault.tokens.get(id)
    assert read.data == data
    assert type(read.data) is type(data)


@pytest.mark.calls("tokens.update")
def test_metadata_is_merged_and_an_entry_of_none_is_removed(vault):
    metadata = {"kept": "1", "changed": "1", "removed": "1"}
    id = vault.tokens.create(type="token", data="x", metadata=metadata).id

    merged = vault.tokens.update(id, metadata={"changed": "2", "removed": None, "added": "2"})
    cleared = vault.tokens.update(id, metadata=None)

    assert merged.metadata == {"kept": "1", "changed": "2", "added": "2"}
    assert cleared.metadata is None
    assert vault.tokens.get(id).data == "x"


@pytest.mark.calls("tokens.update")
def test_a_mask_is_replaced_and_removed_by_none(vault):
    mask = "{{ data | reveal_last: 4 }}"
    id = vault.tokens.create(type="token", data="123-45-6789", mask=mask).id

    replaced = vault.tokens.update(id, mask="{{ data | reveal: 3 }}")
    removed = vault.tokens.update(id, mask=None)

    assert replaced.data == "123XXXXXXXX"
    assert removed.mask is None
    assert "data" not in removed.model_fields_set


@pytest.mark.calls("tokens.update")
def test_a_token_moves_to_another_container_and_back_by_none(vault):
    id = vault.tokens.create(type="token", data="x", containers=["/conformance/here/"]).id

    moved = vault.tokens.update(id, containers=["/Conformance/There/"])
    back = vault.tokens.update(id, containers=None)

    assert moved.containers == ["/conformance/there/"]
    assert back.containers == ["/general/high/"]
    assert vault.tokens.get(id).data == "x"


@pytest.mark.calls("tokens.update")
def test_an_expiry_is_replaced_and_removed_by_none(vault):
    id = vault.tokens.create(type="token", data="x", expires_at="8/26/2030").id

    replaced = vault.tokens.update(id, expires_at="2031-01-01T00:00:00Z")
    removed = vault.tokens.update(id, expires_at=None)

    assert replaced.expires_at == dt.datetime(2031, 1, 1, tzinfo=dt.timezone.utc)
    assert removed.expires_at is None
    assert vault.tokens.get(id).data == "x"


@pytest.mark.calls("tokens.update")
def test_a_fingerprint_follows_data_and_expression(vault):
    created = vault.tokens.create(type="token", data={"a": str(uuid.uuid4()), "b": "1"})

    asked = vault.tokens.update(created.id, fingerprint_expression="{{ data.a }}")
    same = vault.tokens.update(created.id, data={"b": "2"})
    other = vault.tokens.update(created.id, data={"a": str(uuid.uuid4())})
    back = vault.tokens.update(created.id, fingerprint_expression=None)

    assert asked.fingerprint_expression == "{{ data.a }}"
    assert asked.fingerprint != created.fingerprint
    assert same.fingerprint == asked.fingerprint
    assert other.fingerprint != asked.fingerprint
    assert back.fingerprint_expression == "{{ data | stringify }}"


@pytest.mark.calls("tokens.update")
def test_nothing_to_change_is_a_change_all_the_same(vault):
    created = vault.tokens.create(type="token", data="x", metadata={"a": "1"})

    updated = vault.tokens.update(created.id)

    assert updated.modified_at >= created.created_at
    assert updated.metadata == {"a": "1"}
    assert vault.tokens.get(created.id).data == "x"


@pytest.mark.calls("tokens.update")
def test_an_update_that_makes_a_duplicate_returns_the_other_token(vault):
    data = str(uuid.uuid4())
    first = vault.tokens.create(type="token", data=data)
    second = vault.tokens.create(type="token", data="another value")

    updated = vault.tokens.update(second.id, data=data, deduplicate_token=True)

    assert updated.id == first.id
    assert updated.data == data
    assert updated.extras.deduplicated is True
    assert vault.tokens.get(second.id).data == "another value"


@pytest.mark.calls("tokens.update")
def test_an_idempotency_key_is_accepted(vault):
    id = vault.tokens.create(type="token", data="x").id

    updated = vault.tokens.update(id, metadata={"a": "1"}, idempotency_key=str(uuid.uuid4()))

    assert updated.metadata == {"a": "1"}


INVALID_CHANGES = {
    "data that is none": ({"data": None}, ["data"]),
    "a number that fails the Luhn check": (
        {"data": {"number": "4242424242424241"}},
        ["data.number"],
    ),
    "a card without its number": ({"data": {"number": None}}, ["data.number"]),
    "a card that becomes text": ({"data": "4242424242424242"}, ["data"]),
    "two containers": ({"containers": ["/a/", "/b/"]}, ["containers"]),
    "a mask with an unknown filter": (
        {"mask": {"number": "{{ data | shout }}"}},
        ["mask.number"],
    ),
    "an index of nothing": ({"search_indexes": ["{{ data.none }}"]}, ["search_indexes[0]"]),
    "a fingerprint of nothing": (
        {"fingerprint_expression": "{{ data.none }}"},
        ["fingerprint_expression"],
    ),
    "metadata that is no string": ({"metadata": {"age": 7}}, ["metadata.age"]),
    "an expiry in the past": ({"expires_at": "1/1/2020"}, ["expires_at"]),
}


@pytest.mark.calls("tokens.update")
@pytest.mark.parametrize(
    ("change", "attributes"), INVALID_CHANGES.values(), ids=INVALID_CHANGES.keys()
)
def test_what_is_invalid_is_named_and_changes_nothing(vault, change, attributes):
    data = {"number": "4242424242424242", "expiration_month": 12}
    id = vault.tokens.create(type="card", data=data).id

    error = refusal(BadRequestError, 400, INVALID, vault.tokens.update, id, **change)

    assert sorted(error.body.errors) == attributes
    read = vault.tokens.get(id)
    assert read.data == data
    assert read.modified_at is None


@pytest.mark.calls("tokens.update")
def test_an_unknown_token_is_not_found(vault):
    deleted = vault.tokens.create(type="token", data="x").id
    vault.tokens.delete(deleted)

    for id in (deleted, str(uuid.uuid4()), "not there"):
        refusal(NotFoundError, 404, "Not Found", vault.tokens.update, id, metadata={"a": "1"})


@pytest.mark.calls("tokens.update")
def test_a_public_key_replaces_what_it_cannot_read_as_a_whole(vault, browser):
    data = {"number": "4242424242424242", "expiration_month": 1}
    id = browser.tokens.create(type="card", data=data).id

    refusal(ForbiddenError, 403, "Forbidden", browser.tokens.update, id, data={"expiration_month": 2})
    updated = browser.tokens.update(id, data={**data, "expiration_month": 2})

    assert updated.data["number"] == "XXXXXXXXXXXX4242"
    assert vault.tokens.get(id).data == {**data, "expiration_month": 2}


@pytest.mark.calls("tokens.update")
def test_a_management_key_may_not_update(vault, management):
    id = vault.tokens.create(type="token", data="x").id

    refusal(ForbiddenError, 403, "Forbidden", management.tokens.update, id, data="y")

    assert vault.tokens.get(id).data == "x"


@pytest.mark.calls("tokens.update")
def test_many_at_once_are_all_kept_or_told_to_try_again(vault):
    id = vault.tokens.create(type="token", data={"at": 0}).id
    names = [f"n{number}" for number in range(10)]

    async def update():
        several = AsyncBasisTheory(api_key=PRIVATE_KEY, base_url=BASE_URL)
        updates = (
            several.tokens.update(id, data={name: name}, request_options=ONCE) for name in names
        )
        return await asyncio.gather(*updates, return_exceptions=True)

    results = asyncio.run(update())

    data = vault.tokens.get(id).data
    for name, result in zip(names, results, strict=True):
        if isinstance(result, Exception):
            assert isinstance(result, ConflictError), result
        else:
            assert data[name] == name
