//! Tests of the rules of each column.

use super::*;

type CellTexts<'a> = &'a [(Column, &'a str)];

fn cells(given: CellTexts<'_>) -> Cells {
    let mut cells = Cells::default();
    for (column, text) in given {
        cells.set(*column, text);
    }
    cells
}

#[test]
fn invalid_cells_are_named_with_their_rule() {
    use Column::*;

    let low = (Low, "400000");
    let cases: [(CellTexts<'_>, Column, &str); 26] = [
        (&[], Low, BOUND_RULE),
        (&[(Low, "40000")], Low, BOUND_RULE),
        (&[(Low, "40000000000000000000")], Low, BOUND_RULE),
        (&[(Low, "4000 00")], Low, BOUND_RULE),
        (&[(Low, "4e5000")], Low, BOUND_RULE),
        (&[low, (High, "4x0000")], High, BOUND_RULE),
        (&[low, (High, "4000000")], High, SAME_LENGTH_RULE),
        (&[low, (High, "399999")], High, ORDER_RULE),
        (&[low, (BinLength, "5")], BinLength, BIN_LENGTH_RULE),
        (&[low, (BinLength, "9")], BinLength, BIN_LENGTH_RULE),
        (&[low, (BinLength, "six")], BinLength, BIN_LENGTH_RULE),
        (&[low, (Brand, "maestro")], Brand, BRAND_RULE),
        (&[low, (Brand, "Visa")], Brand, BRAND_RULE),
        (&[low, (Funding, "charge")], Funding, FUNDING_RULE),
        (&[low, (Authentication, "yes")], Authentication, SCA_RULE),
        (&[low, (IssuerCountry, "ZZ")], IssuerCountry, COUNTRY_RULE),
        (&[low, (IssuerCountry, "bm")], IssuerCountry, COUNTRY_RULE),
        (&[low, (Segment, "a\u{7}b")], Segment, TEXT_RULE),
        (
            &[low, (IssuerName, &"x".repeat(201))],
            IssuerName,
            TEXT_RULE,
        ),
        (&[low, (ProductCode, "a\nb")], ProductCode, TEXT_RULE),
        (&[low, (Additional, "{}")], Additional, ADDITIONAL_RULE),
        (
            &[low, (Additional, r#"[{"funding":"charge"}]"#)],
            Additional,
            ADDITIONAL_RULE,
        ),
        (
            &[low, (Additional, r#"[{"colour":"red"}]"#)],
            Additional,
            ADDITIONAL_RULE,
        ),
        (
            &[low, (Additional, r#"[{"issuer":{"country":"ZZ"}}]"#)],
            Additional,
            ADDITIONAL_RULE,
        ),
        (
            &[low, (Additional, r#"[{"authentication":"maybe"}]"#)],
            Additional,
            ADDITIONAL_RULE,
        ),
        (
            &[low, (Additional, "[{},{},{},{},{},{},{},{},{}]")],
            Additional,
            ADDITIONAL_RULE,
        ),
    ];
    for (given, column, rule) in cases {
        let cells = cells(given);
        assert_eq!(
            Row::check(&cells, false),
            Err(vec![(column, rule)]),
            "{given:?}"
        );
    }
}

#[test]
fn all_invalid_cells_of_a_row_are_reported_together() {
    let cells = cells(&[
        (Column::Low, "4"),
        (Column::Funding, "x"),
        (Column::IssuerCountry, "x"),
    ]);

    let broken = Row::check(&cells, false).unwrap_err();

    let columns: Vec<_> = broken.iter().map(|(column, _)| column.name()).collect();
    assert_eq!(columns, ["low", "funding", "issuer_country"]);
}

#[test]
fn short_bounds_are_prefixes_and_long_ones_full_numbers() {
    let any = "0 4242420000000000000 4242429999999999999";
    let cases = [
        ("424242", "", false, any),
        ("424242", "424242", false, any),
        ("42424200", "42424299", false, any),
        ("424242000000", "424242999999", false, any),
        (
            "4242420000000",
            "4242429999999",
            false,
            "1 4242420000000 4242429999999",
        ),
        (
            "4242424242424242",
            "",
            false,
            "4 4242424242424242 4242424242424242",
        ),
        (
            "4242424242424242424",
            "",
            false,
            "7 4242424242424242424 4242424242424242424",
        ),
        ("4242420000000000", "4242429999999999", true, any),
        ("4242420000000000000", "4242429999999999999", true, any),
    ];
    for (low, high, is_padded, expected) in cases {
        let cells = cells(&[(Column::Low, low), (Column::High, high)]);
        let Bounds { space, low, high } = Row::check(&cells, is_padded).unwrap().bounds;
        assert_eq!(format!("{space} {low} {high}"), expected);
    }
}

#[test]
fn additional_entries_are_normalized() {
    let text = r#"[{"brand":"cartes-bancaires","authentication":"true"},{"funding":"debit",
            "authentication":"false","issuer":{"country":"FR","name":"Banque"}}]"#;
    let cells = cells(&[(Column::Low, "400000"), (Column::Additional, text)]);

    let row = Row::check(&cells, false).unwrap();

    assert_eq!(
        serde_json::to_string(&row.additional).unwrap(),
        r#"[{"brand":"cartes-bancaires","funding":null,"authentication":"sca_required"},{"brand":null,"funding":"debit","authentication":null,"issuer":{"country":"FR","name":"Banque"}}]"#
    );
}
