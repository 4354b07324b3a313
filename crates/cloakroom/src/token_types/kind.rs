//! The table of token types: what each is called and what it brings along.

use std::borrow::Cow;
use std::sync::LazyLock;

use cloakroom_expressions::Mask;
use serde_json::Value;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

use crate::access::Container;

/// The type of a token. The numbers are in the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TokenKind {
    Token = 1,
    Card = 2,
    CardNumber = 3,
    NetworkToken = 4,
    Bank = 5,
    UsBankAccountNumber = 6,
    UsBankRoutingNumber = 7,
    SocialSecurityNumber = 8,
    EmployerIdNumber = 9,
}

/// What a type is called, and what a token of it has unless its creator says otherwise.
struct Row {
    kind: TokenKind,
    name: &'static str,
    container: &'static str,
    fingerprint: &'static str,
    /// JSON, so that it reads here as it reads in an answer.
    mask: Option<&'static str>,
    search_indexes: &'static [&'static str],
}

/// In the order of the numbers.
static TABLE: [Row; 9] = [
    Row {
        kind: TokenKind::Token,
        name: "token",
        container: "/general/high/",
        fingerprint: "{{ data | stringify }}",
        mask: None,
        search_indexes: &[],
    },
    Row {
        kind: TokenKind::Card,
        name: "card",
        container: "/pci/high/",
        fingerprint: "{{ data.number }}",
        mask: Some(CARD_MASK),
        search_indexes: &[],
    },
    Row {
        kind: TokenKind::CardNumber,
        name: "card_number",
        container: "/pci/high/",
        fingerprint: "{{ data }}",
        mask: Some(LAST4_MASK),
        search_indexes: &[],
    },
    Row {
        kind: TokenKind::NetworkToken,
        name: "network_token",
        container: "/pci/high/",
        fingerprint: "{{ data.number }}",
        mask: Some(CARD_MASK),
        search_indexes: &[],
    },
    Row {
        kind: TokenKind::Bank,
        name: "bank",
        container: "/bank/high/",
        fingerprint: "{{ data.account_number }}|{{ data.routing_number }}",
        mask: Some(BANK_MASK),
        search_indexes: &[],
    },
    Row {
        kind: TokenKind::UsBankAccountNumber,
        name: "us_bank_account_number",
        container: "/bank/high/",
        fingerprint: "{{ data }}",
        mask: Some(LAST4_MASK),
        search_indexes: &[],
    },
    Row {
        kind: TokenKind::UsBankRoutingNumber,
        name: "us_bank_routing_number",
        container: "/bank/low/",
        fingerprint: "{{ data }}",
        mask: Some(LAST4_MASK),
        search_indexes: &[],
    },
    Row {
        kind: TokenKind::SocialSecurityNumber,
        name: "social_security_number",
        container: "/pii/high/",
        fingerprint: "{{ data | remove: '-' }}",
        mask: Some(LAST4_MASK),
        search_indexes: DASHED_INDEXES,
    },
    Row {
        kind: TokenKind::EmployerIdNumber,
        name: "employer_id_number",
        container: "/pii/high/",
        fingerprint: "{{ data | remove: '-' }}",
        mask: Some(LAST4_MASK),
        search_indexes: DASHED_INDEXES,
    },
];

const LAST4_MASK: &str = r#""{{ data | reveal_last: 4 }}""#;

const CARD_MASK: &str = r#"{
    "number": "{{ data.number | reveal_last: 4 }}",
    "expiration_month": "{{ data.expiration_month }}",
    "expiration_year": "{{ data.expiration_year }}"
}"#;

const BANK_MASK: &str = r#"{
    "routing_number": "{{ data.routing_number }}",
    "account_number": "{{ data.account_number | reveal_last: 4 }}"
}"#;

/// Found as it was given, without its dashes, and by its end.
const DASHED_INDEXES: &[&str] = &[
    "{{ data }}",
    "{{ data | replace: '-' }}",
    "{{ data | last4 }}",
];

/// A mask as it is shown and as it is applied.
pub struct DefaultMask {
    pub shown: Value,
    pub mask: Mask,
}

static MASKS: LazyLock<[Option<DefaultMask>; 9]> = LazyLock::new(|| {
    TABLE.each_ref().map(|row| {
        let shown = serde_json::from_str(row.mask?).ok()?;
        let mask = Mask::parse(&shown).ok()?;
        Some(DefaultMask { shown, mask })
    })
});

