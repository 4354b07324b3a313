"""Enrichments: what is known about a bank account and about a card's first digits."""

import uuid

import pytest
from basis_theory import BadRequestError, ForbiddenError
from basis_theory.core.api_error import ApiError

from vault import INVALID, problem, refusal

ROUTING = "021000021"
FORBIDDEN = (ForbiddenError, 403, "Forbidden")


def bank(account_number: str) -> dict:
    return {"type": "bank", "data": {"routing_number": ROUTING, "account_number": account_number}}


def account(number: str) -> dict:
    return {"type": "us_bank_account_number", "data": number}


ACCOUNTS = {
    "the test account": (bank("00001"), {}, "enabled"),
    "the second test account": (bank("00002"), {}, "inconclusive"),
    "another account": (bank("12345678"), {}, "inconclusive"),
    "an account number and a routing number": (
        account("00001"),
        {"routing_number": ROUTING},
        "enabled",
    ),
    "the routing number that no bank has": (
        account("00000"),
        {"routing_number": "021000020"},
        "disabled",
    ),
}


@pytest.mark.calls("enrichments.bank_account_verify")
@pytest.mark.parametrize(("token", "more", "status"), ACCOUNTS.values(), ids=ACCOUNTS.keys())
def test_an_account_is_verified(vault, token, more, status):
    id = vault.tokens.create(**token).id

    assert vault.enrichments.bank_account_verify(token_id=id, **more).status == status


INVALID_ACCOUNTS = {
    "a token of another type": {"type": "token", "data": "x"},
    "an account number alone": account("00001"),
}


@pytest.mark.calls("enrichments.bank_account_verify")
@pytest.mark.parametrize("token", INVALID_ACCOUNTS.values(), ids=INVALID_ACCOUNTS.keys())
def test_cannot_be_verified(vault, token):
    id = vault.tokens.create(**token).id

    verify = vault.enrichments.bank_account_verify
    refusal(BadRequestError, 400, INVALID, verify, token_id=id)


@pytest.mark.calls("enrichments.bank_account_verify")
def test_an_unknown_token_is_named_as_the_reason(vault):
    verify = vault.enrichments.bank_account_verify

    error = refusal(BadRequestError, 400, INVALID, verify, token_id=str(uuid.uuid4()))

    assert list(error.body.errors) == ["token_id"]


@pytest.mark.calls("enrichments.bank_account_verify")
def test_only_for_those_who_may_use_tokens(vault, browser, management):
    id = vault.tokens.create(**bank("00001")).id

    refusal(*FORBIDDEN, browser.enrichments.bank_account_verify, token_id=id)
    refusal(*FORBIDDEN, management.enrichments.bank_account_verify, token_id=id)


@pytest.mark.calls("enrichments.card_details")
def test_a_brand_in_display_case_for_private_and_public_keys(vault, browser):
    private = vault.enrichments.card_details(bin="424242")
    public = browser.enrichments.card_details(bin="424242")

    assert private.brand == "Visa"
    assert public == private


@pytest.mark.calls("enrichments.card_details")
def test_nothing_is_known_of_an_unknown_bin(vault):
    details = vault.enrichments.card_details(bin="999999")

    assert (details.brand, details.funding) == (None, None)


@pytest.mark.calls("enrichments.card_details")
@pytest.mark.parametrize("bin", ["42424", "424242424", "42424x"])
def test_is_no_bin(vault, bin):
    # The client has no class of its own for this one.
    error = refusal(ApiError, 400, INVALID, vault.enrichments.card_details, bin=bin)

    assert list(problem(error, "errors")) == ["bin"]


@pytest.mark.calls("enrichments.card_details")
def test_not_for_management_keys(management):
    refusal(*FORBIDDEN, management.enrichments.card_details, bin="424242")
