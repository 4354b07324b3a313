//! Tests of card details from all three sources.

use serde_json::{Value, json};

use super::*;
use crate::bins::read::tests::table_of_csv;

fn details_of(bins: &Bins, kind: TenantKind, number: &str) -> Value {
    serde_json::to_value(CardDetails::of(bins, kind, number)).unwrap()
}

const TABLE: &str = r#"low,high,bin_length,brand,funding,segment,issuer_name,issuer_country,product_code,authentication,additional
42424242,42424242,6,visa,prepaid,Consumer,A Bank,FR,F1,true,"[{""brand"":""cartes-bancaires"",""funding"":""debit"",""issuer"":{""name"":""Une Banque""}}]"
510000,510009,,,debit,,,,,,
990000,,7,private-label,,,,,,,
340000,349999,8,american-express,,,,,,,
"#;

#[test]
fn unknown_attributes_are_null_or_omitted() {
    let bins = Bins::default();

    let cases = [
        ("9000000000000000", "90000000", "0000", Value::Null),
        ("900000000000000", "900000", "0000", Value::Null),
        ("5999999999999999", "59999999", "9999", json!("mastercard")),
        ("4000000000000", "400000", "0000", json!("visa")),
        ("6759649826438453", "67596498", "8453", json!("mastercard")),
        (
            "6370950000000005123",
            "63709500",
            "5123",
            json!("hipercard"),
        ),
    ];
    for (number, bin, last4, brand) in cases {
        let expected = json!({
            "bin": bin, "last4": last4, "brand": brand, "funding": null, "authentication": null,
        });
        assert_eq!(
            details_of(&bins, TenantKind::Production, number),
            expected,
            "{number}"
        );
    }
}

#[test]
fn invalid_card_numbers_have_no_details() {
    let bins = Bins::default();

    for text in [
        "",
        "4242",
        "42424242424",
        "4242-4242-4242-4242",
        "42424242424242424242",
    ] {
        assert_eq!(
            CardDetails::of(&bins, TenantKind::Test, text),
            None,
            "{text}"
        );
    }
}

#[test]
fn the_operators_table_provides_all_attributes() {
    let bins = Bins::holding(table_of_csv(TABLE));

    let details = CardDetails::of(&bins, TenantKind::Production, "4242424212345678")
        .unwrap()
        .with_expiry(Some(2), Some(2031));

    assert_eq!(
        serde_json::to_value(details).unwrap(),
        json!({
            "bin": "424242", "last4": "5678",
            "expiration_month": 2, "expiration_year": 2031,
            "brand": "visa", "funding": "prepaid", "authentication": "sca_required",
            "segment": "Consumer",
            "issuer": {"country": "FR", "name": "A Bank"},
            "issuer_country": {"alpha2": "FR", "numeric": "250", "name": "France"},
            "product": {"code": "F1"},
            "additional": [{
                "brand": "cartes-bancaires", "funding": "debit", "authentication": null,
                "issuer": {"name": "Une Banque"},
            }],
        })
    );
}

#[test]
fn without_a_brand_in_the_table_it_is_inferred_from_the_prefix() {
    let bins = Bins::holding(table_of_csv(TABLE));

    let inferred = details_of(&bins, TenantKind::Production, "5100051111111111");
    let details = details_of(&bins, TenantKind::Production, "9900000000000000");

    assert_eq!(
        inferred,
        json!({
            "bin": "51000511", "last4": "1111", "brand": "mastercard", "funding": "debit",
            "authentication": null,
        })
    );
    assert_eq!(details["brand"], "private-label");
    assert_eq!(details["bin"], "9900000");
}

/// Eight digits beside the last four of fifteen would leave only three hidden.
#[test]
fn a_bin_is_no_longer_than_may_be_displayed() {
    let bins = Bins::holding(table_of_csv(TABLE));

    let cases = [
        ("340000123456789", "340000"),
        ("9900000000000", "990000"),
        ("3400001234567890", "34000012"),
        ("9900000000000000", "9900000"),
    ];
    for (number, bin) in cases {
        let details = details_of(&bins, TenantKind::Production, number);
        assert_eq!(details["bin"], bin, "{number}");
    }
}

#[test]
fn the_test_table_takes_precedence_for_test_tenants_only() {
    let bins = Bins::holding(table_of_csv(TABLE));
    let number = "4242424242424242";
    let of = |kind| CardDetails::explain(&bins, kind, number).unwrap();

    let (test, test_source) = of(TenantKind::Test);
    let (production, production_source) = of(TenantKind::Production);
    let none = CardDetails::explain(&Bins::default(), TenantKind::Production, number);

    assert_eq!(test_source, Source::TestTable);
    assert_eq!(
        serde_json::to_value(test).unwrap(),
        json!({
            "bin": "42424242", "last4": "4242", "brand": "visa", "funding": "credit",
            "authentication": "sca_required",
            "issuer": {"country": "BM"},
            "issuer_country": {"alpha2": "BM", "numeric": "060", "name": "Bermuda"},
        })
    );
    assert_eq!(production_source, Source::OperatorTable(1));
    assert_eq!(production.funding, Some("prepaid"));
    let (details, source) = none.unwrap();
    assert_eq!((details.funding, source), (None, Source::Prefix));
}
