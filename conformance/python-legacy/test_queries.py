"""Lists and searches of both versions; the first one pages by number and says that it is old."""

import pytest
from basistheory import ApiException
from basistheory.model.search_tokens_request import SearchTokensRequest
from basistheory.model.search_tokens_request_v2 import SearchTokensRequestV2

from vault import INVALID, ids, own_value, refusal


def make(vault, count: int, **attributes) -> list:
    """Tokens one after the other, so that their order is known; the newest comes first."""
    return [vault.create(**attributes).id for _ in range(count)][::-1]


def follow(call) -> list:
    """All pages by number, until one is empty, as clients of this version page."""
    found, page = [], 1
    while data := ids(call(page)):
        found += data
        page += 1
    return found


def assert_says_that_it_is_old(vault, successor: str):
    assert vault.last_header("deprecation") == "@1735862400"
    assert vault.last_header("sunset") == "Sat, 01 Mar 2025 00:00:00 GMT"
    assert f'{successor}>; rel="successor-version"' in vault.last_header("link")


@pytest.mark.calls("tokens.get (v1)")
def test_pages_are_followed_by_number(vault):
    metadata = {"customer": own_value()}
    made = make(vault, 7, metadata=metadata)

    listed = follow(lambda page: vault.tokens.get(metadata=metadata, page=page, size=3))
    second = vault.tokens.get(metadata=metadata, page=2, size=3)
    past = vault.tokens.get(metadata=metadata, page=9, size=3)

    assert listed == made
    assert ids(second) == made[3:6]
    pagination = second.pagination
    assert (pagination.total_items, pagination.total_pages) == (7, 3)
    assert (pagination.page_number, pagination.page_size) == (2, 3)
    assert ids(past) == []
    assert past.pagination.total_items == 7


@pytest.mark.calls("tokens.get (v1)")
def test_ids_are_looked_up_and_unknown_ones_are_absent(vault):
    first, second = make(vault, 2)

    listed = vault.tokens.get(id=[second, first, own_value()])

    assert ids(listed) == [first, second]
    assert_says_that_it_is_old(vault, "/v2/tokens")


@pytest.mark.calls("tokens.get (v1)")
def test_metadata_is_compared_without_regard_to_case_and_all_of_it_counts(vault):
    value = own_value()
    token = vault.create(metadata={"Customer": value.upper(), "Plan": "Gold"}).id

    assert ids(vault.tokens.get(metadata={"customer": value, "PLAN": "gold"})) == [token]
    assert ids(vault.tokens.get(metadata={"customer": value, "plan": "silver"})) == []


@pytest.mark.calls("tokens.get (v1)")
def test_without_a_filter_the_newest_comes_first(vault):
    (newest,) = make(vault, 1)

    page = vault.tokens.get(size=1, start="ignored")

    assert ids(page) == [newest]
    assert page.data[0].data == "x"
    assert page.pagination.total_pages == page.pagination.total_items


@pytest.mark.calls("tokens.search (v1)")
def test_every_field_of_the_older_search(vault):
    value = own_value()
    token = vault.create(
        data={"name": value}, search_indexes=["{{ data.name }}"], metadata={"Order": value}
    )

    def found(query):
        return ids(vault.tokens.search(SearchTokensRequest(query=query)))

    assert found(f"id:{token.id}") == [token.id]
    assert found(f"data:{value}") == [token.id]
    assert found(f"metadata.order:{value.upper()}") == [token.id]
    assert found(f"metadata.order:{value} AND metadata.other:x") == []
    assert found(f"data:{value}x") == []
    assert_says_that_it_is_old(vault, "/v2/tokens/search")


@pytest.mark.calls("tokens.search (v1)")
def test_pages_of_a_search_are_followed_by_number(vault):
    value = own_value()
    made = make(vault, 5, metadata={"order": value})
    query = f"metadata.order:{value}"

    found = follow(
        lambda page: vault.tokens.search(SearchTokensRequest(query=query, page=page, size=2))
    )

    assert found == made


@pytest.mark.calls("tokens.search (v1)")
def test_a_query_that_is_not_supported_is_named(vault):
    for query in ("data:a OR data:b", "type:card", "container:/a/"):
        request = SearchTokensRequest(query=query)
        problem = refusal(ApiException, 400, INVALID, vault.tokens.search, request)
        assert list(problem["errors"]) == ["query"]


@pytest.mark.calls("tokens.get_v2")
def test_the_newer_list_is_followed_by_cursor(vault):
    make(vault, 4)

    first = vault.tokens.get_v2(size=3)
    second = vault.tokens.get_v2(size=3, start=first.pagination.next)

    assert (len(first.data), first.pagination.page_size) == (3, 3)
    assert not set(ids(first)) & set(ids(second))
    assert second.data


@pytest.mark.calls("tokens.search_v2")
def test_the_newer_search_is_followed_by_cursor(vault):
    container = f"/conformance/{own_value()}/"
    made = make(vault, 3, containers=[container])
    query = f'container:"{container}"'

    first = vault.tokens.search_v2(SearchTokensRequestV2(query=query, size=2))
    start = first.pagination.next
    second = vault.tokens.search_v2(SearchTokensRequestV2(query=query, size=2, start=start))

    assert (ids(first), ids(second)) == (made[:2], made[2:])
    assert "next" not in second.pagination
