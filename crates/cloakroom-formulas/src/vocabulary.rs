//! The words of a formula that come from closed lists. The build script reads files by the same words.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// How a connection takes payments.
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

/// How a configuration value is entered.
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

/// Lists every feature once: variant, name, and what it means.
macro_rules! features {
    ($($variant:ident $name:ident $meaning:literal;)+) => {
        /// Something that a connection can do besides taking a payment.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Feature { $(#[doc = $meaning] $variant),+ }

        impl Feature {
            /// Every feature, in the order of the interface.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => stringify!($name)),+ }
            }
        }

        /// What a connection can do and what it cannot; every feature is told.
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
    ThreeDSecurePassThrough three_d_secure_pass_through "3-D Secure results are handed on.";
    DelayedCapture delayed_capture "Authorized now, captured later.";
    PartialCapture partial_capture "A part of what was authorized is captured.";
    PartialRefunds partial_refunds "A part of what was captured is given back.";
    Refunds refunds "What was captured is given back.";
    ZeroAuth zero_auth "An amount of nothing is authorized, to try the card.";
    Void void "What was authorized and not yet captured is let go.";
}

/// A word that is not in its list.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be {}", .0.join(" or "))]
pub struct UnknownWord(Vec<&'static str>);

impl FromStr for Method {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<Self, UnknownWord> {
        find(&Self::ALL, Self::name, text)
    }
}

impl FromStr for Feature {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<Self, UnknownWord> {
        find(Self::ALL, Self::name, text)
    }
}

fn find<T: Copy>(all: &[T], name: fn(T) -> &'static str, text: &str) -> Result<T, UnknownWord> {
    let found = all.iter().copied().find(|word| name(*word) == text);
    found.ok_or_else(|| UnknownWord(all.iter().copied().map(name).collect()))
}
