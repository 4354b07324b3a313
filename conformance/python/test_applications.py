"""Applications and their keys: what may be granted to them, and what their keys can then do."""

import re
import uuid

import pytest
from basis_theory import (
    AccessRule,
    BadRequestError,
    ForbiddenError,
    NotFoundError,
    UnauthorizedError,
    UnprocessableEntityError,
)
from basis_theory.core.api_error import ApiError

from vault import (
    INVALID,
    TENANT_ID,
    UUID_V4,
    client,
    eventually,
    ids,
    is_from_now,
    problem,
    refusal,
    sent,
)

PRIVATE_KEY = re.compile(r"key_test_us_pvt_[1-9A-HJ-NP-Za-km-z]{20,22}\.[0-9a-f]{32}")
CARD = {"type": "card", "data": {"number": "4242424242424242"}}
FORBIDDEN = (ForbiddenError, 403, "Forbidden")
NOT_FOUND = (NotFoundError, 404, "Not Found")
UNAUTHORIZED = (UnauthorizedError, 401, "Unauthorized")


def rule(**changes) -> AccessRule:
    attributes = {
        "description": "Read cards",
        "priority": 1,
        "container": "/pci/",
        "transform": "mask",
        "permissions": ["token:read", "token:search"],
    }
    return AccessRule(**{**attributes, **changes})


@pytest.fixture(scope="module")
def make(management):
    def make(**changes):
        name = f"Conformance {uuid.uuid4()}"
        request = {"name": name, "type": "private", "permissions": ["token:create"], **changes}
        return management.applications.create(**request)

    return make


@pytest.mark.calls("applications.create")
def test_the_answer_holds_the_grants_and_the_key_this_once(make, management):
    created = make(permissions=["token:create", "token:read"], rules=[rule()])
    read = management.applications.get(created.id)

    assert UUID_V4.fullmatch(created.id)
    assert PRIVATE_KEY.fullmatch(created.key)
    assert UUID_V4.fullmatch(created.created_by)
    assert is_from_now(created.created_at, seconds=0)
    assert (created.tenant_id, created.type) == (TENANT_ID, "private")
    assert created.permissions == ["token:create", "token:read"]
    assert [sent(one) for one in created.rules] == [sent(rule())]
    assert [key.key for key in created.keys] == [created.key]
    assert read.key is None
    assert [(key.id, key.key) for key in read.keys] == [(created.keys[0].id, None)]
    rest = {name: value for name, value in sent(created).items() if name not in ("key", "keys")}
    assert {name: value for name, value in sent(read).items() if name != "keys"} == rest


@pytest.mark.calls("applications.create")
def test_the_key_does_what_the_application_may_and_no_more(make):
    application = make(rules=[rule()])
    made = client(application.key)

    card = made.tokens.create(**CARD)
    read = made.tokens.get(card.id)
    other = made.tokens.create(type="token", data="x")

    assert card.created_by == application.id
    assert read.data["number"] == "XXXXXXXXXXXX4242"
    refusal(*FORBIDDEN, made.tokens.get, other.id)
    refusal(*FORBIDDEN, made.tokens.delete, card.id)


@pytest.mark.calls("applications.create")
def test_without_a_key_there_is_none(make, management):
    created = make(create_key=False)

    assert created.key is None
    assert not created.keys
    assert management.application_keys.list(created.id) == []


@pytest.mark.calls("applications.create")
@pytest.mark.parametrize(
    ("kind", "permission", "mark"),
    [
        ("private", "token:read", "pvt"),
        ("public", "token:create", "pub"),
        ("management", "application:read", "mgt"),
    ],
)
def test_the_key_tells_its_type(make, kind, permission, mark):
    assert make(type=kind, permissions=[permission]).key.startswith(f"key_test_us_{mark}_")


INVALID_APPLICATIONS = {
    "no name": ({"name": ""}, ["name"]),
    "an unknown type": ({"type": "expiring"}, ["type"]),
    "an unknown permission": ({"permissions": ["token:juggle"]}, ["permissions"]),
    "a permission of a retired kind": ({"permissions": ["token:pci:read:high"]}, ["permissions"]),
    "a permission of another type": ({"permissions": ["application:read"]}, ["permissions"]),
    "neither permissions nor rules": ({"permissions": []}, ["permissions"]),
    "a rule without slashes": ({"rules": [rule(container="pci")]}, ["rules[0].container"]),
    "a rule with an unknown transform": (
        {"rules": [rule(transform="blur")]},
        ["rules[0].transform"],
    ),
    "a rule that grants nothing": ({"rules": [rule(permissions=[])]}, ["rules[0].permissions"]),
    "a rule of priority zero": ({"rules": [rule(priority=0)]}, ["rules[0].priority"]),
    "two rules of one priority": ({"rules": [rule(), rule()]}, ["rules[1].priority"]),
    "a management application with rules": (
        {"type": "management", "permissions": ["application:read"], "rules": [rule()]},
        ["rules"],
    ),
}


