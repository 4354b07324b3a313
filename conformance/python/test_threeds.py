"""3-D Secure: sessions that a merchant creates, authenticates and reads."""

import pytest
from basis_theory import NotFoundError
from basis_theory.core.api_error import ApiError

SUCCESS = "4200000000000002"
NOT_ENROLLED = "4100000000000003"
UNKNOWN = "c06d0789-0a38-40be-b7cc-c28a718f76f1"
RECURRING = {
    "authentication_category": "payment",
    "authentication_type": "recurring-transaction",
    "decoupled_challenge_max_time": 10,
    "purchase_info": {
        "amount": "80000",
        "currency": "826",
        "exponent": "2",
        "date": "20300109141010",
        "transaction_type": "purchase",
        "recurring_expiration": "20310101",
        "recurring_frequency": "30",
    },
    "merchant_info": {
        "mid": "9876543210001",
        "acquirer_bin": "000000999",
        "name": "Example 3DS Merchant",
        "country_code": "826",
        "category_code": "7922",
    },
    "requestor_info": {
        "id": "example-3ds-merchant",
        "name": "Example 3DS Merchant",
        "url": "https://www.example.com",
    },
    "cardholder_info": {"name": "John Doe", "email": "john@example.com"},
}


def session_of(vault, number):
    data = {"number": number, "expiration_month": 12, "expiration_year": 2030}
    token = vault.tokens.create(type="card", data=data)
    return vault.threeds.sessions.create(type="merchant", token_id=token.id)


@pytest.mark.calls("threeds.sessions.create")
def test_a_session_names_the_cards_network(vault):
    session = session_of(vault, SUCCESS)

    assert session.card_brand == "Visa"
    assert session.directory_server_id == "A000000003"
    assert session.recommended_version == "2.2.0"


@pytest.mark.calls("threeds.sessions.create")
def test_a_card_that_no_network_knows_is_a_failed_dependency(vault):
    with pytest.raises(ApiError) as caught:
        session_of(vault, NOT_ENROLLED)

    assert caught.value.status_code == 424
    assert caught.value.body["error"]["service_status"] == "404"


@pytest.mark.calls("threeds.sessions.get")
def test_a_session_tells_what_is_known_of_it(vault):
    created = session_of(vault, SUCCESS)
    session = vault.threeds.sessions.get(created.id)

    assert session.id == created.id
    assert session.type == "merchant"
    assert session.version.recommended_version == "2.2.0"
    assert session.authentication is None
    with pytest.raises(NotFoundError):
        vault.threeds.sessions.get(UNKNOWN)


@pytest.mark.calls("threeds.sessions.authenticate")
def test_a_merchant_passes_without_the_cardholder(vault):
    session = session_of(vault, SUCCESS)
    authentication = vault.threeds.sessions.authenticate(session.id, **RECURRING)

    assert authentication.authentication_status == "successful"
    assert authentication.eci == "05"
    assert authentication.authentication_value


@pytest.mark.calls("threeds.sessions.get_challenge_result")
def test_a_result_is_given_as_often_as_it_is_asked_for(vault):
    session = session_of(vault, SUCCESS)
    vault.threeds.sessions.authenticate(session.id, **RECURRING)
    first = vault.threeds.sessions.get_challenge_result(session.id)

    assert first.authentication_status == "successful"
    assert vault.threeds.sessions.get_challenge_result(session.id) == first
