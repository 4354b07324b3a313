//! One field of a request: when it is needed and what it may hold.

use cloakroom_emv3ds::codes::{AuthenticationCategory, AuthenticationType};
use serde_json::{Map, Value};

use super::SessionKind;

/// A field of the request, by its path.
#[derive(Debug)]
pub struct Field {
    pub path: &'static str,
    pub needed: Needed,
    pub takes: Takes,
    /// Where it goes in the message to the network; empty if it decides something else.
    pub to: &'static str,
}

/// When a field must be there. One inside of an object matters only when the object is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needed {
    Always,
    When(Condition),
    Never,
}

/// What a field may hold.
#[derive(Clone, Copy, Debug)]
pub enum Takes {
    /// Text in the format of the field that it goes to.
    Text,
    /// Text of which a network sees at most what fits.
    Words,
    /// Any text at all.
    Free,
    Flag(fn(bool) -> &'static str),
    Named(Names),
    /// One of these texts, as it is.
    OneOf(&'static [&'static str]),
    /// Minutes, as a number.
    Minutes,
    /// A currency, by its number or its letters.
    Currency,
    /// A part of a country, with or without the country before it.
    Subdivision,
    Object,
    /// An object that is passed on as it is.
    Opaque,
    Extensions,
}

/// Names with the codes that stand for them.
#[derive(Clone, Copy, Debug)]
pub struct Names {
    pub all: fn() -> Vec<&'static str>,
    pub code: fn(&str) -> Option<&'static str>,
    /// Names without a code, which are taken and not sent.
    pub unsent: &'static [&'static str],
}

/// What a request is about, as far as it decides which fields are needed.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    pub kind: SessionKind,
    pub category: Option<AuthenticationCategory>,
    pub purpose: Option<AuthenticationType>,
    pub asks_decoupled: bool,
    /// Whether the requestor is named in full, and not derived.
    pub names_requestor: bool,
    pub has_billing_state: bool,
    pub has_shipping_state: bool,
}

macro_rules! conditions {
    ($($variant:ident $words:literal |$case:ident| $holds:expr;)+) => {
        /// A reason why a field is needed.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Condition { $($variant),+ }

        impl Condition {
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            pub fn holds(self, case: &Case) -> bool {
                match self { $(Self::$variant => { let $case = case; $holds }),+ }
            }

            /// Follows "is required".
            pub fn words(self) -> &'static str {
                match self { $(Self::$variant => $words),+ }
            }
        }
    };
}

conditions! {
    Payment "when authentication_category is payment" |case| case.is_payment();
    Purchase "when authentication_category is payment, or authentication_type is \
              recurring-transaction or installment-transaction"
        |case| case.is_payment() || case.is_recurring() || case.is_installment();
    Recurring "when authentication_type is recurring-transaction" |case| case.is_recurring();
    Installment "when authentication_type is installment-transaction" |case| case.is_installment();
    Decoupled "when request_decoupled_challenge is true, or the session is a merchant's"
        |case| case.asks_decoupled || case.kind == SessionKind::Merchant;
    RequestorNamed "when another of id, name and url is given" |case| case.names_requestor;
    BillingState "when state_code is given" |case| case.has_billing_state;
    ShippingState "when state_code is given" |case| case.has_shipping_state;
}

impl Case {
    /// Reads a request just far enough.
    pub fn of(kind: SessionKind, body: &Map<String, Value>) -> Self {
        let text = |name: &str| body.get(name).and_then(Value::as_str);
        let is_given = |path| at(body, path).is_some();
        let requestor = [
            "requestor_info.id",
            "requestor_info.name",
            "requestor_info.url",
        ];
        let decoupled = body.get("request_decoupled_challenge");
        Self {
            kind,
            category: text("authentication_category").and_then(AuthenticationCategory::from_name),
            purpose: text("authentication_type").and_then(AuthenticationType::from_name),
            asks_decoupled: decoupled
                .and_then(Value::as_bool)
                .unwrap_or(kind == SessionKind::Merchant),
            names_requestor: requestor.into_iter().any(is_given),
            has_billing_state: is_given("cardholder_info.billing_address.state_code"),
            has_shipping_state: is_given("cardholder_info.shipping_address.state_code"),
        }
    }

    pub fn is_payment(&self) -> bool {
        self.category == Some(AuthenticationCategory::Payment)
    }

    pub fn is_recurring(&self) -> bool {
        self.purpose == Some(AuthenticationType::RecurringTransaction)
    }

    pub fn is_installment(&self) -> bool {
        self.purpose == Some(AuthenticationType::InstallmentTransaction)
    }
}

impl Needed {
    pub fn holds(self, case: &Case) -> bool {
        match self {
            Self::Always => true,
            Self::When(condition) => condition.holds(case),
            Self::Never => false,
        }
    }
}

impl Field {
    /// The path of the object around it, and its own name in it.
    pub fn place(&self) -> (Option<&'static str>, &'static str) {
        match self.path.rsplit_once('.') {
            None => (None, self.path),
            Some((parent, name)) => (Some(parent), name),
        }
    }

    /// What a request holds for it; null is nothing.
    pub fn find<'a>(&self, body: &'a Map<String, Value>) -> Option<&'a Value> {
        at(body, self.path)
    }
}

/// The value at a path of names.
pub(super) fn at<'a>(body: &'a Map<String, Value>, path: &str) -> Option<&'a Value> {
    let found = match path.split_once('.') {
        None => body.get(path),
        Some((name, rest)) => at(body.get(name)?.as_object()?, rest),
    };
    found.filter(|value| !value.is_null())
}
