//! Attributes of the cards in a range: funding, issuer, country and others.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Brand;

/// Funding type of a card.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Funding {
    Credit = 1,
    Debit,
    Prepaid,
}

impl Funding {
    pub const ALL: [Self; 3] = [Self::Credit, Self::Debit, Self::Prepaid];

    pub fn name(self) -> &'static str {
        match self {
            Self::Credit => "credit",
            Self::Debit => "debit",
            Self::Prepaid => "prepaid",
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|funding| funding.name() == name)
    }

    /// The funding type with this number in a compiled table; 0 is none.
    pub(super) fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number).checked_sub(1)?).copied()
    }
}

/// A country, identified by its alpha-2 code.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(super) struct Country(&'static rust_iso3166::CountryCode);

impl Country {
    pub(super) fn parse(alpha2: &str) -> Option<Self> {
        rust_iso3166::ALPHA2_MAP.get(alpha2).map(Self)
    }

    pub(super) fn alpha2(self) -> &'static str {
        self.0.alpha2
    }

    pub(super) fn numeric(self) -> String {
        self.0.numeric_str()
    }

    /// The English short name; two are spelled as in the API.
    pub(super) fn name(self) -> &'static str {
        match self.0.alpha2 {
            "TR" => "Turkiye",
            "US" => "United States",
            _ => self.0.name,
        }
    }
}

/// Attributes of a card number from one source; `None` is unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct CardAttributes<'a> {
    pub(super) bin_length: Option<u8>,
    pub(super) brand: Option<Brand>,
    pub(super) funding: Option<Funding>,
    pub(super) needs_sca: bool,
    pub(super) segment: Option<&'a str>,
    pub(super) issuer_name: Option<&'a str>,
    pub(super) country: Option<Country>,
    pub(super) product_code: Option<&'a str>,
    pub(super) additional: &'a [AdditionalCard],
}

/// A further entry for the same BIN, such as the second brand of a co-badged card.
#[derive(Clone, Debug, Deserialize, Eq, Hash, PartialEq, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AdditionalCard {
    /// Any brand, including brands that `brand` does not list.
    #[serde(default)]
    pub brand: Option<String>,
    /// `credit`, `debit` or `prepaid`
    #[serde(default)]
    pub funding: Option<String>,
    /// `sca_required` or null
    #[serde(default)]
    pub authentication: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issuer: Option<Issuer>,
}

/// The issuer of a card.
#[derive(Clone, Debug, Deserialize, Eq, Hash, PartialEq, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Issuer {
    /// ISO 3166-1 alpha-2
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub country: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}
