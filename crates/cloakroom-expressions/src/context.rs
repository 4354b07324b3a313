//! `Context`: where an expression stands, which decides what it may hold.

use crate::{ReferenceKind, TEXT_CHARACTERS_MAX};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Context {
    IdAlias,
    Fingerprint,
    SearchIndex,
    Mask,
    /// What `/detokenize` is sent.
    Detokenize,
    /// What goes to a proxy or a reactor.
    Proxy,
}

impl Context {
    /// The longest text of one expression, in characters.
    pub fn text_characters_max(self) -> usize {
        match self {
            Self::IdAlias => 1000,
            Self::Fingerprint | Self::SearchIndex => 400,
            Self::Mask | Self::Detokenize | Self::Proxy => TEXT_CHARACTERS_MAX,
        }
    }

    /// The variables that exist; all others are missing, whatever the scope holds.
    pub(crate) fn variables(self) -> &'static [&'static str] {
        match self {
            Self::IdAlias | Self::SearchIndex | Self::Mask => &["data"],
            Self::Fingerprint => &["data", "metadata"],
            Self::Detokenize | Self::Proxy => &[],
        }
    }

    /// Whether a value may differ from one evaluation to the next: what is compared may not.
    pub(crate) fn allows_chance(self) -> bool {
        !matches!(self, Self::Fingerprint | Self::SearchIndex)
    }

    /// Whether text that is no filter is ignored. In a mask, ignoring `{{ data.number, last4 }}`'s
    /// end would show the whole number.
    pub(crate) fn ignores_tails(self) -> bool {
        self != Self::Mask
    }

    /// Whether an empty result is no result.
    pub(crate) fn needs_text(self) -> bool {
        matches!(self, Self::Fingerprint | Self::SearchIndex)
    }

    pub(crate) fn allows(self, kind: ReferenceKind) -> bool {
        match self {
            Self::Proxy => true,
            Self::Detokenize => !matches!(kind, ReferenceKind::TokenIntent | ReferenceKind::Config),
            Self::IdAlias | Self::Fingerprint | Self::SearchIndex | Self::Mask => false,
        }
    }
}
