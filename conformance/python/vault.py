"""The vault under test: where it is, what it adds to tokens, and how it refuses."""

import datetime as dt
import os
import re
import time
import uuid

import pytest
from basis_theory import BasisTheory
from basis_theory.core.api_error import ApiError

from methods import Noted, transport


def required(name: str) -> str:
    value = os.environ.get(name)
    if not value:
        raise RuntimeError(f"{name} is not set: see conformance/README.md")
    return value


BASE_URL = required("BT_API_URL")
TENANT_ID = required("BT_TENANT_ID")
PRIVATE_KEY = required("BT_PVT_API_KEY")
PUBLIC_KEY = required("BT_PUB_API_KEY")
MANAGEMENT_KEY = required("BT_MGT_API_KEY")
# Another tenant, in another vault, that nobody needs: it may be deleted.
SPARE_URL = required("BT_SPARE_API_URL")
SPARE_KEY = required("BT_SPARE_MGT_API_KEY")
# A vault that limits the rate of requests: 50 in 10 seconds.
LIMITED_URL = required("BT_LIMITED_API_URL")
LIMITED_KEY = required("BT_LIMITED_PVT_API_KEY")

UUID_V4 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
# Base58 of 32 bytes.
FINGERPRINT = re.compile(r"[1-9A-HJ-NP-Za-km-z]{32,44}")
INVALID = "One or more validation errors occurred."
# This client tries again after 409, seconds apart; one answer is enough to see it.
ONCE = {"max_retries": 0}

# What the vault says about an operation that it does not know at all.
NO_SUCH_PATH = "There is no such path."

CLOCK_TOLERANCE = dt.timedelta(seconds=60)
CACHE_TOLERANCE_SECONDS = 8


def client(api_key: str, base_url: str = BASE_URL, **options) -> BasisTheory:
    """A client for a key, whose calls count as tried."""
    options = {"base_url": base_url, "httpx_client": transport(), **options}
    return Noted(BasisTheory(api_key=api_key, **options))


def is_from_now(moment: dt.datetime, seconds: float) -> bool:
    """Whether a time is about that long from now."""
    meant = dt.datetime.now(dt.timezone.utc) + dt.timedelta(seconds=seconds)
    return abs(moment - meant) < CLOCK_TOLERANCE


def sent(answer) -> dict:
    """What an answer holds, without the attributes that only the client's model has."""
    return {name: getattr(answer, name) for name in answer.model_fields_set}


def eventually(ask):
    """What `ask` says once it no longer fails: a node remembers a key's rights for a few seconds."""
    deadline = time.monotonic() + CACHE_TOLERANCE_SECONDS
    while True:
        try:
            return ask()
        except (ApiError, AssertionError, pytest.fail.Exception):
            if time.monotonic() > deadline:
                raise
            time.sleep(0.25)


def given(token) -> dict:
    """Checks what the vault adds to a token by itself, and returns all the rest that was sent."""
    rest = sent(token)
    assert UUID_V4.fullmatch(rest.pop("id"))
    assert rest.pop("tenant_id") == TENANT_ID
    assert UUID_V4.fullmatch(rest.pop("created_by"))
    assert is_from_now(rest.pop("created_at"), seconds=0)
    # Both or neither: a fingerprint comes with the expression that made it.
    assert ("fingerprint" in rest) == ("fingerprint_expression" in rest)
    assert FINGERPRINT.fullmatch(rest.pop("fingerprint", "1" * 32))
    if "extras" in rest:
        rest["extras"] = rest["extras"].model_dump(exclude_unset=True)
    return rest


def card_basics(card) -> dict:
    """What a card shows of itself without BIN data; brand, funding and the rest depend on that."""
    names = ["bin", "last4", "expiration_month", "expiration_year"]
    return {name: getattr(card, name) for name in names if getattr(card, name) is not None}


def without_security_code(data: dict, sent="123") -> dict:
    """Card data apart from its security code, which is kept for an hour at most, and as text."""
    assert data.get("cvc") in (None, str(sent)), "another code than was sent"
    return {name: value for name, value in data.items() if name != "cvc"}


def own_container() -> str:
    """A container that no other test uses."""
    return f"/conformance/{uuid.uuid4()}/"


def ids(tokens) -> list:
    return [token.id for token in tokens]


def refusal(kind: type, status: int, title: str, call, *arguments, **named) -> ApiError:
    """The error that `call` ends with: of this very class, with a whole problem as its body."""
    with pytest.raises(ApiError) as caught:
        call(*arguments, **named)
    error = caught.value
    assert type(error) is kind, error
    assert error.status_code == status
    assert problem(error, "status") == status
    assert problem(error, "title") == title
    assert isinstance(problem(error, "detail"), str) and problem(error, "detail")
    assert problem(error, "detail") != NO_SUCH_PATH, "nobody is there to refuse it"
    assert error.headers["content-type"].startswith("application/problem+json")
    assert error.headers["bt-trace-id"]
    return error


def problem(error: ApiError, name: str):
    """A member of the body, which some errors hold as a model and some as a dictionary."""
    return error.body[name] if isinstance(error.body, dict) else getattr(error.body, name)
