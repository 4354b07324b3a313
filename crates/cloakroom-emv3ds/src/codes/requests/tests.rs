//! Tests of codes by protocol version and message.

use super::*;

#[test]
fn authentication_types_have_requestor_and_three_ri_codes() {
    let codes = |name| {
        let known = AuthenticationType::from_name(name).unwrap();
        assert_eq!(known.name(), name);
        (known.requestor_code(), known.three_ri_code())
    };
    assert_eq!(codes("payment-transaction"), (Some("01"), None));
    assert_eq!(codes("recurring-transaction"), (Some("02"), Some("01")));
    assert_eq!(codes("account-verification"), (Some("04"), Some("05")));
    assert_eq!(codes("billing-agreement"), (None, Some("12")));
    let count = |may: fn(AuthenticationType) -> bool| {
        AuthenticationType::ALL
            .iter()
            .filter(|known| may(**known))
            .count()
    };
    assert_eq!(count(AuthenticationType::is_for_customer), 7);
    assert_eq!(count(AuthenticationType::is_for_merchant), 12);
}

#[test]
fn challenge_preferences_are_downgraded_for_2_1_0() {
    let sent = |code, version| {
        let preference = ChallengePreference::from_code(code).unwrap();
        preference.for_version(version).code()
    };
    for code in ["05", "06", "07", "08"] {
        assert_eq!(sent(code, Version::V2_1_0), "02");
        assert_eq!(sent(code, Version::V2_2_0), code);
    }
    assert_eq!(sent("09", Version::V2_1_0), "03");
    for code in ["01", "02", "03", "04", "90"] {
        assert_eq!(sent(code, Version::V2_1_0), code);
    }
}

#[test]
fn boolean_indicators_have_their_own_codes() {
    assert_eq!(
        (ship_name_match_code(true), ship_name_match_code(false)),
        ("01", "02")
    );
    assert_eq!(
        (
            suspicious_activity_code(true),
            suspicious_activity_code(false)
        ),
        ("02", "01")
    );
    assert_eq!((pre_order_code(true), pre_order_code(false)), ("02", "01"));
    assert_eq!((reorder_code(true), reorder_code(false)), ("02", "01"));
    assert_eq!(
        AddressUse::from_name("address-first-used"),
        Some(AddressUse::ThisTransaction)
    );
}
