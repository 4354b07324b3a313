"""Tokens: created, read, updated, deleted, and what the client leaves out of them."""

import datetime as dt
import uuid

import pytest
from basistheory import ApiException
from basistheory.exceptions import ForbiddenException, NotFoundException, UnauthorizedException
from basistheory.model.privacy import Privacy
from basistheory.model.update_token_request import UpdateTokenRequest

from vault import (
    INVALID,
    TENANT_ID,
    UUID_V4,
    Vault,
    own_value,
    refusal,
    without_security_code,
)

CARD = {"number": "6011000990139424", "expiration_month": 4, "expiration_year": 2025}
CARD_MASK = {"number": "{{ data.number, reveal_last: 4 }}", "cvc": "{{ data.cvc }}"}
CARD_INDEXES = ["{{ data.expiration_month }}", "{{ data.number | last4 }}"]

VALUES = ["text", "", 7, -12.5, 0, True, False, {"Deep": [1, None]}, {}, ["a"], []]


@pytest.mark.calls("tokens.create")
@pytest.mark.parametrize("data", VALUES, ids=repr)
def test_data_is_kept_and_read_back_as_it_was(vault, data):
    created = vault.create(data=data)
    read = vault.tokens.get_by_id(created.id)

    assert UUID_V4.fullmatch(created.id)
    assert created.tenant_id == TENANT_ID
    assert created.extras.deduplicated is False
    assert "data" not in created
    assert read.data == data
    # As it came; the client makes decimal numbers of whole ones.
    assert type(vault.last_body()["data"]) is type(data)
    assert read.containers == ["/general/high/"]
    assert read.search_indexes == []


@pytest.mark.calls("tokens.create")
def test_text_that_looks_like_a_date_is_sent_as_text_and_becomes_a_date_in_the_client(vault):
    id = vault.create(data="2030-01-02").id

    read = vault.tokens.get_by_id(id)

    assert vault.last_body()["data"] == "2030-01-02"
    assert read.data == dt.date(2030, 1, 2)


@pytest.mark.calls("tokens.*")
def test_the_life_of_a_card(vault):
    created = vault.create(
        type="card",
        data={**CARD, "cvc": 123},
        metadata={"customer_id": "3181"},
        search_indexes=CARD_INDEXES,
        fingerprint_expression="{{ data.number }}",
        mask=CARD_MASK,
        deduplicate_token=False,
        containers=["/pci/high/"],
    )
    read = vault.tokens.get_by_id(created.id)
    change = UpdateTokenRequest(data={"number": "4242424242424242"})
    updated = vault.tokens.update(created.id, change)
    changed = vault.tokens.get_by_id(created.id)
    deleted = vault.tokens.delete(created.id)

    assert created.mask == CARD_MASK
    assert without_security_code(created.data) == {"number": None}
    assert created.search_indexes == CARD_INDEXES
    assert created.metadata == {"customer_id": "3181"}
    assert without_security_code(read.data) == CARD
    assert updated.id == created.id
    assert updated.modified_by == created.created_by
    assert without_security_code(changed.data) == {**CARD, "number": "4242424242424242"}
    assert deleted is None
    refusal(NotFoundException, 404, "Not Found", vault.tokens.get_by_id, created.id)
    refusal(NotFoundException, 404, "Not Found", vault.tokens.delete, created.id)


@pytest.mark.calls("tokens.update")
def test_a_merge_patch_is_sent_and_merged(vault):
    token = vault.create(
        data={"a": 1, "b": {"c": 2, "d": 3}}, metadata={"kept": "1", "removed": "1"}
    )

    change = UpdateTokenRequest(
        data={"b": {"d": None, "e": 4}}, metadata={"removed": None, "added": "2"}
    )
    updated = vault.tokens.update(token.id, change)

    assert updated.metadata == {"kept": "1", "added": "2"}
    assert vault.tokens.get_by_id(token.id).data == {"a": 1, "b": {"c": 2, "e": 4}}


