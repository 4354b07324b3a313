"""The tenant itself: its name and settings, its people, who is invited, and its end."""

import uuid

import pytest
from basis_theory import (
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
    eventually,
    ids,
    is_from_now,
    refusal,
    sent,
)

NAME = "SDK Integration Tests"
THREE_DAYS = 72 * 3_600
FORBIDDEN = (ForbiddenError, 403, "Forbidden")
NOT_FOUND = (NotFoundError, 404, "Not Found")
UNPROCESSABLE = (UnprocessableEntityError, 422, "Unprocessable Entity")


def own_email() -> str:
    return f"{uuid.uuid4()}@example.com"


@pytest.fixture(scope="module")
def tenants(management):
    return management.tenants


@pytest.mark.calls("tenants.self_.get")
def test_name_type_and_settings(tenants):
    tenant = tenants.self_.get()

    assert (tenant.id, tenant.name, tenant.type) == (TENANT_ID, NAME, "test")
    assert tenant.created_at
    assert tenant.settings["deduplicate_tokens"] == "false"
    assert tenant.settings["fingerprint_tokens"] == "true"
    assert tenant.settings["token_deduplication_behavior"] == "read_existing"


@pytest.mark.calls("tenants.self_.update")
def test_given_settings_change_and_the_others_stay(tenants):
    before = tenants.self_.get().settings

    changed = tenants.self_.update(name=NAME, settings={"disable_ephemeral_proxy": "true"})
    kept = tenants.self_.update(name=NAME)

    settings = {**before, "disable_ephemeral_proxy": "true"}
    assert changed.settings == kept.settings == settings
    assert kept.name == NAME
    assert is_from_now(kept.modified_at, seconds=0)
    assert UUID_V4.fullmatch(kept.modified_by)


INVALID_TENANTS = {
    "no name": {"name": ""},
    "an unknown setting": {"name": NAME, "settings": {"gravity": "off"}},
    "a setting with a wrong value": {"name": NAME, "settings": {"deduplicate_tokens": "maybe"}},
}


@pytest.mark.calls("tenants.self_.update")
@pytest.mark.parametrize("change", INVALID_TENANTS.values(), ids=INVALID_TENANTS.keys())
def test_what_is_invalid_is_named(tenants, change):
    error = refusal(BadRequestError, 400, INVALID, tenants.self_.update, **change)

    assert len(error.body.errors) == 1


@pytest.mark.calls("tenants.self_.delete")
def test_a_tenant_is_renamed_deleted_and_its_keys_end_with_it(spare):
    tenant = spare.tenants.self_

    assert tenant.update(name="About to go").name == "About to go"
    assert tenant.get().name == "About to go"
    assert tenant.delete() is None

    eventually(lambda: refusal(UnauthorizedError, 401, "Unauthorized", tenant.get))


@pytest.mark.calls("tenants.self_.get_usage_reports")
def test_tokens_are_counted(vault, tenants):
    data = {"routing_number": "021000021", "account_number": "1"}
    vault.tokens.create(type="bank", data=data)

    report = tenants.self_.get_usage_reports()

    assert report.total_tokens >= 1
    # What the documentation has, and this version of the client does not know.
    assert report.token_report["total_tokens"] == report.total_tokens
    assert report.token_report["metrics_by_type"]["bank"]["count"] >= 1


@pytest.mark.calls("tenants.self_.*")
@pytest.mark.parametrize("kind", ["vault", "browser"])
def test_only_for_those_who_may(request, kind):
    key = request.getfixturevalue(kind)

    refusal(*FORBIDDEN, key.tenants.self_.get)
    refusal(*FORBIDDEN, key.tenants.self_.update, name="x")
    refusal(*FORBIDDEN, key.tenants.self_.delete)
    refusal(*FORBIDDEN, key.tenants.self_.get_usage_reports)
    refusal(*FORBIDDEN, key.tenants.members.list)
    refusal(*FORBIDDEN, key.tenants.invitations.list)


@pytest.mark.calls("tenants.invitations.create")
def test_pending_for_three_days(tenants):
    email = own_email()

    created = tenants.invitations.create(email=email)
    read = tenants.invitations.get(created.id)

    rest = sent(created)
    assert UUID_V4.fullmatch(rest.pop("id"))
    assert UUID_V4.fullmatch(rest.pop("created_by"))
    assert is_from_now(rest.pop("created_at"), seconds=0)
    assert is_from_now(rest.pop("expires_at"), seconds=THREE_DAYS)
    assert rest == {"tenant_id": TENANT_ID, "email": email, "role": "ADMIN", "status": "PENDING"}
    assert sent(read) == sent(created)


