"""Client encryption keys: made by management. What is encrypted to them, the Node suite tries."""

import datetime as dt
import re
import uuid

import pytest
from basis_theory import BadRequestError, ForbiddenError, NotFoundError

from vault import INVALID, UUID_V4, is_from_now, refusal

YEAR = 365 * 24 * 3_600
PEM = re.compile(
    r"-----BEGIN PUBLIC KEY-----\n[A-Za-z0-9+/]{43}=\n-----END PUBLIC KEY-----\s*"
)
FORBIDDEN = (ForbiddenError, 403, "Forbidden")
NOT_FOUND = (NotFoundError, 404, "Not Found")


def from_now(seconds: float) -> dt.datetime:
    return dt.datetime.now(dt.timezone.utc) + dt.timedelta(seconds=seconds)


@pytest.mark.calls("keys.create")
def test_90_days_and_32_bytes_that_are_shown_this_once(management):
    key = management.keys.create()
    read = management.keys.get(key.key_id)

    assert UUID_V4.fullmatch(key.key_id)
    assert PEM.fullmatch(key.public_key_pem)
    assert is_from_now(key.expires_at, seconds=90 * 24 * 3_600)
    assert (read.key_id, read.expires_at) == (key.key_id, key.expires_at)
    assert "PUBLIC KEY" not in read.model_dump_json()


@pytest.mark.calls("keys.create")
def test_ends_when_asked_within_a_year(management):
    key = management.keys.create(expires_at=from_now(3_600))

    assert is_from_now(key.expires_at, seconds=3_600)
    late = {"expires_at": from_now(2 * YEAR)}
    error = refusal(BadRequestError, 400, INVALID, management.keys.create, **late)
    assert list(error.body.errors) == ["expires_at"]


@pytest.mark.calls("keys.list")
def test_all_keys_without_what_is_public_of_them(management):
    made = {management.keys.create().key_id for _ in range(2)}

    keys = management.keys.list()

    assert made <= {key.key_id for key in keys}
    assert not any("PUBLIC KEY" in key.model_dump_json() for key in keys)


@pytest.mark.calls("keys.delete")
def test_it_is_gone(management):
    id = management.keys.create().key_id

    assert management.keys.delete(id) is None

    refusal(*NOT_FOUND, management.keys.get, id)
    refusal(*NOT_FOUND, management.keys.delete, id)


@pytest.mark.calls("keys.*")
def test_only_management_keys_make_and_see_them(vault, browser):
    for key in (vault, browser):
        refusal(*FORBIDDEN, key.keys.create)
        refusal(*FORBIDDEN, key.keys.list)
        refusal(*FORBIDDEN, key.keys.get, str(uuid.uuid4()))
        refusal(*FORBIDDEN, key.keys.delete, str(uuid.uuid4()))


@pytest.mark.calls("tokens.create")
def test_what_is_no_encrypted_text_is_named(vault):
    request = {"type": "card", "encrypted": "a.b.c.d.e"}

    error = refusal(BadRequestError, 400, INVALID, vault.tokens.create, **request)

    assert list(error.body.errors) == ["encrypted"]
