"""What holds for every request: where it goes, and which headers come back."""

import uuid

import pytest
from basis_theory import BasisTheory, NotFoundError

from vault import BASE_URL, PRIVATE_KEY, UUID_V4, client, refusal


@pytest.mark.calls("BasisTheory")
@pytest.mark.parametrize(
    "base_url",
    [BASE_URL, f"{BASE_URL}/"],
    ids=["base_url", "base_url with a slash at its end"],
)
def test_pointed_at_the_vault(base_url):
    vault = BasisTheory(api_key=PRIVATE_KEY, base_url=base_url)

    created = vault.tokens.create(type="token", data="x")
    read = vault.tokens.get(created.id)

    assert read.data == "x"


@pytest.mark.calls("webhooks.ping")
def test_the_vault_answers(vault):
    answer = vault.webhooks.with_raw_response.ping()

    assert answer.data is None
    assert answer.status_code == 200


@pytest.mark.calls("tokens.create")
def test_the_answer_is_a_201_that_says_where_the_token_is(vault):
    answer = vault.tokens.with_raw_response.create(type="token", data="x")

    assert answer.status_code == 201
    assert answer.headers["location"] == f"{BASE_URL}/tokens/{answer.data.id}"
    assert answer.headers["content-type"] == "application/json; charset=utf-8"


@pytest.mark.calls("tokens.*")
def test_the_correlation_id_of_the_client_comes_back_on_errors_too():
    correlation_id = f"order {uuid.uuid4()}"
    vault = client(PRIVATE_KEY, correlation_id=correlation_id)

    created = vault.tokens.with_raw_response.create(type="token", data="x")
    read = vault.tokens.with_raw_response.get(created.data.id)
    deleted = vault.tokens.with_raw_response.delete(created.data.id)
    missing = refusal(NotFoundError, 404, "Not Found", vault.tokens.get, created.data.id)

    for answer in (created, read, deleted, missing):
        assert answer.headers["bt-trace-id"] == correlation_id


@pytest.mark.calls("tokens.get")
def test_without_a_correlation_id_each_answer_has_a_new_one(vault):
    id = vault.tokens.create(type="token", data="x").id

    traces = [vault.tokens.with_raw_response.get(id).headers["bt-trace-id"] for _ in range(2)]

    assert all(UUID_V4.fullmatch(trace) for trace in traces)
    assert traces[0] != traces[1]


@pytest.mark.calls("tokens.get")
def test_a_correlation_id_that_is_too_long_is_replaced(vault):
    id = vault.tokens.create(type="token", data="x").id
    longest = client(PRIVATE_KEY, correlation_id="t" * 200)
    longer = client(PRIVATE_KEY, correlation_id="t" * 201)

    kept = longest.tokens.with_raw_response.get(id).headers["bt-trace-id"]
    replaced = longer.tokens.with_raw_response.get(id).headers["bt-trace-id"]

    assert kept == "t" * 200
    assert UUID_V4.fullmatch(replaced)
