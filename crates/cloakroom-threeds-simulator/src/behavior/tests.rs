//! Tests of outcomes by card number and amount.

use super::*;

#[test]
fn amounts_select_delays_and_errors() {
    let cases = [
        ("990201", 1, None),
        ("990212", 12, None),
        ("990213", 0, None),
        ("990200", 0, None),
        ("9902012", 0, None),
        ("991303", 0, Some("303")),
        ("991405", 0, Some("405")),
        ("991999", 0, None),
        ("1000", 0, None),
    ];
    for (amount, seconds, erro) in cases {
        let effects = amount_effects(Some(amount));
        assert_eq!(effects.delay, Duration::from_secs(seconds), "{amount}");
        assert_eq!(effects.erro, erro, "{amount}");
    }
}

#[test]
fn digits_select_every_outcome() {
    let of = |tail: &str| decide(&format!("900010000000{tail}"));
    assert_eq!(of("0000"), Decision::Final(AUTHENTICATED));
    assert_eq!(of("2113"), Decision::Final(final_status("N", Some("04"))));
    assert_eq!(of("0030"), Decision::Final(final_status("R", Some("11"))));
    assert_eq!(of("0050"), Decision::Final(final_status("U", Some("13"))));
    assert_eq!(of("0060"), Decision::NoResponse);
    assert_eq!(of("0094"), Decision::Erro("303"));
    assert_eq!(of("0082"), Decision::Decoupled(Decoupled::Never));
    assert!(
        matches!(of("0075"), Decision::Challenge(it) if it.delivery == ResultDelivery::WithoutCres)
    );
    assert_eq!(
        decide("9000100000000011999"),
        Decision::Final(AUTHENTICATED),
        "only numbers with sixteen digits are in the digits BIN"
    );
}