@pytest.mark.calls("applications.create")
@pytest.mark.parametrize(
    ("changes", "attributes"), INVALID_APPLICATIONS.values(), ids=INVALID_APPLICATIONS.keys()
)
def test_what_is_invalid_is_named(make, changes, attributes):
    error = refusal(BadRequestError, 400, INVALID, make, **changes)

    assert list(error.body.errors) == attributes


@pytest.mark.calls("applications.list")
def test_the_newest_comes_first_and_pages_end(make, management):
    made = [make().id for _ in range(3)][::-1]

    found = ids(management.applications.list(size=2))

    assert len(set(found)) == len(found)
    assert [id for id in found if id in made] == made


@pytest.mark.calls("applications.list")
def test_by_id_and_by_type(make, management):
    public, private = make(type="public").id, make().id
    asked = [public, private]

    page = management.applications.list(id=asked, size=1)

    assert ids(management.applications.list(id=asked)) == [private, public]
    assert ids(management.applications.list(id=asked, type="public")) == [public]
    told = page.response.pagination
    assert (told.total_items, told.page_number, told.page_size, told.total_pages) == (2, 1, 1, 2)


@pytest.mark.calls("applications.get")
def test_an_unknown_application_is_not_found(management):
    refusal(*NOT_FOUND, management.applications.get, str(uuid.uuid4()))


@pytest.mark.calls("applications.get_by_key")
def test_every_key_finds_its_own_application(make, vault, browser, management):
    application = make()

    own = client(application.key).applications.get_by_key()

    assert (own.id, own.name, own.key) == (application.id, application.name, None)
    assert vault.applications.get_by_key().type == "private"
    assert browser.applications.get_by_key().type == "public"
    assert management.applications.get_by_key().type == "management"


@pytest.mark.calls("applications.update")
def test_name_and_grants_are_replaced_and_the_key_follows(make, management):
    application = make(rules=[rule()])
    made = client(application.key)
    token = made.tokens.create(type="token", data="x")
    refusal(*FORBIDDEN, made.tokens.get, token.id)

    change = {"name": "Renamed", "permissions": ["token:read", "token:delete"]}
    updated = management.applications.update(application.id, **change)

    assert (updated.id, updated.name, updated.type) == (application.id, "Renamed", "private")
    assert updated.permissions == ["token:read", "token:delete"]
    assert not updated.rules
    assert updated.created_at == application.created_at
    assert is_from_now(updated.modified_at, seconds=0)
    assert UUID_V4.fullmatch(updated.modified_by)
    assert eventually(lambda: made.tokens.get(token.id)).id == token.id
    eventually(lambda: refusal(*FORBIDDEN, made.tokens.create, type="token", data="x"))


@pytest.mark.calls("applications.update")
def test_an_invalid_change_is_named_and_changes_nothing(make, management):
    application = make()
    update = management.applications.update
    change = {"name": "x", "permissions": ["log:read"]}

    error = refusal(BadRequestError, 400, INVALID, update, application.id, **change)

    assert list(error.body.errors) == ["permissions"]
    assert management.applications.get(application.id).name == application.name
    missing = {"name": "x", "permissions": ["token:use"]}
    refusal(*NOT_FOUND, update, str(uuid.uuid4()), **missing)


@pytest.mark.calls("applications.delete")
def test_its_keys_end_with_it_and_its_tokens_stay(make, vault, management):
    application = make()
    made = client(application.key)
    token = made.tokens.create(type="token", data="kept")

    assert management.applications.delete(application.id) is None

    refusal(*NOT_FOUND, management.applications.get, application.id)
    eventually(lambda: refusal(*UNAUTHORIZED, made.applications.get_by_key))
    assert vault.tokens.get(token.id).data == "kept"
    refusal(*NOT_FOUND, management.applications.delete, application.id)


@pytest.mark.calls("applications.*")
@pytest.mark.parametrize("kind", ["vault", "browser"])
def test_only_management_keys_administer(make, request, kind):
    key, id = request.getfixturevalue(kind), make().id
    new = {"name": "x", "type": "private", "permissions": ["token:use"]}

    refusal(*FORBIDDEN, key.applications.get, id)
    refusal(*FORBIDDEN, key.applications.list)
    refusal(*FORBIDDEN, key.applications.delete, id)
    refusal(*FORBIDDEN, key.applications.create, **new)
    refusal(*FORBIDDEN, key.application_keys.create, id)


