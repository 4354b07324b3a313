//! A field of a request: when it is required, and its format.

use cloakroom_emv3ds::codes::{AuthenticationCategory, AuthenticationType};
use serde_json::{Map, Value};

use super::SessionKind;

/// A field of the authentication request.
#[derive(Debug)]
pub struct Field {
    pub path: &'static str,
    pub needed: Needed,
    pub takes: FieldType,
    /// AReq field that the value is sent in; empty if it is not sent.
    pub to: &'static str,
}

/// When a field is required. A nested field is required only if its object is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needed {
    Always,
    When(Condition),
    Never,
}

/// The values that a field accepts.
#[derive(Clone, Copy, Debug)]
pub enum FieldType {
    /// A string in the format of the AReq field.
    Text,
    /// A string that is transliterated to ASCII for the network.
    Words,
    /// A date or time, in the format of the AReq field or in ISO 8601.
    Date,
    /// Digits, padded with zeros to the length of the AReq field.
    Count,
    /// Any string.
    Free,
    Flag(fn(bool) -> &'static str),
    Named(Names),
    /// One of these strings, sent unchanged.
    OneOf(&'static [&'static str]),
    /// A number of minutes.
    Minutes,
    /// A currency, by numeric or alphabetic ISO 4217 code.
    Currency,
    /// An ISO 3166-2 subdivision, with or without the country prefix.
    Subdivision,
    Object,
    /// An object that is sent unchanged.
    Opaque,
    Extensions,
}

/// Names and their protocol codes.
#[derive(Clone, Copy, Debug)]
pub struct Names {
    pub all: fn() -> Vec<&'static str>,
    pub code: fn(&str) -> Option<&'static str>,
    /// Names without a code, which are accepted but not sent.
    pub unsent: &'static [&'static str],
}

/// The properties of a request that determine which fields are required.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    pub kind: SessionKind,
    pub category: Option<AuthenticationCategory>,
    pub purpose: Option<AuthenticationType>,
    pub requests_decoupled: bool,
    /// Whether the request names the 3DS Requestor, which is derived otherwise.
    pub names_requestor: bool,
    pub has_billing_state: bool,
    pub has_shipping_state: bool,
}

macro_rules! conditions {
    ($($variant:ident $words:literal |$case:ident| $holds:expr;)+) => {
        /// A condition under which a field is required.
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
    Decoupled "when request_decoupled_challenge is true, or type is merchant"
        |case| case.requests_decoupled || case.kind == SessionKind::Merchant;
    RequestorNamed "when another of id, name and url is given" |case| case.names_requestor;
    BillingState "when state_code is given" |case| case.has_billing_state;
    ShippingState "when state_code is given" |case| case.has_shipping_state;
}

impl Case {
    /// Determines the case of a request.
    pub fn of(kind: SessionKind, body: &Map<String, Value>) -> Self {
        let text = |name: &str| body.get(name).and_then(Value::as_str);
        let is_given = |path| value_at(body, path).is_some();
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
            requests_decoupled: decoupled
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
    /// The path of the parent object, and the field's name in it.
    pub fn split_path(&self) -> (Option<&'static str>, &'static str) {
        match self.path.rsplit_once('.') {
            None => (None, self.path),
            Some((parent, name)) => (Some(parent), name),
        }
    }

    /// Returns the field's value in a request; null counts as absent.
    pub fn find<'a>(&self, body: &'a Map<String, Value>) -> Option<&'a Value> {
        value_at(body, self.path)
    }
}

/// Returns the value at a dotted path; null counts as absent.
pub(super) fn value_at<'a>(body: &'a Map<String, Value>, path: &str) -> Option<&'a Value> {
    let found = match path.split_once('.') {
        None => body.get(path),
        Some((name, rest)) => value_at(body.get(name)?.as_object()?, rest),
    };
    found.filter(|value| !value.is_null())
}