/// In descriptions, a type is one of the names.
impl PartialSchema for TokenKind {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .enum_values(Some(TABLE.iter().map(|row| row.name)))
            .into()
    }
}

impl ToSchema for TokenKind {
    fn name() -> Cow<'static, str> {
        "TokenType".into()
    }
}

impl TokenKind {
    pub const ALL: [Self; 9] = {
        let mut all = [Self::Token; 9];
        let mut position = 0;
        while position < all.len() {
            all[position] = TABLE[position].kind;
            // Types find their row by number, so a row in the wrong place must not compile.
            assert!(all[position].position() == position);
            position += 1;
        }
        all
    };

    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    pub fn from_number(number: i16) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as i16 == number)
    }

    pub fn name(self) -> &'static str {
        self.row().name
    }

    pub fn default_container(self) -> Container {
        Container::known(self.row().container)
    }

    pub fn default_mask(self) -> Option<&'static DefaultMask> {
        MASKS[self.position()].as_ref()
    }

    /// What tokens of this type are compared by.
    pub fn default_fingerprint_expression(self) -> &'static str {
        self.row().fingerprint
    }

    /// What tokens of this type are found by.
    pub fn default_search_indexes(self) -> &'static [&'static str] {
        self.row().search_indexes
    }

    /// Whether the data may hold a `cvc`, which is kept apart from the rest and for less long.
    pub fn has_security_code(self) -> bool {
        matches!(self, Self::Card | Self::NetworkToken)
    }

    fn row(self) -> &'static Row {
        &TABLE[self.position()]
    }

    const fn position(self) -> usize {
        self as usize - 1
    }
}

#[cfg(test)]
mod tests {
    use cloakroom_expressions::{Context, Scope, Template};
    use serde_json::json;

    use super::*;

    #[test]
    fn every_type_is_found_by_name_and_number() {
        for kind in TokenKind::ALL {
            assert_eq!(TokenKind::parse(kind.name()), Some(kind));
            assert_eq!(TokenKind::from_number(kind as i16), Some(kind));
        }
        for name in ["Card", "CARD", "", " card", "cvc", "card_Number"] {
            assert_eq!(TokenKind::parse(name), None, "{name}");
        }
        for number in [i16::MIN, -1, 0, 10, i16::MAX] {
            assert_eq!(TokenKind::from_number(number), None, "{number}");
        }
    }

    /// Type, number, container, fingerprint, mask, search indexes, security code: as documented.
    type Documented = (
        &'static str,
        i16,
        &'static str,
        &'static str,
        Value,
        Value,
        bool,
    );

    fn documented() -> [Documented; 9] {
        let m1 = json!({
            "number": "{{ data.number | reveal_last: 4 }}",
            "expiration_month": "{{ data.expiration_month }}",
            "expiration_year": "{{ data.expiration_year }}",
        });
        let m2 = json!({
            "routing_number": "{{ data.routing_number }}",
            "account_number": "{{ data.account_number | reveal_last: 4 }}",
        });
        let last4 = json!("{{ data | reveal_last: 4 }}");
        let i1 = json!([
            "{{ data }}",
            "{{ data | replace: '-' }}",
            "{{ data | last4 }}"
        ]);
        let account_and_routing = "{{ data.account_number }}|{{ data.routing_number }}";
        let number = "{{ data.number }}";
        let no_dashes = "{{ data | remove: '-' }}";
        #[rustfmt::skip]
        let rows = [
            ("token", 1, "/general/high/", "{{ data | stringify }}", json!(null), json!([]), false),
            ("card", 2, "/pci/high/", number, m1.clone(), json!([]), true),
            ("card_number", 3, "/pci/high/", "{{ data }}", last4.clone(), json!([]), false),
            ("network_token", 4, "/pci/high/", number, m1, json!([]), true),
            ("bank", 5, "/bank/high/", account_and_routing, m2, json!([]), false),
            ("us_bank_account_number", 6, "/bank/high/", "{{ data }}", last4.clone(), json!([]), false),
            ("us_bank_routing_number", 7, "/bank/low/", "{{ data }}", last4.clone(), json!([]), false),
            ("social_security_number", 8, "/pii/high/", no_dashes, last4.clone(), i1.clone(), false),
            ("employer_id_number", 9, "/pii/high/", no_dashes, last4, i1, false),
        ];
        rows
    }

