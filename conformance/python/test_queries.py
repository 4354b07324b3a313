"""Lists and searches: every filter, every page."""

import asyncio
import uuid

import pytest
from basis_theory import AsyncBasisTheory, BadRequestError, ForbiddenError
from basis_theory.core.api_error import ApiError

from vault import BASE_URL, INVALID, PRIVATE_KEY, ids, own_container, problem, refusal


def make(vault, *requests) -> list:
    """Tokens one after the other, so that their order is known; the newest comes first."""
    made = [vault.tokens.create(**{"type": "token", "data": "x", **one}) for one in requests]
    return ids(reversed(made))


@pytest.mark.calls("tokens.list_v2")
def test_pages_of_three_are_followed_to_the_end(vault):
    container = own_container()
    made = make(vault, *[{"containers": [container]}] * 7)

    pages = list(vault.tokens.list_v2(container=container, size=3).iter_pages())
    every = vault.tokens.list_v2(container=container, size=3)
    exact = vault.tokens.list_v2(container=container, size=7)

    assert [ids(page.items) for page in pages] == [made[:3], made[3:6], made[6:]]
    assert [page.response.pagination.page_size for page in pages] == [3, 3, 1]
    assert ids(every) == made
    assert ids(exact) == made


@pytest.mark.calls("tokens.list_v2")
def test_without_a_filter_pages_of_three_go_on_past_the_first(vault):
    make(vault, {}, {}, {}, {})

    seen = set()
    for token in vault.tokens.list_v2(size=3):
        seen.add(token.id)
        if len(seen) > 3:
            break

    assert len(seen) == 4


@pytest.mark.calls("tokens.list_v2")
def test_pages_are_followed_by_the_client_that_does_not_wait():
    async def create_and_list():
        vault = AsyncBasisTheory(api_key=PRIVATE_KEY, base_url=BASE_URL)
        container = own_container()
        token = {"type": "token", "data": "x", "containers": [container]}
        made = await asyncio.gather(*(vault.tokens.create(**token) for _ in range(7)))
        pager = await vault.tokens.list_v2(container=container, size=3)
        return ids(made), [token.id async for token in pager]

    made, listed = asyncio.run(create_and_list())

    assert sorted(listed) == sorted(made)


@pytest.mark.calls("tokens.list_v2")
def test_each_token_is_shown_as_a_read_shows_it(vault):
    container = own_container()
    data = {"number": "4242424242424242", "expiration_month": 1, "expiration_year": 2032}
    id = vault.tokens.create(type="card", data=data, containers=[container]).id

    (listed,) = vault.tokens.list_v2(container=container)

    assert listed == vault.tokens.get(id)
    assert listed.data == data


@pytest.mark.calls("tokens.list_v2")
def test_every_filter_alone_and_below_a_container(vault):
    container = own_container()
    value = str(uuid.uuid4())
    metadata, fingerprint, type = make(
        vault,
        {
            "type": "us_bank_account_number",
            "data": "123456",
            "containers": [f"{container}deeper/"],
        },
        {"data": value, "containers": [container]},
        {"metadata": {"Order Nr. 1": value, "other": "x"}, "containers": [container]},
    )
    printed = vault.tokens.get(fingerprint).fingerprint

    def listed(**filter):
        return ids(vault.tokens.list_v2(**filter))

    assert listed(container=container) == [type, metadata, fingerprint]
    assert listed(container=container.upper()) == [type, metadata, fingerprint]
    assert listed(container=f"{container}deeper/") == [type]
    assert listed(container=own_container()) == []
    assert type in listed(type="us_bank_account_number", size=100)
    assert listed(container=container, type="us_bank_account_number") == [type]
    assert listed(container=container, type="card") == []
    assert listed(fingerprint=printed) == [fingerprint]
    assert listed(container=container, fingerprint=printed) == [fingerprint]
    assert listed(metadata={"Order Nr. 1": value}) == [metadata]
    assert listed(container=container, metadata={"other": "x"}) == [metadata]
    # Compared exactly.
    assert listed(metadata={"order nr. 1": value}) == []
    assert listed(metadata={"Order Nr. 1": value.upper()}) == []