@pytest.mark.calls("application_keys.create")
def test_a_second_key_works_beside_the_first_and_is_shown_this_once(make, management):
    application = make()

    second = management.application_keys.create(application.id)
    read = management.application_keys.get(application.id, second.id)

    assert UUID_V4.fullmatch(second.id)
    assert PRIVATE_KEY.fullmatch(second.key)
    assert second.key != application.key
    assert second.version == "2"
    assert is_from_now(second.created_at, seconds=0)
    assert (read.id, read.key) == (second.id, None)
    for key in (application.key, second.key):
        assert client(key).applications.get_by_key().id == application.id
    listed = management.applications.get(application.id).keys
    assert set(ids(listed)) == {application.keys[0].id, second.id}


@pytest.mark.calls("application_keys.create")
def test_there_are_three_at_most(make, management):
    id = make().id
    management.application_keys.create(id)
    management.application_keys.create(id)

    create = management.application_keys.create
    refusal(UnprocessableEntityError, 422, "Unprocessable Entity", create, id)

    assert len(management.application_keys.list(id)) == 3


@pytest.mark.calls("application_keys.list")
def test_all_or_those_asked_for_without_the_secrets(make, management):
    application = make()
    second = management.application_keys.create(application.id)

    found = management.application_keys.list(application.id)

    assert set(ids(found)) == {application.keys[0].id, second.id}
    assert all(key.key is None for key in found)
    assert ids(management.application_keys.list(application.id, key_id=second.id)) == [second.id]


@pytest.mark.calls("application_keys.delete")
def test_that_key_ends_and_the_others_go_on(make, management):
    application = make()
    second = management.application_keys.create(application.id)
    first = application.keys[0].id

    assert management.application_keys.delete(application.id, first) is None

    refusal(*NOT_FOUND, management.application_keys.get, application.id, first)
    ended = client(application.key).applications
    eventually(lambda: refusal(*UNAUTHORIZED, ended.get_by_key))
    assert client(second.key).applications.get_by_key().id == application.id


@pytest.mark.calls("application_keys.*")
def test_keys_of_an_unknown_application_are_not_found(management):
    id, keys = str(uuid.uuid4()), management.application_keys

    # The client has no class of its own for this one.
    refusal(ApiError, 404, "Not Found", keys.create, id)
    refusal(*NOT_FOUND, keys.list, id)
    refusal(*NOT_FOUND, keys.get, id, id)
    refusal(*NOT_FOUND, keys.delete, id, id)


@pytest.mark.calls("permissions.list")
def test_all_permissions_and_those_of_one_type(management, browser):
    found = {one.type: one for one in management.permissions.list()}
    public = {one.type for one in browser.permissions.list(application_type="public")}

    assert sorted(found["token:create"].application_types) == ["private", "public"]
    assert found["token:create"].description
    assert "application:create" in found
    assert "token:create" in public
    assert "token:read" not in public


@pytest.mark.calls("permissions.list")
def test_an_unknown_type_is_refused(vault):
    list_ = vault.permissions.list
    error = refusal(BadRequestError, 400, INVALID, list_, application_type="expiring")

    assert list(problem(error, "errors")) == ["application_type"]


@pytest.mark.calls("roles.list")
def test_the_three_roles_of_members(management):
    roles = {role.name for role in management.roles.list()}

    assert roles == {"ADMIN", "OWNER", "READ_ONLY"}


@pytest.mark.calls("application_templates.list")
def test_the_ten_published_templates(management):
    names = [template.name for template in management.application_templates.list()]

    assert len(names) == 10
    assert {"Collect PCI Data", "Full Management Access"} < set(names)


@pytest.mark.calls("application_templates.get")
def test_a_template_makes_an_application(management):
    template = management.application_templates.get("db9148c1-a55f-4164-b830-a20ab6d720ae")

    application = management.applications.create(
        name="From a template",
        type=template.application_type,
        permissions=template.permissions,
        rules=template.rules,
    )
    card = client(application.key).tokens.create(**CARD)

    assert (template.name, template.template_type) == ("Collect PCI Data", "payments")
    assert template.is_starter is False
    assert template.rules[0].container == "/pci/"
    assert card.data["number"] == "XXXXXXXXXXXX4242"
    refusal(*NOT_FOUND, management.application_templates.get, str(uuid.uuid4()))
