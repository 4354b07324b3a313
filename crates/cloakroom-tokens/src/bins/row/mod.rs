//! Rows of the operator's file: columns and validation rules.

use super::number::{DIGITS_MAX, pad_high, pad_low};
use super::record::{AdditionalCard, Country};
use super::table::{FULL_DIGITS_MIN, PREFIX_SPACE, space_of};
use super::{Brand, Funding};

/// The columns of the file, in any order.
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

/// The cells of a row; an empty cell is absent.
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

/// A validated row.
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

/// First and last key of a range, in the space of its length or in the space of prefixes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Bounds {
    pub(super) space: usize,
    pub(super) low: u64,
    pub(super) high: u64,
}

/// A validation error. Never contains the cell's text, which is third-party data.
pub(super) type CellError = (Column, &'static str);

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
    /// Validates every cell, so that one run reports all errors.
    ///
    /// With `is_padded`, full-length numbers are prefixes that were padded with zeros and nines.
    pub(super) fn check(cells: &'a Cells, is_padded: bool) -> Result<Self, Vec<CellError>> {
        let mut broken = Vec::new();
        let mut validator = Validator {
            cells,
            broken: &mut broken,
        };
        let bin_length = |text: &str| text.parse().ok().filter(|length| (6..=8).contains(length));
        let row = Self {
            bounds: validator.bounds(is_padded),
            bin_length: validator.parse(Column::BinLength, BIN_LENGTH_RULE, bin_length),
            brand: validator.parse(Column::Brand, BRAND_RULE, Brand::parse),
            funding: validator.parse(Column::Funding, FUNDING_RULE, Funding::parse),
            needs_sca: validator
                .parse(Column::Authentication, SCA_RULE, parse_sca)
                .unwrap_or(false),
            segment: validator.parse(Column::Segment, TEXT_RULE, plain_text),
            issuer_name: validator.parse(Column::IssuerName, TEXT_RULE, plain_text),
            country: validator.parse(Column::IssuerCountry, COUNTRY_RULE, Country::parse),
            product_code: validator.parse(Column::ProductCode, TEXT_RULE, plain_text),
            additional: validator
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

struct Validator<'a, 'b> {
    cells: &'a Cells,
    broken: &'b mut Vec<CellError>,
}

impl<'a> Validator<'a, '_> {
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

    /// A row without `high` covers one prefix or number.
    fn bounds(&mut self, is_padded: bool) -> Bounds {
        let placeholder = Bounds {
            space: PREFIX_SPACE,
            low: 0,
            high: 0,
        };
        if self.cells.find(Column::Low).is_none() {
            self.broken.push((Column::Low, BOUND_RULE));
            return placeholder;
        }
        let low = self.parse(Column::Low, BOUND_RULE, parse_bound);
        let high = match self.cells.find(Column::High) {
            Some(_) => self.parse(Column::High, BOUND_RULE, parse_bound),
            None => low,
        };
        let (Some((low, digits)), Some((high, high_digits))) = (low, high) else {
            return placeholder;
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

const _: () = assert!(FULL_DIGITS_MIN == 13, "documented in docs/operate/bins.md");

#[cfg(test)]
mod tests;
