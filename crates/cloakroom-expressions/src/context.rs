//! `Context`: where an expression is used, which determines what it may contain.

use crate::{ReferenceKind, TEXT_CHARACTERS_MAX};

/// The variable with the configuration of a proxy. No expression can name it: it yields keys of `hmac` only.
pub const CONFIGURATION: &str = "proxy configuration";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Context {
    IdAlias,
    Fingerprint,
    SearchIndex,
    Mask,
    /// A body sent to `/detokenize`.
    Detokenize,
    /// A request to a proxy or a reactor.
    Proxy,
    /// An option of a proxy's transform.
    Transform,
}

impl Context {
    /// Maximum length of an expression, in characters.
    pub fn text_characters_max(self) -> usize {
        match self {
            Self::IdAlias => 1000,
            Self::Fingerprint | Self::SearchIndex => 400,
            Self::Mask | Self::Detokenize | Self::Proxy | Self::Transform => TEXT_CHARACTERS_MAX,
        }
    }

    /// The available variables. All others are null, even if the scope contains them.
    pub(crate) fn variables(self) -> &'static [&'static str] {
        match self {
            Self::IdAlias | Self::SearchIndex | Self::Mask => &["data"],
            Self::Fingerprint => &["data", "metadata"],
            Self::Detokenize | Self::Transform => &[],
            Self::Proxy => &["proxy", CONFIGURATION],
        }
    }

    /// Whether random filters are allowed. Fingerprints and search terms are compared, so they must be deterministic.
    pub(crate) fn allows_random(self) -> bool {
        !matches!(self, Self::Fingerprint | Self::SearchIndex)
    }

    /// Whether trailing text that is not a filter is ignored. Ignoring it in a mask would reveal the whole number in
    /// `{{ data.number, last4 }}`.
    pub(crate) fn ignores_trailing_text(self) -> bool {
        self != Self::Mask
    }

    /// Whether an empty result is an error.
    pub(crate) fn requires_text(self) -> bool {
        matches!(self, Self::Fingerprint | Self::SearchIndex)
    }

    /// Whether an expression belongs to a proxied request.
    pub(crate) fn is_proxy(self) -> bool {
        self == Self::Proxy
    }

    pub(crate) fn allows(self, kind: ReferenceKind) -> bool {
        use ReferenceKind::{Config, TransformIdentifier, Variable};
        match self {
            Self::Proxy => !matches!(kind, Config | Variable | TransformIdentifier),
            Self::Detokenize => !matches!(kind, Config | Variable | TransformIdentifier),
            Self::Transform => matches!(kind, Config | Variable | TransformIdentifier),
            Self::IdAlias | Self::Fingerprint | Self::SearchIndex | Self::Mask => false,
        }
    }
}