    #[test]
    fn every_type_brings_along_what_is_documented() {
        let rows = documented();
        assert_eq!(rows.len(), TokenKind::ALL.len());
        for (name, number, container, fingerprint, mask, search_indexes, has_code) in rows {
            let kind = TokenKind::parse(name).unwrap();
            let shown = kind
                .default_mask()
                .map_or(Value::Null, |mask| mask.shown.clone());
            assert_eq!(kind as i16, number, "{name}");
            assert_eq!(kind.default_container().as_str(), container, "{name}");
            assert_eq!(
                Container::parse(container),
                Ok(kind.default_container()),
                "{name}"
            );
            assert_eq!(kind.default_fingerprint_expression(), fingerprint, "{name}");
            assert_eq!(shown.to_string(), mask.to_string(), "{name}");
            assert_eq!(
                json!(kind.default_search_indexes()),
                search_indexes,
                "{name}"
            );
            assert_eq!(kind.has_security_code(), has_code, "{name}");
        }
    }

    /// Type, data, and what the defaults make of it: mask, fingerprint, search indexes.
    type Evaluated = (
        &'static str,
        Value,
        Value,
        &'static str,
        &'static [&'static str],
    );

    fn evaluated() -> [Evaluated; 10] {
        let card = json!({
            "number": "4242424242424242", "expiration_month": 4, "expiration_year": 2025,
        });
        let masked_card = json!({
            "number": "XXXXXXXXXXXX4242", "expiration_month": 4, "expiration_year": 2025,
        });
        let bare = json!({"number": "378282246310005"});
        let masked_bare = json!({
            "number": "XXXXXXXXXXX0005", "expiration_month": null, "expiration_year": null,
        });
        let bank = json!({"routing_number": "021000021", "account_number": "00001"});
        let masked_bank = json!({"routing_number": "021000021", "account_number": "X0001"});
        let ssn: &[&str] = &["078-05-1120", "078051120", "1120"];
        let ein: &[&str] = &["12-3456789", "123456789", "6789"];
        #[rustfmt::skip]
        let rows: [Evaluated; 10] = [
            ("token", json!({"b": 1.50, "a": [true]}), json!(null), r#"{"b":1.5,"a":[true]}"#, &[]),
            ("card", card.clone(), masked_card.clone(), "4242424242424242", &[]),
            ("card", bare, masked_bare, "378282246310005", &[]),
            ("card_number", json!("4242424242424242"), json!("XXXXXXXXXXXX4242"), "4242424242424242", &[]),
            ("network_token", card, masked_card, "4242424242424242", &[]),
            ("bank", bank, masked_bank, "00001|021000021", &[]),
            ("us_bank_account_number", json!("0123456"), json!("XXX3456"), "0123456", &[]),
            ("us_bank_routing_number", json!("021000021"), json!("XXXXX0021"), "021000021", &[]),
            ("social_security_number", json!("078-05-1120"), json!("XXX-XX-1120"), "078051120", ssn),
            ("employer_id_number", json!("12-3456789"), json!("XX-XXX6789"), "123456789", ein),
        ];
        rows
    }

    #[test]
    fn the_defaults_evaluate_to_what_is_documented() {
        for (name, data, masked, fingerprint, search_indexes) in evaluated() {
            let kind = TokenKind::parse(name).unwrap();
            let mask = kind.default_mask();
            let evaluate = |context, text| {
                let template = Template::parse(context, text).unwrap();
                template
                    .evaluate_to_text(&Scope::of(&[("data", &data)]))
                    .unwrap()
            };
            let print = evaluate(Context::Fingerprint, kind.default_fingerprint_expression());
            let indexes: Vec<String> = (kind.default_search_indexes().iter())
                .map(|text| evaluate(Context::SearchIndex, text))
                .collect();
            assert_eq!(
                mask.map_or(Value::Null, |mask| mask.mask.apply(&data)),
                masked,
                "{name}"
            );
            assert_eq!(print, fingerprint, "{name}");
            assert_eq!(indexes, search_indexes, "{name}");
        }
    }
}
