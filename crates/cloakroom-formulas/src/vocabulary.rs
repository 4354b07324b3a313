//! Enumerations of the catalog. The build script parses files with the same types.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The payment method of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    Card,
}

impl Method {
    pub const ALL: [Self; 1] = [Self::Card];

    pub fn name(self) -> &'static str {
        match self {
            Self::Card => "card",
        }
    }
}

/// The input format of a configuration value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    Text,
    Multiline,
}

impl Format {
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Multiline => "multiline",
        }
    }
}

/// Declares each feature: variant, name and description.
macro_rules! features {
    ($($variant:ident $name:ident $meaning:literal;)+) => {
        /// A capability of a connection besides charging a payment.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Feature { $(#[doc = $meaning] $variant),+ }

        impl Feature {
            /// All features, in the order of the API.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => stringify!($name)),+ }
            }
        }

        /// Which features a connection supports; all features are listed.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct Features { $(#[doc = $meaning] pub $name: bool),+ }

        impl Features {
            pub fn has(&self, feature: Feature) -> bool {
                match feature { $(Feature::$variant => self.$name),+ }
            }
        }
    };
}

features! {
    ThreeDSecurePassThrough three_d_secure_pass_through "Accepts external 3-D Secure results.";
    DelayedCapture delayed_capture "Captures a payment after its authorization.";
    PartialCapture partial_capture "Captures a part of the authorized amount.";
    PartialRefunds partial_refunds "Refunds a part of the captured amount.";
    Refunds refunds "Refunds a captured payment.";
    ZeroAuth zero_auth "Authorizes a zero amount to verify the card.";
    Void void "Cancels an authorization before its capture.";
}

/// A name that is not in the list of known names.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be {}", .0.join(" or "))]
pub struct UnknownName(Vec<&'static str>);

impl FromStr for Method {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, UnknownName> {
        find(&Self::ALL, Self::name, text)
    }
}

impl FromStr for Feature {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, UnknownName> {
        find(Self::ALL, Self::name, text)
    }
}

fn find<T: Copy>(all: &[T], name: fn(T) -> &'static str, text: &str) -> Result<T, UnknownName> {
    let found = all.iter().copied().find(|item| name(*item) == text);
    found.ok_or_else(|| UnknownName(all.iter().copied().map(name).collect()))
}
