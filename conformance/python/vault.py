"""The vault under test: where it is, what it adds to tokens, and how it refuses."""

import datetime as dt
import os
import re
import uuid

import pytest
from basis_theory import BasisTheory
from basis_theory.core.api_error import ApiError


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

UUID_V4 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
# Base58 of 32 bytes.
FINGERPRINT = re.compile(r"[1-9A-HJ-NP-Za-km-z]{32,44}")
INVALID = "One or more validation errors occurred."
# This client tries again after 409, seconds apart; one answer is enough to see it.
ONCE = {"max_retries": 0}

CLOCK_TOLERANCE = dt.timedelta(seconds=60)


def client(api_key: str, **options) -> BasisTheory:
    return BasisTheory(api_key=api_key, base_url=BASE_URL, **options)


def given(token) -> dict:
    """Checks what the vault adds to a token by itself, and returns all the rest that was sent."""
    rest = {name: getattr(token, name) for name in token.model_fields_set}
    assert UUID_V4.fullmatch(rest.pop("id"))
    assert rest.pop("tenant_id") == TENANT_ID
    assert UUID_V4.fullmatch(rest.pop("created_by"))
    assert abs(dt.datetime.now(dt.timezone.utc) - rest.pop("created_at")) < CLOCK_TOLERANCE
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
    assert error.headers["content-type"].startswith("application/problem+json")
    assert error.headers["bt-trace-id"]
    return error


def problem(error: ApiError, name: str):
    """A member of the body, which some errors hold as a model and some as a dictionary."""
    return error.body[name] if isinstance(error.body, dict) else getattr(error.body, name)
