"""Logs: who did what to what, and when."""

import datetime as dt
import uuid

import pytest
from basis_theory import ForbiddenError
from basis_theory.core.api_error import ApiError

from vault import TENANT_ID, UUID_V4, ids, is_from_now, refusal

FORBIDDEN = (ForbiddenError, 403, "Forbidden")


def told(logs) -> list:
    return [(log.operation, log.message) for log in logs]


@pytest.mark.calls("logs.list")
def test_a_tokens_life_is_told_the_newest_first(vault, management):
    token = vault.tokens.create(type="token", data="secret value")
    vault.tokens.get(token.id)
    vault.tokens.update(token.id, data="another secret")
    vault.tokens.delete(token.id)

    logs = list(management.logs.list(entity_type="token", entity_id=token.id))

    assert told(logs) == [
        ("delete", "Token deleted"),
        ("update", "Token updated"),
        ("read", "Token retrieved"),
        ("create", "Token created"),
    ]
    for log in logs:
        assert UUID_V4.fullmatch(log.id)
        assert log.tenant_id == TENANT_ID
        assert (log.actor_type, log.actor_id) == ("application", token.created_by)
        assert (log.entity_type, log.entity_id) == ("token", token.id)
        assert is_from_now(log.created_at, seconds=0)
        assert "secret" not in log.model_dump_json()


@pytest.mark.calls("logs.list")
def test_an_applications_life_is_told(management):
    grants = {"permissions": ["token:use"]}
    id = management.applications.create(name="Logged", type="private", **grants).id
    management.applications.update(id, name="Renamed", **grants)
    management.applications.delete(id)

    logs = management.logs.list(entity_type="application", entity_id=id)

    operations = [log.operation for log in logs if log.operation != "read"]
    assert operations == ["delete", "update", "create"]


@pytest.mark.calls("logs.list")
def test_what_failed_is_not_told(vault, management):
    id = str(uuid.uuid4())
    with pytest.raises(ApiError):
        vault.tokens.get(id)

    assert list(management.logs.list(entity_id=id)) == []


@pytest.mark.calls("logs.list")
def test_pages_are_full_differ_and_end(vault, management):
    id = vault.tokens.create(type="token", data="x").id
    for _ in range(4):
        vault.tokens.get(id)

    page = management.logs.list(entity_type="token", entity_id=id, size=2)

    assert len(page.items) == 2
    found = ids(page)
    assert (len(found), len(set(found))) == (5, 5)


@pytest.mark.calls("logs.list")
def test_between_two_times(vault, management):
    id = vault.tokens.create(type="token", data="x").id
    now, hour = dt.datetime.now(dt.timezone.utc), dt.timedelta(hours=1)

    def count(**dates):
        return len(ids(management.logs.list(entity_id=id, **dates)))

    assert count(start_date=now - hour, end_date=now + hour) == 1
    assert count(start_date=now - hour) == 1
    assert count(end_date=now + hour) == 1
    assert count(start_date=now + hour) == 0
    assert count(end_date=now - hour) == 0


@pytest.mark.calls("logs.list")
def test_tokens_of_one_type(vault, management):
    id = vault.tokens.create(type="card", data={"number": "4242424242424242"}).id

    assert told(management.logs.list(entity_type="card", entity_id=id)) == [
        ("create", "Token created")
    ]
    assert told(management.logs.list(entity_type="bank", entity_id=id)) == []


@pytest.mark.calls("logs.list")
def test_only_for_those_who_may_read_logs(vault, browser):
    refusal(*FORBIDDEN, vault.logs.list)
    refusal(*FORBIDDEN, browser.logs.list)
    refusal(*FORBIDDEN, vault.logs.get_entity_types)


@pytest.mark.calls("logs.get_entity_types")
def test_what_logs_are_about_with_names_for_people(management):
    types = management.logs.get_entity_types()

    names = [type.display_name for type in types]
    expected = {"application", "bank", "card", "session", "tenant", "token", "token_intent"}
    assert expected <= {type.value for type in types}
    assert all(names)
    assert names == sorted(names)