@pytest.mark.calls("tenants.invitations.create")
def test_with_another_role(tenants):
    invitation = tenants.invitations.create(email=own_email(), role="READ_ONLY")

    assert invitation.role == "READ_ONLY"


INVALID_INVITATIONS = {
    "no address": ({"email": "nobody"}, ["email"]),
    "an unknown role": ({"email": "a@example.com", "role": "KING"}, ["role"]),
}


@pytest.mark.calls("tenants.invitations.create")
@pytest.mark.parametrize(
    ("body", "attributes"), INVALID_INVITATIONS.values(), ids=INVALID_INVITATIONS.keys()
)
def test_what_is_invalid_in_an_invitation_is_named(tenants, body, attributes):
    error = refusal(BadRequestError, 400, INVALID, tenants.invitations.create, **body)

    assert list(error.body.errors) == attributes


@pytest.mark.calls("tenants.invitations.list")
def test_by_status_page_after_page(tenants):
    made = {tenants.invitations.create(email=own_email()).id for _ in range(3)}

    pending = ids(tenants.invitations.list(status="PENDING", size=2))

    assert len(set(pending)) == len(pending)
    assert made <= set(pending)
    assert ids(tenants.invitations.list(status="EXPIRED")) == []


@pytest.mark.calls("tenants.invitations.resend")
def test_the_days_start_again(tenants):
    invitation = tenants.invitations.create(email=own_email())

    again = tenants.invitations.resend(invitation.id)

    assert (again.id, again.status) == (invitation.id, "PENDING")
    assert again.expires_at >= invitation.expires_at
    assert is_from_now(again.expires_at, seconds=THREE_DAYS)


@pytest.mark.calls("tenants.invitations.delete")
def test_it_is_gone(tenants):
    id = tenants.invitations.create(email=own_email()).id

    assert tenants.invitations.delete(id) is None

    refusal(*NOT_FOUND, tenants.invitations.get, id)
    # The client has no class of its own for this one.
    refusal(ApiError, 404, "Not Found", tenants.invitations.resend, id)
    refusal(*NOT_FOUND, tenants.invitations.delete, id)


def some_member(tenants):
    """Someone who is not the owner."""
    return next(member for member in tenants.members.list() if member.role != "OWNER")


@pytest.mark.calls("tenants.members.list")
def test_the_people_of_the_tenant_all_or_those_asked_for(tenants):
    members = list(tenants.members.list())
    user = members[0].user.id

    for member in members:
        assert UUID_V4.fullmatch(member.id)
        assert member.tenant_id == TENANT_ID
        assert "@" in member.user.email
        assert member.role in ("OWNER", "ADMIN", "READ_ONLY")
        assert member.created_date
    assert [member.user.id for member in tenants.members.list(user_id=user)] == [user]


@pytest.mark.calls("tenants.members.update")
def test_another_role_and_the_owner_stays(tenants):
    owner, member = tenants.owner.get(), some_member(tenants)
    update = tenants.members.update

    assert update(member.id, role="READ_ONLY").role == "READ_ONLY"
    assert update(member.id, role="ADMIN").role == "ADMIN"
    refusal(*UNPROCESSABLE, tenants.members.delete, owner.id)
    refusal(*NOT_FOUND, update, str(uuid.uuid4()), role="ADMIN")
    # The client has no class of its own for this one.
    refusal(ApiError, 400, INVALID, update, member.id, role="KING")


@pytest.mark.calls("tenants.owner.transfer")
def test_a_member_becomes_the_owner_and_the_owner_a_member(tenants):
    owner, heir = tenants.owner.get(), some_member(tenants)

    transferred = tenants.owner.transfer(member_id=heir.id)
    now = tenants.owner.get()
    tenants.owner.transfer(member_id=owner.id)

    assert owner.role == "OWNER"
    assert transferred.id == heir.id
    assert (now.id, now.role) == (heir.id, "OWNER")
    assert tenants.self_.get().owner_id == owner.user.id
    refusal(*UNPROCESSABLE, tenants.owner.transfer, member_id=str(uuid.uuid4()))


@pytest.mark.calls("tenants.members.delete")
def test_someone_is_no_member_any_more(tenants):
    member = some_member(tenants)

    assert tenants.members.delete(member.id) is None

    assert member.id not in ids(tenants.members.list())
    refusal(*NOT_FOUND, tenants.members.delete, member.id)


@pytest.mark.calls("tenants.security_contact.update")
def test_an_address_is_kept_and_read_back(tenants):
    email = own_email()

    assert tenants.security_contact.update(email=email).email == email
    assert tenants.security_contact.get().email == email
    update = tenants.security_contact.update
    refusal(BadRequestError, 400, INVALID, update, email="nobody")
