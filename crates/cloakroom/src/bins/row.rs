//! One row of the operator's file: its columns, and the rule that each cell must keep.

use super::number::{DIGITS_MAX, pad_high, pad_low};
use super::record::{AdditionalCard, Country};
use super::table::{PREFIX_SPACE, WHOLE_DIGITS_MIN, space_of};
use super::{Brand, Funding};

/// The columns of the file, which it may have in any order.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Column {
    Low,
    High,
    BinLength,
    Brand,
    Funding,
    Segment,
    IssuerName,
    IssuerCountry,
    ProductCode,
    Authentication,
    Additional,
}

impl Column {
    pub(super) const ALL: [Self; 11] = [
        Self::Low,
        Self::High,
        Self::BinLength,
        Self::Brand,
        Self::Funding,
        Self::Segment,
        Self::IssuerName,
        Self::IssuerCountry,
        Self::ProductCode,
        Self::Authentication,
        Self::Additional,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::High => "high",
            Self::BinLength => "bin_length",
            Self::Brand => "brand",
            Self::Funding => "funding",
            Self::Segment => "segment",
            Self::IssuerName => "issuer_name",
            Self::IssuerCountry => "issuer_country",
            Self::ProductCode => "product_code",
            Self::Authentication => "authentication",
            Self::Additional => "additional",
        }
    }

    pub(super) fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|column| column.name() == name)
    }
}

/// The cells of a row as they were read; an empty one is absent.
#[derive(Debug, Default)]
pub(super) struct Cells([String; Column::ALL.len()]);

impl Cells {
    pub(super) fn clear(&mut self) {
        self.0.iter_mut().for_each(String::clear);
    }

    pub(super) fn set(&mut self, column: Column, text: &str) {
        let cell = &mut self.0[column as usize];
        cell.clear();
        cell.push_str(text.trim());
    }

    fn find(&self, column: Column) -> Option<&str> {
        Some(self.0[column as usize].as_str()).filter(|text| !text.is_empty())
    }
}

/// A row that keeps every rule.
#[derive(Debug, PartialEq)]
pub(super) struct Row<'a> {
    pub(super) bounds: Bounds,
    pub(super) bin_length: Option<u8>,
    pub(super) brand: Option<Brand>,
    pub(super) funding: Option<Funding>,
    pub(super) needs_sca: bool,
    pub(super) segment: Option<&'a str>,
    pub(super) issuer_name: Option<&'a str>,
    pub(super) country: Option<Country>,
    pub(super) product_code: Option<&'a str>,
    pub(super) additional: Vec<AdditionalCard>,
}

/// First and last key of a range, in the space of its length or in that of prefixes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Bounds {
    pub(super) space: usize,
    pub(super) low: u64,
    pub(super) high: u64,
}

