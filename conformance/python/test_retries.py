"""What the client does by itself when it is told to wait."""

import time
import uuid
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from basis_theory import BasisTheory

from vault import BASE_URL, LIMITED_KEY, LIMITED_URL, PRIVATE_KEY

LIMIT = 50
WINDOW = 10
# Enough that the first of several requests takes a while.
LARGE = "x" * 300_000


def listening(base_url: str, api_key: str, statuses: list[int]) -> BasisTheory:
    """A client that tells every answer which reaches it."""
    hooks = {"response": [lambda response: statuses.append(response.status_code)]}
    return BasisTheory(
        api_key=api_key,
        base_url=base_url,
        httpx_client=httpx.Client(event_hooks=hooks, timeout=60),
    )


def use_up():
    """More requests at once than the limit lets in, however slow the machine is; they cost little."""

    def ask(_):
        url = f"{LIMITED_URL}/tokens/{uuid.uuid4()}"
        return httpx.get(url, headers={"BT-API-KEY": LIMITED_KEY}, timeout=60)

    with ThreadPoolExecutor(LIMIT + 10) as pool:
        list(pool.map(ask, range(LIMIT + 10)))


@pytest.mark.calls("tokens.create")
def test_a_limit_that_is_reached_is_waited_for():
    statuses: list[int] = []
    slowed = listening(LIMITED_URL, LIMITED_KEY, statuses)
    # On a busy machine the limit may have room again before the client asks.
    for _ in range(5):
        use_up()
        statuses.clear()
        started_at = time.monotonic()

        created = slowed.tokens.create(type="token", data="one more")

        waited = time.monotonic() - started_at
        assert created.id
        if statuses[0] == 429:
            break
    assert statuses == [429, 201]
    assert 0.5 < waited < WINDOW + 5


@pytest.mark.calls("tokens.create")
def test_a_conflict_of_an_idempotency_key_is_waited_for():
    statuses: list[int] = []
    vault = listening(BASE_URL, PRIVATE_KEY, statuses)
    for _ in range(5):
        key = str(uuid.uuid4())

        def create(_, key=key):
            return vault.tokens.create(type="token", data=LARGE, idempotency_key=key).id

        with ThreadPoolExecutor(20) as pool:
            ids = set(pool.map(create, range(20)))
        assert len(ids) == 1
        if 409 in statuses:
            break
    assert set(statuses) == {201, 409}
