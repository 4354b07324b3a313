"""Headers: what is given for one call, this client goes on sending with every later one."""

import pytest
from basistheory.model.search_tokens_request_v2 import SearchTokensRequestV2
from basistheory.model.update_token_request import UpdateTokenRequest
from basistheory.request_options import RequestOptions

from vault import BASE_URL, PRIVATE_KEY, UUID_V4, Vault, ids, own_value


@pytest.mark.calls("RequestOptions")
def test_a_trace_id_comes_back_then_and_ever_after(vault):
    trace = f"order {own_value()}"

    id = vault.create(RequestOptions(correlation_id=trace)).id
    traces = [vault.last_header("bt-trace-id")]
    vault.tokens.get_by_id(id)
    traces.append(vault.last_header("bt-trace-id"))
    vault.tokens.delete(id)
    traces.append(vault.last_header("bt-trace-id"))

    assert traces == [trace] * 3


@pytest.mark.calls("RequestOptions")
def test_without_a_trace_id_each_answer_has_a_new_one(vault):
    id = vault.create().id
    first = vault.last_header("bt-trace-id")
    vault.tokens.get_by_id(id)

    assert UUID_V4.fullmatch(first)
    assert vault.last_header("bt-trace-id") != first


@pytest.mark.calls("RequestOptions")
def test_an_idempotency_key_that_is_kept_disturbs_no_later_call(vault):
    container = f"/conformance/{own_value()}/"
    others = Vault(PRIVATE_KEY)
    made = [others.create(containers=[container], data=f"value {n}").id for n in range(3)][::-1]

    created = vault.create(RequestOptions(idempotency_key=own_value()), data={"a": 1})
    assert "bt-idempotency-key" in vault.client.default_headers

    # The same key goes with all of these, and each is answered for itself.
    assert vault.tokens.get_by_id(created.id).data == {"a": 1}
    updated = vault.tokens.update(created.id, UpdateTokenRequest(data={"b": 2}))
    assert updated.id == created.id
    assert vault.tokens.get_by_id(created.id).data == {"a": 1, "b": 2}
    for id in made:
        assert vault.detokenize(body="{{ " + id + " }}").startswith("value ")
    found, start = [], {}
    while True:
        request = SearchTokensRequestV2(query=f"container:{container}", size=1, **start)
        page = vault.tokens.search_v2(request)
        found += ids(page)
        if "next" not in page.pagination:
            break
        start = {"start": page.pagination.next}
    assert found == made
    assert vault.tokens.delete(created.id) is None


@pytest.mark.calls("RequestOptions")
def test_a_key_given_for_one_call_is_used(browser):
    id = browser.create().id

    read = browser.tokens.get_by_id(id, request_options=RequestOptions(api_key=PRIVATE_KEY))

    assert read.data == "x"


@pytest.mark.calls("Configuration")
def test_the_answer_says_where_the_token_is(vault):
    token = vault.create()

    assert vault.client.last_response.status == 201
    assert vault.last_header("location") == f"{BASE_URL}/tokens/{token.id}"
    assert vault.last_header("content-type") == "application/json; charset=utf-8"
