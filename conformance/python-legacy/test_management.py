"""What the retired client knows of applications, keys, sessions, logs and tenants."""

import datetime as dt
import re

import pytest
from basistheory import ApiException
from basistheory.exceptions import ForbiddenException, NotFoundException
from basistheory.model.access_rule import AccessRule
from basistheory.model.authorize_session_request import AuthorizeSessionRequest
from basistheory.model.bank_verification_request import BankVerificationRequest
from basistheory.model.create_application_request import CreateApplicationRequest
from basistheory.model.create_tenant_invitation_request import CreateTenantInvitationRequest
from basistheory.model.update_application_request import UpdateApplicationRequest
from basistheory.model.update_tenant_request import UpdateTenantRequest

from vault import INVALID, TENANT_ID, UUID_V4, Vault, ids, own_value, refusal

NAME = "SDK Integration Tests"
RULE = {
    "description": "Read cards",
    "priority": 1,
    "container": "/pci/",
    "transform": "mask",
    "permissions": ["token:read"],
}


def is_from_now(moment: dt.datetime, **duration) -> bool:
    meant = dt.datetime.now(dt.timezone.utc) + dt.timedelta(**duration)
    return abs(moment - meant) < dt.timedelta(seconds=60)


@pytest.fixture
def make(management):
    def make(**changes):
        request = {"name": own_value(), "type": "private", "permissions": ["token:create"]}
        return management.applications.create(CreateApplicationRequest(**{**request, **changes}))

    return make


@pytest.mark.calls("applications.create")
def test_an_application_is_made_with_a_key_that_works(make, management):
    created = make(rules=[AccessRule(**RULE)])
    read = management.applications.get_by_id(created.id)
    token = Vault(created.key).create(type="card", data={"number": "4242424242424242"})

    assert UUID_V4.fullmatch(created.id)
    assert (created.tenant_id, created.type) == (TENANT_ID, "private")
    assert created.permissions == ["token:create"]
    assert created.rules[0].container == "/pci/"
    assert is_from_now(created.created_at)
    assert read.name == created.name
    assert "key" not in read
    assert token.created_by == created.id
    assert Vault(created.key).tokens.get_by_id(token.id).data["number"] == "XXXXXXXXXXXX4242"


@pytest.mark.calls("applications.create")
def test_an_end_is_kept(make):
    created = make(expires_at="2030-08-26T19:23:57Z")

    assert created.expires_at == dt.datetime(2030, 8, 26, 19, 23, 57, tzinfo=dt.timezone.utc)


@pytest.mark.calls("applications.create")
def test_what_is_invalid_is_named(make):
    problem = refusal(ApiException, 400, INVALID, make, permissions=["token:juggle"])

    assert list(problem["errors"]) == ["permissions"]


@pytest.mark.calls("applications.get")
def test_the_newest_application_comes_first(make, management):
    made = [make().id for _ in range(3)][::-1]

    found = management.applications.get(id=made)

    assert ids(found) == made
    assert found.pagination.total_items == 3
    assert ids(management.applications.get(id=made, page=2, size=2)) == made[2:]
    assert ids(management.applications.get(id=made, page=3, size=2)) == []


@pytest.mark.calls("applications.get_by_key")
def test_a_private_key_finds_its_own_application(vault):
    assert vault.applications.get_by_key().type == "private"


@pytest.mark.calls("applications.update")
def test_name_and_grants_are_replaced(make, management):
    id = make(rules=[AccessRule(**RULE)]).id

    change = UpdateApplicationRequest(name="Renamed", permissions=["token:use"])
    updated = management.applications.update(id, change)

    assert (updated.name, updated.permissions) == ("Renamed", ["token:use"])
    assert not updated.get("rules")
    assert is_from_now(updated.modified_at)


@pytest.mark.calls("applications.delete")
def test_an_application_is_gone(make, management):
    id = make().id

    assert management.applications.delete(id) is None

    refusal(NotFoundException, 404, "Not Found", management.applications.get_by_id, id)


@pytest.mark.calls("applications.regenerate_key")
def test_regenerating_a_key_is_gone_and_the_answer_says_what_to_do(make, management):
    regenerate = management.applications.regenerate_key

    problem = refusal(ApiException, 410, "Gone", regenerate, make().id)

    assert "/keys" in problem["detail"]


@pytest.mark.calls("application_keys.*")
def test_keys_come_and_go(make, management):
    application = make()
    keys = management.application_keys

    second = keys.create(application.id)
    listed = keys.get(application.id)
    read = keys.get_by_id(application.id, second.id)

    assert second.key != application.key
    assert {key.id for key in listed} == {application["keys"][0].id, second.id}
    assert read.id == second.id
    assert "key" not in read
    assert keys.delete(application.id, second.id) is None
    refusal(NotFoundException, 404, "Not Found", keys.get_by_id, application.id, second.id)


