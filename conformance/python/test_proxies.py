"""Pre-configured proxies: what is sent comes back, and only management keys see it."""

import re
import uuid

import pytest
from basis_theory import Application, BadRequestError, ForbiddenError, NotFoundError, ProxyTransform
from basis_theory.core.api_error import ApiError

from vault import INVALID, ONCE, TENANT_ID, UUID_V4, is_from_now, problem, refusal

DESTINATION = "https://api.example.com/v1"
FORBIDDEN = (ForbiddenError, 403, "Forbidden")
NOT_FOUND = (NotFoundError, 404, "Not Found")
MASK = {"type": "mask", "matcher": "regex", "expression": "([0-9]{12})[0-9]{4}", "replacement": "*"}


@pytest.fixture
def make(management):
    def make(**more):
        request = {"name": f"Conformance {uuid.uuid4()}", "destination_url": DESTINATION, **more}
        return management.proxies.create(**request)

    return make


@pytest.mark.calls("proxies.create")
def test_the_answer_holds_the_key_and_a_read_is_the_same(management, make):
    transform = ProxyTransform(**MASK)
    created = make(configuration={"API_KEY": "sk_1"}, require_auth=False, response_transform=transform)
    read = management.proxies.get(created.id)

    assert UUID_V4.fullmatch(created.id)
    assert re.fullmatch(r"[A-Za-z0-9]{22,100}", created.key)
    assert is_from_now(created.created_at, seconds=0)
    assert (created.tenant_id, created.state) == (TENANT_ID, "active")
    assert created.configuration == {"API_KEY": "sk_1"}
    assert created.response_transform.expression == MASK["expression"]
    assert created.require_auth is False
    assert read == created


@pytest.mark.calls("proxies.create")
def test_transforms_and_their_application(management, make):
    application = management.applications.create(
        name="Transforms", type="private", permissions=["token:create"]
    )
    token = {"type": "card", "data": "{{ res.card }}"}
    transforms = [ProxyTransform(type="tokenize", options={"identifier": "card", "token": token})]

    created = make(application=Application(id=application.id), response_transforms=transforms)

    assert created.application_id == application.id
    assert [transform.type for transform in created.response_transforms] == ["tokenize"]


@pytest.mark.calls("proxies.create")
def test_an_invalid_one_is_refused(management):
    request = {"name": "", "destination_url": "http://10.0.0.1"}

    error = refusal(BadRequestError, 400, INVALID, management.proxies.create, **request)

    assert sorted(error.body.errors) == ["destination_url", "name"]


@pytest.mark.calls("proxies.create")
def test_code_is_not_built(management):
    transform = ProxyTransform(type="code", code="module.exports = 1")
    with pytest.raises(ApiError) as caught:
        management.proxies.create(
            name="Code", destination_url=DESTINATION, request_transform=transform, request_options=ONCE
        )

    assert caught.value.status_code == 501
    assert problem(caught.value, "code") == "not_built"


@pytest.mark.calls("proxies.list")
def test_by_id_and_by_name(management, make):
    first = make()
    second = make(name=f"Wildcard {uuid.uuid4()}")

    assert [proxy.id for proxy in management.proxies.list(id=first.id)] == [first.id]
    by_name = [proxy.id for proxy in management.proxies.list(name="wildcard")]
    assert second.id in by_name
    assert first.id not in by_name


@pytest.mark.calls("proxies.update")
def test_replaces_all_but_the_key(management, make):
    proxy = make(configuration={"A": "1"}, require_auth=False)

    changed = management.proxies.update(proxy.id, name="Changed", destination_url=DESTINATION)

    assert (changed.name, changed.configuration, changed.require_auth) == ("Changed", None, True)
    assert changed.key == proxy.key
    assert is_from_now(changed.modified_at, seconds=0)


@pytest.mark.calls("proxies.patch")
def test_changes_what_it_names(management, make):
    proxy = make(configuration={"A": "1"})

    assert management.proxies.patch(proxy.id, name="Patched") is None

    read = management.proxies.get(proxy.id)
    assert (read.name, read.configuration) == ("Patched", {"A": "1"})


@pytest.mark.calls("proxies.delete")
def test_it_is_gone(management, make):
    id = make().id

    assert management.proxies.delete(id) is None

    refusal(*NOT_FOUND, management.proxies.get, id)


@pytest.mark.calls("proxies.get")
def test_an_unknown_one_is_not_found(management):
    refusal(*NOT_FOUND, management.proxies.get, str(uuid.uuid4()))


@pytest.mark.calls("proxies.*")
def test_only_management_keys_make_and_see_them(vault, browser):
    id = str(uuid.uuid4())
    for key in (vault, browser):
        refusal(*FORBIDDEN, key.proxies.create, name="Mine", destination_url=DESTINATION)
        refusal(*FORBIDDEN, key.proxies.get, id)
        refusal(*FORBIDDEN, key.proxies.update, id, name="Mine", destination_url=DESTINATION)
        refusal(*FORBIDDEN, key.proxies.delete, id)
