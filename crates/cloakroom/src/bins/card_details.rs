//! What a card shows of itself to everyone who may see its token.

use serde::Serialize;
use utoipa::ToSchema;

use super::number::CardNumber;
use super::record::{AdditionalCard, Country, Issuer, Known};
use super::{Bins, Brand, Funding, test_card};
use crate::access::TenantKind;

const SCA_REQUIRED: &str = "sca_required";

/// What a card shows of itself to everyone who may see the token.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct CardDetails {
    /// Leading digits that name the issuer: as many as the BIN data says; without it 8 of numbers
    /// with 16 digits or more, else 6.
    pub bin: String,
    pub last4: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expiration_month: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expiration_year: Option<u64>,
    /// Null when neither BIN data nor the first digits tell it.
    pub brand: Option<&'static str>,
    /// `credit`, `debit` or `prepaid`; null when no BIN data tells it.
    pub funding: Option<&'static str>,
    /// `sca_required` when the issuer demands strong customer authentication, else null.
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

/// Where a card was issued.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct IssuerCountry {
    /// ISO 3166-1 alpha-2
    pub alpha2: &'static str,
    /// ISO 3166-1 numeric, three digits
    pub numeric: String,
    pub name: &'static str,
}

/// The product that a card is sold as.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct Product {
    pub code: String,
}

/// Who told what a card shows.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Source {
    /// The published test numbers, for test tenants only.
    TestTable,
    /// The table that the operator imported, in this version.
    OperatorTable(i32),
    /// The first digits alone, which tell a brand at most.
    Prefix,
}

impl CardDetails {
    /// The details of a number of a tenant of this kind; nothing when it is no card number.
    pub fn of(bins: &Bins, tenant_kind: TenantKind, number: &str) -> Option<Self> {
        Self::explain(bins, tenant_kind, number).map(|(details, _)| details)
    }

    /// The details, and the source that told them.
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
        let known = Known {
            brand: Brand::infer(number),
            ..Known::default()
        };
        Some((Self::new(text, &known)?, Source::Prefix))
    }

    /// Adds when the card expires, as its data says.
    pub fn with_expiry(self, month: Option<u64>, year: Option<u64>) -> Self {
        Self {
            expiration_month: month,
            expiration_year: year,
            ..self
        }
    }

    fn new(number: &str, known: &Known<'_>) -> Option<Self> {
        let default_length = if number.len() < 16 { 6 } else { 8 };
        let bin_length = known.bin_length.map_or(default_length, usize::from);
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
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::bins::read::tests::table_of_csv;

    fn shown(bins: &Bins, kind: TenantKind, number: &str) -> Value {
        serde_json::to_value(CardDetails::of(bins, kind, number)).unwrap()
    }

    const TABLE: &str = r#"low,high,bin_length,brand,funding,segment,issuer_name,issuer_country,product_code,authentication,additional
42424242,42424242,6,visa,prepaid,Consumer,A Bank,FR,F1,true,"[{""brand"":""cartes-bancaires"",""funding"":""debit"",""issuer"":{""name"":""Une Banque""}}]"
510000,510009,,,debit,,,,,,
990000,,7,private-label,,,,,,,
"#;

    #[test]
    fn what_is_unknown_is_null_or_left_out() {
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
                shown(&bins, TenantKind::Production, number),
                expected,
                "{number}"
            );
        }
    }

    #[test]
    fn what_is_no_card_number_has_no_details() {
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
    fn the_operators_table_tells_all_it_knows() {
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
    fn a_row_without_a_brand_leaves_it_to_the_first_digits() {
        let bins = Bins::holding(table_of_csv(TABLE));

        let inferred = shown(&bins, TenantKind::Production, "5100051111111111");
        let told = shown(&bins, TenantKind::Production, "9900000000000000");

        assert_eq!(
            inferred,
            json!({
                "bin": "51000511", "last4": "1111", "brand": "mastercard", "funding": "debit",
                "authentication": null,
            })
        );
        assert_eq!(told["brand"], "private-label");
        assert_eq!(told["bin"], "9900000");
    }

    #[test]
    fn the_test_table_goes_first_and_only_for_test_tenants() {
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
}