@pytest.mark.calls("applications.*")
def test_only_management_keys_administer(vault, browser):
    for key in (vault, browser):
        refusal(ForbiddenException, 403, "Forbidden", key.applications.get)
        refusal(ForbiddenException, 403, "Forbidden", key.logs.get)
        refusal(ForbiddenException, 403, "Forbidden", key.tenants.get)


@pytest.mark.calls("permissions.get")
def test_permissions_roles_and_templates_are_lists(management):
    permissions = {permission.type for permission in management.permissions.get()}
    roles = {role.name for role in management.roles.get()}
    templates = management.application_templates.get()

    assert {"token:create", "application:create"} < permissions
    assert roles == {"ADMIN", "OWNER", "READ_ONLY"}
    assert len(templates) == 10
    one = management.application_templates.get_by_id(templates[0].id)
    assert one.name == templates[0].name


@pytest.mark.calls("sessions.*")
def test_a_session_reads_what_it_was_allowed_to(vault, browser):
    token = browser.create(data="shown")
    session = browser.sessions.create()
    inside = Vault(session.session_key)
    refusal(ForbiddenException, 403, "Forbidden", inside.tokens.get_by_id, token.id)

    rule = {**RULE, "container": "/", "transform": "reveal"}
    request = AuthorizeSessionRequest(nonce=session.nonce, rules=[AccessRule(**rule)])
    assert vault.sessions.authorize(request) is None

    assert re.fullmatch(r"[1-9A-HJ-NP-Za-km-z]{22}", session.nonce)
    assert is_from_now(session.expires_at, minutes=3)
    assert inside.tokens.get_by_id(token.id).data == "shown"
    refusal(ApiException, 409, "Conflict", vault.sessions.authorize, request)


@pytest.mark.calls("logs.get")
def test_what_was_done_is_told_the_newest_first(vault, management):
    token = vault.create()
    vault.tokens.get_by_id(token.id)
    vault.tokens.delete(token.id)

    logs = management.logs.get(entity_type="token", entity_id=token.id)
    first = management.logs.get(entity_type="token", entity_id=token.id, size=2)
    rest = management.logs.get(
        entity_type="token", entity_id=token.id, size=2, start=first.pagination.next
    )

    assert [log.operation for log in logs.data] == ["delete", "read", "create"]
    assert {log.actor_id for log in logs.data} == {token.created_by}
    assert ids(first) + ids(rest) == ids(logs)
    assert "next" not in rest.pagination


@pytest.mark.calls("logs.get_entity_types")
def test_what_logs_are_about(management):
    values = {type.value for type in management.logs.get_entity_types()}

    assert {"token", "application", "tenant"} < values


@pytest.mark.calls("tenants.*")
def test_the_tenant_is_read_and_changed(vault, management):
    vault.create()

    tenant = management.tenants.get()
    settings = {"disable_ephemeral_proxy": "true"}
    updated = management.tenants.update(UpdateTenantRequest(name=NAME, settings=settings))
    report = management.tenants.get_tenant_usage_report()

    assert (tenant.id, tenant.name, tenant.type) == (TENANT_ID, NAME, "test")
    assert updated.settings["disable_ephemeral_proxy"] == "true"
    assert updated.settings["fingerprint_tokens"] == "true"
    assert report.token_report.total_tokens >= 1
    assert report.token_report.metrics_by_type["token"].count >= 1


@pytest.mark.calls("tenants.*_invitation")
def test_invitations_come_and_go(management):
    tenants = management.tenants
    email = f"{own_value()}@example.com"

    created = tenants.create_invitation(CreateTenantInvitationRequest(email=email))
    again = tenants.resend_invitation(created.id)
    listed = tenants.get_invitations()

    assert (created.email, created.role) == (email, "ADMIN")
    assert is_from_now(created.expires_at, hours=72)
    assert again.id == created.id
    assert created.id in ids(listed)
    assert tenants.delete_invitation(created.id) is None
    assert created.id not in ids(tenants.get_invitations())


@pytest.mark.calls("enrichments.bank_account_verify")
def test_the_test_account_is_enabled(vault):
    data = {"routing_number": "021000021", "account_number": "00001"}
    token = vault.create(type="bank", data=data)

    # The client expects no answer and returns none; it is left to be picked up.
    request = BankVerificationRequest(token_id=token.id)
    assert vault.enrichments.bank_account_verify(request) is None

    assert vault.last_body() == {"status": "enabled"}


@pytest.mark.calls("tenants.get_members")
def test_members_are_listed_and_one_is_the_owner(management):
    members = management.tenants.get_members()
    owner = management.tenants.owner_get()

    assert owner.role == "OWNER"
    assert owner.id in ids(members)
    assert owner.user.email