@pytest.mark.calls("tokens.update")
def test_everything_else_is_replaced(vault):
    token = vault.create(data="123-45-6789", mask="{{ data | reveal_last: 4 }}")

    change = UpdateTokenRequest(
        mask="{{ data | reveal: 3 }}",
        containers=["/conformance/legacy/"],
        search_indexes=["{{ data }}"],
        fingerprint_expression="{{ data | last4 }}",
        expires_at="8/26/2030 7:23:57 PM -07:00",
    )
    updated = vault.tokens.update(token.id, change)

    assert updated.data == "123XXXXXXXX"
    assert updated.containers == ["/conformance/legacy/"]
    assert updated.search_indexes == ["{{ data }}"]
    assert updated.fingerprint_expression == "{{ data | last4 }}"
    assert updated.expires_at == dt.datetime(2030, 8, 27, 2, 23, 57, tzinfo=dt.timezone.utc)


@pytest.mark.calls("tokens.update")
def test_an_unknown_token_is_not_found(vault):
    change = UpdateTokenRequest(metadata={"a": "1"})

    refusal(NotFoundException, 404, "Not Found", vault.tokens.update, own_value(), change)


@pytest.mark.calls("tokens.create")
def test_the_client_leaves_out_what_it_does_not_know(vault):
    card = vault.create(type="card", data=CARD)
    body = vault.last_body()
    bank = vault.create(
        type="bank", data={"routing_number": "021000021", "account_number": "00001"}
    )

    assert body["card"]["last4"] == "9424"
    assert "card" not in card
    assert vault.last_body()["bank"]["account_number_last4"] == "0001"
    assert "bank" not in bank


@pytest.mark.calls("tokens.create")
def test_deduplication_is_told_and_how_it_went_is_left_out(vault):
    request = {"data": own_value(), "deduplicate_token": True}

    first = vault.create(**request)
    again = vault.create(**request)

    assert again.id == first.id
    assert again.extras.deduplicated is True
    assert vault.last_body()["_extras"]["deduplication_behavior"] == "read_existing"
    assert "deduplication_behavior" not in again.extras


@pytest.mark.calls("tokens.create")
def test_the_older_privacy_attribute_chooses_the_container(vault):
    created = vault.create(privacy=Privacy(classification="pii", impact_level="low"))

    assert created.containers == ["/pii/low/"]


@pytest.mark.calls("tokens.create")
def test_times_are_read_with_their_offset(vault):
    created = vault.create(expires_at="8/26/2030 7:23:57 PM -07:00")

    age = dt.datetime.now(dt.timezone.utc) - created.created_at
    assert abs(age) < dt.timedelta(seconds=60)
    assert created.expires_at == dt.datetime(2030, 8, 27, 2, 23, 57, tzinfo=dt.timezone.utc)


@pytest.mark.calls("tokens.create")
@pytest.mark.parametrize("name", ["order {} of a@b.example", "naïve ☃ {}"])
def test_an_id_of_ones_own_is_found_by_it(vault, name):
    id = name.format(own_value())

    created = vault.create(id=id)

    assert created.id == id
    assert vault.tokens.get_by_id(id).data == "x"
    assert vault.tokens.delete(id) is None


@pytest.mark.calls("tokens.create")
def test_what_is_invalid_is_named(vault):
    request = {"type": "card", "data": {"number": "4242424242424241"}}

    problem = refusal(ApiException, 400, INVALID, vault.create, **request)

    assert list(problem["errors"]) == ["data.number"]


@pytest.mark.calls("tokens.create")
def test_an_id_that_is_taken_is_a_conflict(vault):
    id = own_value()
    vault.create(id=id)

    refusal(ApiException, 409, "Conflict", vault.create, id=id)


@pytest.mark.calls("tokens.*")
def test_a_bad_key_is_unauthorized():
    stranger = Vault("key_test_us_pvt_11111111111111111111.11111111111111111111111111111111")

    refusal(UnauthorizedException, 401, "Unauthorized", stranger.create)
    refusal(UnauthorizedException, 401, "Unauthorized", stranger.tokens.get)


@pytest.mark.calls("tokens.*")
def test_keys_without_the_permission_are_refused(browser, management):
    id = browser.create().id

    refusal(ForbiddenException, 403, "Forbidden", browser.tokens.get_by_id, id)
    refusal(ForbiddenException, 403, "Forbidden", browser.tokens.get)
    refusal(ForbiddenException, 403, "Forbidden", management.create, data=str(uuid.uuid4()))
