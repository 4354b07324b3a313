//! The table matches the published one.

use super::*;

/// The published table, row by row: from, to, funding, brand, country.
#[rustfmt::skip]
const PUBLISHED: [(&str, &str, &str, &str, &str); 19] = [
    ("4242424242424242", "4242424242424242", "credit", "visa", "BM 060 Bermuda"),
    ("5555555555550000", "5555555555560000", "credit", "mastercard", "TR 792 Turkiye"),
    ("2720394612465072", "2720394612465072", "credit", "mastercard", "US 840 United States"),
    ("378282246310000", "378282246310010", "credit", "american-express", "FO 234 Faroe Islands"),
    ("4000056655665550", "4000056655665556", "credit", "visa", "CL 152 Chile"),
    ("6200000000000000", "6200000000000005", "credit", "unionpay", "SJ 744 Svalbard and Jan Mayen"),
    ("6011010000000000", "6011010000000005", "debit", "discover", "BM 060 Bermuda"),
    ("6011981111111113", "6011981111111113", "debit", "discover", "US 840 United States"),
    ("3566002020360504", "3566002020360506", "debit", "jcb", "BM 060 Bermuda"),
    ("3530111333300000", "3530111333300000", "debit", "jcb", "US 840 United States"),
    ("378282246310011", "378282246310020", "debit", "visa", "BM 060 Bermuda"),
    ("4005550000081018", "4005550000081020", "debit", "visa", "BM 060 Bermuda"),
    ("5112000400000000", "5112000400000001", "debit", "mastercard", "BM 060 Bermuda"),
    ("5112010000000003", "5112010100000002", "debit", "mastercard", "BM 060 Bermuda"),
    ("5200828282828210", "5200828282828210", "debit", "mastercard", "US 840 United States"),
    ("6011000990139420", "6011000990139430", "credit", "discover", "BM 060 Bermuda"),
    ("6011000995500000", "6011000995500000", "credit", "discover", "US 840 United States"),
    ("5589092000000000006", "5589092000000000006", "debit", "mastercard", "US 840 United States"),
    ("5589620000000000007", "5589620000000000007", "debit", "mastercard", "US 840 United States"),
];

fn found(number: &str) -> Option<CardAttributes<'static>> {
    find(CardNumber::parse(number).unwrap())
}

#[test]
fn published_ranges_have_the_published_attributes() {
    for (from, to, funding, brand, country) in PUBLISHED {
        for number in [from, to] {
            let known = found(number).unwrap();
            let issued_in = known.country.unwrap();
            let actual = format!(
                "{} {} {}",
                issued_in.alpha2(),
                issued_in.numeric(),
                issued_in.name()
            );
            assert_eq!(known.funding.unwrap().name(), funding, "{number}");
            assert_eq!(known.brand.unwrap().name(), brand, "{number}");
            assert_eq!(actual, country, "{number}");
            assert_eq!(known.needs_sca, number == "4242424242424242", "{number}");
        }
        let below = (from.parse::<u64>().unwrap() - 1).to_string();
        let above = (to.parse::<u64>().unwrap() + 1).to_string();
        for outside in [below, above] {
            let is_next_row = PUBLISHED
                .iter()
                .any(|row| row.0 == outside || row.1 == outside);
            assert_eq!(found(&outside).is_some(), is_next_row, "{outside}");
        }
    }
}

#[test]
fn numbers_of_another_length_do_not_match() {
    for number in [
        "04242424242424242",
        "42424242424242420",
        "0378282246310005",
        "424242424242424",
    ] {
        assert!(found(number).is_none(), "{number}");
    }
}

#[test]
fn threeds_test_cards_are_credit_cards() {
    assert!(THREEDS_CARDS.is_sorted());
    for card in THREEDS_CARDS {
        let known = found(&card.to_string()).unwrap();
        assert_eq!(known.funding, Some(Credit), "{card}");
    }
    let cases = [
        ("4200000000000002", Some("visa"), None),
        ("4200000000000017", Some("visa"), None),
        ("4100000000000003", Some("visa"), None),
        ("5405001111111165", Some("mastercard"), None),
        ("6759649826438453", Some("mastercard"), None),
        ("36148900647913", Some("diners-club"), None),
        ("122000000000003", None, None),
        ("3566002020360505", Some("jcb"), Some("BM")),
        ("5555555555554444", Some("mastercard"), Some("TR")),
    ];
    for (number, brand, country) in cases {
        let known = found(number).unwrap();
        assert_eq!(known.brand.map(Brand::name), brand, "{number}");
        assert_eq!(known.country.map(Country::alpha2), country, "{number}");
    }
    assert!(found("4200000000000001").is_none());
    assert!(found("4200000000000018").is_none());
}
