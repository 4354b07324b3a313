//! Card details: the non-sensitive attributes of a card.

use cloakroom_core::access::TenantKind;
use serde::Serialize;
use utoipa::ToSchema;

use super::number::CardNumber;
use super::record::{AdditionalCard, CardAttributes, Country, Issuer};
use super::{Bins, Brand, Funding, test_card};

const SCA_REQUIRED: &str = "sca_required";

/// Non-sensitive attributes of a card, shown to every client that may read the token.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct CardDetails {
    /// Leading digits that identify the issuer (BIN). Their number comes from the BIN data; without it, 8 for numbers
    /// with at least 16 digits, else 6.
    pub bin: String,
    pub last4: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expiration_month: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expiration_year: Option<u64>,
    /// Null if neither BIN data nor the leading digits determine it.
    pub brand: Option<&'static str>,
    /// `credit`, `debit` or `prepaid`; null without BIN data.
    pub funding: Option<&'static str>,
    /// `sca_required` if the issuer requires strong customer authentication, else null.
    pub authentication: Option<&'static str>,
    /// Such as `Consumer`, `Commercial`, `Business` or `Government`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub segment: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub issuer: Option<Issuer>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub issuer_country: Option<IssuerCountry>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub product: Option<Product>,
    /// Further entries for the same BIN.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub additional: Vec<AdditionalCard>,
}

/// Country of the issuer.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct IssuerCountry {
    /// ISO 3166-1 alpha-2
    pub alpha2: &'static str,
    /// ISO 3166-1 numeric, three digits
    pub numeric: String,
    pub name: &'static str,
}

/// Product of a card.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct Product {
    pub code: String,
}

/// The source of card details.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Source {
    /// The published test numbers, for test tenants only.
    TestTable,
    /// The table that the operator imported, with its version.
    OperatorTable(i32),
    /// The leading digits alone, which determine at most the brand.
    Prefix,
}

impl CardDetails {
    /// The details of a card number for a tenant of this kind; `None` if it is not a card number.
    pub fn of(bins: &Bins, tenant_kind: TenantKind, number: &str) -> Option<Self> {
        Self::explain(bins, tenant_kind, number).map(|(details, _)| details)
    }

    /// The details and their source.
    pub fn explain(bins: &Bins, tenant_kind: TenantKind, text: &str) -> Option<(Self, Source)> {
        let number = CardNumber::parse(text)?;
        let test_card = match tenant_kind {
            TenantKind::Test => test_card::find(number),
            TenantKind::Production => None,
        };
        if let Some(known) = test_card {
            return Some((Self::new(text, &known)?, Source::TestTable));
        }
        let snapshot = bins.snapshot();
        if let Some(mut known) = snapshot.table.find(number) {
            known.brand = known.brand.or_else(|| Brand::infer(number));
            let source = Source::OperatorTable(snapshot.version);
            return Some((Self::new(text, &known)?, source));
        }
        let known = CardAttributes {
            brand: Brand::infer(number),
            ..CardAttributes::default()
        };
        Some((Self::new(text, &known)?, Source::Prefix))
    }

    /// Adds the expiration date of the card's data.
    pub fn with_expiry(self, month: Option<u64>, year: Option<u64>) -> Self {
        Self {
            expiration_month: month,
            expiration_year: year,
            ..self
        }
    }

    fn new(number: &str, known: &CardAttributes<'_>) -> Option<Self> {
        let default_length = if number.len() < 16 { 6 } else { 8 };
        let bin_length = known.bin_length.map_or(default_length, usize::from);
        // PCI DSS allows no more digits together with the last four.
        let bin_length = bin_length.min(default_length);
        let issuer = Issuer {
            country: known.country.map(|country| country.alpha2().to_owned()),
            name: known.issuer_name.map(str::to_owned),
        };
        let is_known = issuer.country.is_some() || issuer.name.is_some();
        Some(Self {
            bin: number.get(..bin_length)?.to_owned(),
            last4: number.get(number.len().checked_sub(4)?..)?.to_owned(),
            expiration_month: None,
            expiration_year: None,
            brand: known.brand.map(Brand::name),
            funding: known.funding.map(Funding::name),
            authentication: known.needs_sca.then_some(SCA_REQUIRED),
            segment: known.segment.map(str::to_owned),
            issuer: is_known.then_some(issuer),
            issuer_country: known.country.map(IssuerCountry::of),
            product: known.product_code.map(|code| Product {
                code: code.to_owned(),
            }),
            additional: known.additional.to_vec(),
        })
    }
}

impl IssuerCountry {
    fn of(country: Country) -> Self {
        Self {
            alpha2: country.alpha2(),
            numeric: country.numeric(),
            name: country.name(),
        }
    }
}

#[cfg(test)]
mod tests;
