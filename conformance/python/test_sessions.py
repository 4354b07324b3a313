"""Sessions: a public application's key that does for minutes what a private one allows it."""

import re
import uuid

import pytest
from basis_theory import (
    AccessRule,
    BadRequestError,
    Condition,
    ConflictError,
    ForbiddenError,
    NotFoundError,
)

from vault import INVALID, ONCE, client, is_from_now, own_container, problem, refusal

NONCE = re.compile(r"[1-9A-HJ-NP-Za-km-z]{22}")
FORBIDDEN = (ForbiddenError, 403, "Forbidden")


def reveal(**where) -> AccessRule:
    return AccessRule(
        description="Show it",
        priority=1,
        transform="reveal",
        permissions=["token:read"],
        **where,
    )


def condition(id: str) -> Condition:
    return Condition(attribute="id", operator="equals", value=id)


@pytest.mark.calls("sessions.create")
def test_a_key_of_its_own_a_nonce_and_three_minutes(browser):
    session = browser.sessions.create()

    assert NONCE.fullmatch(session.nonce)
    assert session.session_key.startswith("key_test_us_ses_")
    assert is_from_now(session.expires_at, seconds=180)


@pytest.mark.calls("sessions.create")
def test_only_for_public_applications(vault, management):
    refusal(*FORBIDDEN, vault.sessions.create)
    refusal(*FORBIDDEN, management.sessions.create)


@pytest.mark.calls("sessions.create")
def test_before_it_is_authorized_a_session_does_nothing(browser):
    session = client(browser.sessions.create().session_key)

    refusal(*FORBIDDEN, session.tokens.create, type="token", data="x")
    refusal(*FORBIDDEN, session.tokens.get, str(uuid.uuid4()))


@pytest.mark.calls("sessions.authorize")
def test_with_permissions_it_does_these_and_no_longer_what_its_application_may(vault, browser):
    made = browser.sessions.create()
    card = browser.tokens.create(type="card", data={"number": "4242424242424242"})

    answer = vault.sessions.authorize(nonce=made.nonce, permissions=["token:read"])
    session = client(made.session_key)

    assert answer is None
    assert session.tokens.get(card.id).data["number"] == "XXXXXXXXXXXX4242"
    refusal(*FORBIDDEN, session.tokens.create, type="token", data="x")


@pytest.mark.calls("sessions.authorize")
def test_with_a_rule_for_a_container_it_sees_what_is_in_there_whole(vault, browser):
    container = own_container()
    inside = browser.tokens.create(type="token", data="in", containers=[container])
    outside = browser.tokens.create(type="token", data="out")
    made = browser.sessions.create()

    vault.sessions.authorize(nonce=made.nonce, rules=[reveal(container=container)])
    session = client(made.session_key)

    assert session.tokens.get(inside.id).data == "in"
    refusal(*FORBIDDEN, session.tokens.get, outside.id)


@pytest.mark.calls("sessions.authorize")
def test_with_a_condition_it_sees_one_token(vault, browser):
    one = browser.tokens.create(type="token", data="one")
    other = browser.tokens.create(type="token", data="other")
    made = browser.sessions.create()

    vault.sessions.authorize(nonce=made.nonce, rules=[reveal(conditions=[condition(one.id)])])
    session = client(made.session_key)

    assert session.tokens.get(one.id).data == "one"
    refusal(*FORBIDDEN, session.tokens.get, other.id)


@pytest.mark.calls("sessions.authorize")
def test_tokens_of_a_session_belong_to_its_application(vault, browser):
    made = browser.sessions.create()

    vault.sessions.authorize(nonce=made.nonce, permissions=["token:create"])
    token = client(made.session_key).tokens.create(type="token", data="x")

    assert token.created_by == browser.applications.get_by_key().id


@pytest.mark.calls("sessions.authorize")
def test_a_nonce_is_good_for_once(vault, browser):
    request = {"nonce": browser.sessions.create().nonce, "permissions": ["token:read"]}

    vault.sessions.authorize(**request)

    authorize = vault.sessions.authorize
    refusal(ConflictError, 409, "Conflict", authorize, **request, request_options=ONCE)


@pytest.mark.calls("sessions.authorize")
def test_an_unknown_nonce_is_not_found(vault):
    request = {"nonce": "1" * 22, "permissions": ["token:read"]}

    refusal(NotFoundError, 404, "Not Found", vault.sessions.authorize, **request)


@pytest.mark.calls("sessions.authorize")
def test_only_by_private_applications(browser, management):
    request = {"nonce": browser.sessions.create().nonce, "permissions": ["token:read"]}

    refusal(*FORBIDDEN, browser.sessions.authorize, **request)
    refusal(*FORBIDDEN, management.sessions.authorize, **request)


INVALID_GRANTS = {
    "nothing granted": ({}, ["permissions"]),
    "an unknown permission": ({"permissions": ["token:juggle"]}, ["permissions"]),
    "an end that has passed": (
        {"permissions": ["token:read"], "expires_at": "2020-01-01"},
        ["expires_at"],
    ),
    "an end in the far future": (
        {"permissions": ["token:read"], "expires_at": "2030-01-01"},
        ["expires_at"],
    ),
    "a rule with a container and conditions": (
        {"rules": [reveal(container="/", conditions=[condition("x")])]},
        None,
    ),
}


@pytest.mark.calls("sessions.authorize")
@pytest.mark.parametrize(
    ("grants", "attributes"), INVALID_GRANTS.values(), ids=INVALID_GRANTS.keys()
)
def test_what_is_invalid_is_named(vault, browser, grants, attributes):
    nonce = browser.sessions.create().nonce

    error = refusal(BadRequestError, 400, INVALID, vault.sessions.authorize, nonce=nonce, **grants)

    named = list(problem(error, "errors"))
    assert named == attributes if attributes else named
    # What was refused has not used up the nonce.
    vault.sessions.authorize(nonce=nonce, permissions=["token:read"])