/// A broken rule: never with the cell's text, which is somebody else's data.
pub(super) type BrokenCell = (Column, &'static str);

const BOUND_RULE: &str = "must be 6 to 19 digits";
const SAME_LENGTH_RULE: &str = "must have as many digits as low";
const ORDER_RULE: &str = "must not be below low";
const BIN_LENGTH_RULE: &str = "must be 6, 7 or 8";
const BRAND_RULE: &str = "must be american-express, diners-club, discover, ebt, elo, hipercard, \
    jcb, mastercard, mir, private-label, proprietary, unionpay or visa";
const FUNDING_RULE: &str = "must be credit, debit or prepaid";
const SCA_RULE: &str = "must be sca_required, true or false";
const COUNTRY_RULE: &str = "must be the two capital letters of a country (ISO 3166-1)";
const TEXT_RULE: &str = "must be at most 200 characters without control characters";
const ADDITIONAL_RULE: &str = "must be a JSON array of up to 8 objects with brand, funding, \
    authentication and issuer (country, name), each under the rule of its column";

const TEXT_CHARS_MAX: usize = 200;
const ADDITIONAL_MAX: usize = 8;

impl<'a> Row<'a> {
    /// Checks every cell, so that one run tells about all of them.
    ///
    /// With `is_padded`, whole numbers are prefixes that were filled up with zeros and nines.
    pub(super) fn check(cells: &'a Cells, is_padded: bool) -> Result<Self, Vec<BrokenCell>> {
        let mut broken = Vec::new();
        let mut checker = Checker {
            cells,
            broken: &mut broken,
        };
        let bin_length = |text: &str| text.parse().ok().filter(|length| (6..=8).contains(length));
        let row = Self {
            bounds: checker.bounds(is_padded),
            bin_length: checker.parse(Column::BinLength, BIN_LENGTH_RULE, bin_length),
            brand: checker.parse(Column::Brand, BRAND_RULE, Brand::parse),
            funding: checker.parse(Column::Funding, FUNDING_RULE, Funding::parse),
            needs_sca: checker
                .parse(Column::Authentication, SCA_RULE, parse_sca)
                .unwrap_or(false),
            segment: checker.parse(Column::Segment, TEXT_RULE, plain_text),
            issuer_name: checker.parse(Column::IssuerName, TEXT_RULE, plain_text),
            country: checker.parse(Column::IssuerCountry, COUNTRY_RULE, Country::parse),
            product_code: checker.parse(Column::ProductCode, TEXT_RULE, plain_text),
            additional: checker
                .parse(Column::Additional, ADDITIONAL_RULE, parse_additional)
                .unwrap_or_default(),
        };
        if broken.is_empty() {
            Ok(row)
        } else {
            Err(broken)
        }
    }
}

struct Checker<'a, 'b> {
    cells: &'a Cells,
    broken: &'b mut Vec<BrokenCell>,
}

impl<'a> Checker<'a, '_> {
    fn parse<T>(
        &mut self,
        column: Column,
        rule: &'static str,
        parse: impl FnOnce(&'a str) -> Option<T>,
    ) -> Option<T> {
        let text = self.cells.find(column)?;
        let parsed = parse(text);
        if parsed.is_none() {
            self.broken.push((column, rule));
        }
        parsed
    }

    /// A row without `high` is about one prefix or number.
    fn bounds(&mut self, is_padded: bool) -> Bounds {
        let nowhere = Bounds {
            space: PREFIX_SPACE,
            low: 0,
            high: 0,
        };
        if self.cells.find(Column::Low).is_none() {
            self.broken.push((Column::Low, BOUND_RULE));
            return nowhere;
        }
        let low = self.parse(Column::Low, BOUND_RULE, parse_bound);
        let high = match self.cells.find(Column::High) {
            Some(_) => self.parse(Column::High, BOUND_RULE, parse_bound),
            None => low,
        };
        let (Some((low, digits)), Some((high, high_digits))) = (low, high) else {
            return nowhere;
        };
        if digits != high_digits {
            self.broken.push((Column::High, SAME_LENGTH_RULE));
        } else if high < low {
            self.broken.push((Column::High, ORDER_RULE));
        }
        match space_of(digits).filter(|_| !is_padded) {
            Some(space) => Bounds { space, low, high },
            None => Bounds {
                space: PREFIX_SPACE,
                low: pad_low(low, digits),
                high: pad_high(high, high_digits),
            },
        }
    }
}

fn parse_bound(text: &str) -> Option<(u64, u32)> {
    let digits = u32::try_from(text.len()).ok()?;
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_plain || !(6..=DIGITS_MAX).contains(&digits) {
        return None;
    }
    Some((text.parse().ok()?, digits))
}

fn parse_sca(text: &str) -> Option<bool> {
    match text {
        "sca_required" | "true" => Some(true),
        "false" => Some(false),
        _ => None,
    }
}

fn plain_text(text: &str) -> Option<&str> {
    let is_plain = !text.chars().any(char::is_control) && text.chars().count() <= TEXT_CHARS_MAX;
    is_plain.then_some(text)
}

fn parse_additional(text: &str) -> Option<Vec<AdditionalCard>> {
    let mut entries: Vec<AdditionalCard> = serde_json::from_str(text).ok()?;
    if entries.len() > ADDITIONAL_MAX {
        return None;
    }
    for entry in &mut entries {
        let issuer = entry.issuer.as_ref();
        let texts = [
            entry.brand.as_deref(),
            issuer.and_then(|issuer| issuer.name.as_deref()),
        ];
        if texts
            .into_iter()
            .flatten()
            .any(|text| plain_text(text).is_none())
        {
            return None;
        }
        entry
            .funding
            .as_deref()
            .map(Funding::parse)
            .unwrap_or(Some(Funding::Credit))?;
        let country = issuer.and_then(|issuer| issuer.country.as_deref());
        country
            .map(|code| Country::parse(code).ok_or(()))
            .transpose()
            .ok()?;
        let needs_sca = entry.authentication.as_deref().map(parse_sca);
        entry.authentication = match needs_sca {
            None | Some(Some(false)) => None,
            Some(Some(true)) => Some("sca_required".to_owned()),
            Some(None) => return None,
        };
    }
    Some(entries)
}

const _: () = assert!(WHOLE_DIGITS_MIN == 13, "docs/operate/bins.md says so");

#[cfg(test)]
mod tests {
    use super::*;

    type Given<'a> = &'a [(Column, &'a str)];

    fn cells(given: Given<'_>) -> Cells {
        let mut cells = Cells::default();
        for (column, text) in given {
            cells.set(*column, text);
        }
        cells
    }

    #[test]
    fn each_broken_cell_is_named_with_its_rule() {
        use Column::*;

        let low = (Low, "400000");
        let cases: [(Given<'_>, Column, &str); 26] = [
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
    fn all_broken_cells_of_a_row_are_told_together() {
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
    fn short_bounds_are_prefixes_and_long_ones_whole_numbers() {
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
    fn additional_entries_are_brought_into_the_form_that_cards_show() {
        let text = r#"[{"brand":"cartes-bancaires","authentication":"true"},{"funding":"debit",
            "authentication":"false","issuer":{"country":"FR","name":"Banque"}}]"#;
        let cells = cells(&[(Column::Low, "400000"), (Column::Additional, text)]);

        let row = Row::check(&cells, false).unwrap();

        assert_eq!(
            serde_json::to_string(&row.additional).unwrap(),
            r#"[{"brand":"cartes-bancaires","funding":null,"authentication":"sca_required"},{"brand":null,"funding":"debit","authentication":null,"issuer":{"country":"FR","name":"Banque"}}]"#
        );
    }
}