@pytest.mark.calls("tokens.list_v2")
def test_a_filter_is_kept_from_page_to_page(vault):
    container = own_container()
    metadata = {"customer": str(uuid.uuid4())}
    with_it = {"metadata": metadata, "containers": [container]}
    without = {"containers": [container]}
    made = make(vault, with_it, without, with_it, without, with_it)

    listed = vault.tokens.list_v2(container=container, metadata=metadata, size=1)

    assert ids(listed) == [made[0], made[2], made[4]]


@pytest.mark.calls("tokens.list_v2")
def test_containers_come_in_descending_order_each_with_its_newest_first(vault):
    container = own_container()
    newest, top, oldest = make(
        vault,
        {"containers": [f"{container}b/"]},
        {"containers": [container]},
        {"containers": [f"{container}b/"]},
    )
    (last,) = make(vault, {"containers": [f"{container}a/"]})

    listed = vault.tokens.list_v2(container=container, size=2)

    assert ids(listed) == [newest, oldest, last, top]


@pytest.mark.calls("tokens.list_v2")
def test_a_new_token_is_listed_at_once_and_a_deleted_one_no_more(vault):
    container = own_container()
    second, first = make(vault, *[{"containers": [container]}] * 2)

    vault.tokens.delete(first)

    assert ids(vault.tokens.list_v2(container=container)) == [second]


@pytest.mark.calls("tokens.list_v2")
def test_a_page_of_none_is_empty(vault):
    page = vault.tokens.list_v2(size=0)

    assert page.items == []


INVALID_LISTS = {
    "more than a hundred": ({"size": 101}, ["size"]),
    "less than none": ({"size": -1}, ["size"]),
    "no number": ({"size": "all"}, ["size"]),
    "an invented cursor": ({"start": "AgAAAA=="}, ["start"]),
    "an unknown type": ({"type": "passport"}, ["type"]),
    "a container without slashes": ({"container": "pci"}, ["container"]),
    "two filters": ({"type": "card", "fingerprint": "abc"}, ["fingerprint", "type"]),
    "two entries of metadata": ({"metadata": {"a": "1", "b": "2"}}, ["metadata"]),
}


@pytest.mark.calls("tokens.list_v2")
@pytest.mark.parametrize(
    ("filter", "parameters"), INVALID_LISTS.values(), ids=INVALID_LISTS.keys()
)
def test_what_is_invalid_is_named(vault, filter, parameters):
    # This method has no class of its own for 400.
    error = refusal(ApiError, 400, INVALID, vault.tokens.list_v2, **filter)

    assert sorted(problem(error, "errors")) == parameters


@pytest.mark.calls("tokens.list_v2")
def test_a_cursor_belongs_to_its_filter(vault):
    container = own_container()
    make(vault, *[{"containers": [container]}] * 2)
    page = vault.tokens.list_v2(container=container, size=1)

    other = {"container": own_container(), "size": 1, "start": page.response.pagination.next}

    error = refusal(ApiError, 400, INVALID, vault.tokens.list_v2, **other)
    assert list(problem(error, "errors")) == ["start"]


@pytest.mark.calls("tokens.list_v2")
def test_keys_that_may_not_read_may_not_list(browser, management):
    refusal(ForbiddenError, 403, "Forbidden", browser.tokens.list_v2)
    refusal(ForbiddenError, 403, "Forbidden", management.tokens.list_v2)


@pytest.mark.calls("tokens.search_v2")
def test_pages_are_followed_although_the_idempotency_key_stays(vault):
    container = own_container()
    made = make(vault, *[{"containers": [container]}] * 7)
    search = {"query": f'container:"{container}"', "idempotency_key": str(uuid.uuid4())}

    found = vault.tokens.search_v2(**search, size=3)
    again = vault.tokens.search_v2(**search, size=2)

    assert ids(found) == made
    assert ids(again) == made


@pytest.mark.calls("tokens.search_v2")
def test_every_field_alone_and_with_a_container(vault):
    container = own_container()
    value = str(uuid.uuid4())
    metadata, data, type = make(
        vault,
        {
            "type": "us_bank_account_number",
            "data": "123456",
            "containers": [f"{container}deeper/"],
        },
        {
            "data": {"Name": f"Ada {value}"},
            "search_indexes": ["{{ data.Name }}", "{{ data.Name | last4 }}"],
            "containers": [container],
        },
        {"metadata": {"Order": value}, "containers": [container]},
    )
    printed = vault.tokens.get(type).fingerprint
    here = f'container:"{container}"'

    def found(query):
        return ids(vault.tokens.search_v2(query=query))

    assert found(here) == [type, metadata, data]
    assert found(f'data:"Ada {value}"') == [data]
    assert found(f"data:{value[-4:]} AND {here}") == [data]
    assert found(f"metadata.Order:{value}") == [metadata]
    assert found(f"{here} AND metadata.Order:{value}") == [metadata]
    assert found(f"type:us_bank_account_number AND {here}") == [type]
    assert found(f"fingerprint:{printed} AND {here}") == [type]
    # Compared exactly, and only with the indexes.
    assert found(f'data:"ada {value}"') == []
    assert found(f"data:{value}") == []


