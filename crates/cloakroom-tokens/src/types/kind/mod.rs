//! The table of token types: names and defaults.

use std::borrow::Cow;
use std::sync::LazyLock;

use cloakroom_core::access::Container;
use cloakroom_expressions::Mask;
use serde_json::Value;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

/// The type of a token. The discriminants are stored in the database.
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

/// The name of a type and the defaults of its tokens.
struct Row {
    kind: TokenKind,
    name: &'static str,
    container: &'static str,
    fingerprint: &'static str,
    /// JSON, as in responses.
    mask: Option<&'static str>,
    search_indexes: &'static [&'static str],
}

/// In the order of the discriminants.
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

/// As sent, without dashes, and the last four.
const DASHED_INDEXES: &[&str] = &[
    "{{ data }}",
    "{{ data | replace: '-' }}",
    "{{ data | last4 }}",
];

/// A default mask in its response form and in its parsed form.
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

/// In the OpenAPI schema, a type is one of the names.
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
            // Rows are indexed by discriminant, so a misplaced row must not compile.
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

    pub fn default_fingerprint_expression(self) -> &'static str {
        self.row().fingerprint
    }

    pub fn default_search_indexes(self) -> &'static [&'static str] {
        self.row().search_indexes
    }

    /// Whether the data may contain a `cvc`, which is stored separately and for a shorter time.
    pub fn has_security_code(self) -> bool {
        matches!(self, Self::Card | Self::NetworkToken)
    }

    /// Whether the data is or contains a card number, of which at most BIN and last four are displayed.
    pub fn is_card(self) -> bool {
        matches!(self, Self::Card | Self::CardNumber | Self::NetworkToken)
    }

    /// Whether a value could be found by comparing fingerprints of all possible values.
    pub fn is_low_entropy(self) -> bool {
        !matches!(
            self,
            Self::Token | Self::Card | Self::CardNumber | Self::NetworkToken
        )
    }

    /// Whether a value of this low-entropy type can have `count` digits, so that a search for it counts toward the
    /// velocity limit.
    pub fn may_have_digits(self, count: usize) -> bool {
        match self {
            Self::SocialSecurityNumber | Self::EmployerIdNumber | Self::UsBankRoutingNumber => {
                count == 9
            }
            Self::Bank | Self::UsBankAccountNumber => (1..=17).contains(&count),
            Self::Token | Self::Card | Self::CardNumber | Self::NetworkToken => false,
        }
    }

    fn row(self) -> &'static Row {
        &TABLE[self.position()]
    }

    const fn position(self) -> usize {
        self as usize - 1
    }
}

#[cfg(test)]
mod tests;