@pytest.mark.calls("tokens.search_v2")
def test_a_card_is_found_by_its_month_and_its_last_four_digits(vault):
    container = own_container()
    id = vault.tokens.create(
        type="card",
        data={
            "number": "4242424242424242",
            "expiration_month": 4,
            "expiration_year": 2025,
            "cvc": 123,
        },
        search_indexes=["{{ data.expiration_month }}", "{{ data.number | last4 }}"],
        containers=[container],
    ).id

    def found(value):
        return ids(vault.tokens.search_v2(query=f"data:{value} AND container:{container}"))

    assert found("4") == [id]
    assert found("4242") == [id]
    assert found("4242424242424242") == []


@pytest.mark.calls("tokens.search_v2")
@pytest.mark.parametrize("value", ["123-45-6789", "123456789", "6789"])
def test_the_default_indexes_of_a_social_security_number(vault, value):
    container = own_container()
    id = vault.tokens.create(
        type="social_security_number", data="123-45-6789", containers=[container]
    ).id

    found = vault.tokens.search_v2(query=f"data:{value} AND container:{container}")

    assert ids(found) == [id]


@pytest.mark.calls("tokens.search_v2")
def test_indexes_follow_the_token_when_it_changes(vault):
    before, after, other = (str(uuid.uuid4()) for _ in range(3))
    id = vault.tokens.create(
        type="token", data={"name": before, "other": other}, search_indexes=["{{ data.name }}"]
    ).id

    def found(value):
        return ids(vault.tokens.search_v2(query=f"data:{value}"))

    assert found(before) == [id]
    vault.tokens.update(id, data={"name": after})
    assert (found(before), found(after)) == ([], [id])
    vault.tokens.update(id, search_indexes=["{{ data.other }}"])
    assert (found(after), found(other)) == ([], [id])
    vault.tokens.update(id, search_indexes=None)
    assert found(other) == []


@pytest.mark.calls("tokens.search_v2")
def test_without_a_query_everything_is_found(vault):
    make(vault, {}, {}, {})

    page = vault.tokens.search_v2(size=2)
    plain = vault.tokens.search_v2()

    assert len(page.items) == 2
    assert page.has_next
    assert len(plain.items) >= 3


INVALID_SEARCHES = {
    "alternatives": ({"query": "data:a OR data:b"}, ["query"]),
    "a negation": ({"query": "NOT type:card"}, ["query"]),
    "a wildcard": ({"query": "data:a*"}, ["query"]),
    "a range": ({"query": "data:[a TO b]"}, ["query"]),
    "a value without a field": ({"query": "card"}, ["query"]),
    "an id, which only the older search knows": ({"query": "id:abc"}, ["query"]),
    "two fields that exclude each other": ({"query": "type:card AND data:x"}, ["query"]),
    "more than two hundred characters": ({"query": "data:" + "x" * 200}, ["query"]),
    "too many on a page": ({"size": 101}, ["size"]),
    "an invented cursor": ({"start": "AgAAAA=="}, ["start"]),
}


@pytest.mark.calls("tokens.search_v2")
@pytest.mark.parametrize(
    ("request_body", "attributes"), INVALID_SEARCHES.values(), ids=INVALID_SEARCHES.keys()
)
def test_what_is_invalid_in_a_search_is_named(vault, request_body, attributes):
    error = refusal(BadRequestError, 400, INVALID, vault.tokens.search_v2, **request_body)

    assert sorted(error.body.errors) == attributes


@pytest.mark.calls("tokens.search_v2")
def test_keys_that_may_not_search_may_not_search(browser, management):
    refusal(ForbiddenError, 403, "Forbidden", browser.tokens.search_v2)
    refusal(ForbiddenError, 403, "Forbidden", management.tokens.search_v2)
