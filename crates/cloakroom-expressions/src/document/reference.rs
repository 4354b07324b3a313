//! References to tokens and other values.

use crate::{Context, ParseError};

/// A reference in a document, to be replaced by its value.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Reference {
    pub kind: ReferenceKind,
    pub id: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReferenceKind {
    /// `token: ID`: the whole token.
    Token,
    /// `ID`: the data of a token.
    TokenData,
    TokenIntent,
    NetworkToken,
    ApplePay,
    GooglePay,
    Config,
    /// `encrypted`: the decrypted content of the header `BT-ENCRYPTED`.
    Encrypted,
    /// `proxy`, or a path that starts with `proxy.`: the proxied request itself.
    Proxy,
    /// `transform_identifier: 'NAME'`: the token that an earlier transform of a proxy created.
    TransformIdentifier,
    /// `req.card.number`: a variable of a proxy's transform and the path to one of its members.
    Variable,
}

const PREFIXES: [(&str, ReferenceKind); 7] = [
    ("token", ReferenceKind::Token),
    ("token_intent", ReferenceKind::TokenIntent),
    ("network_token", ReferenceKind::NetworkToken),
    ("apple_pay", ReferenceKind::ApplePay),
    ("google_pay", ReferenceKind::GooglePay),
    ("config", ReferenceKind::Config),
    ("transform_identifier", ReferenceKind::TransformIdentifier),
];

impl Reference {
    /// A prefix selects the kind; anything else, including a literal, is a token id, or a variable in transforms.
    pub(super) fn parse(context: Context, text: &str) -> Result<Self, ParseError> {
        let prefixed = text.split_once(':').and_then(|(prefix, id)| {
            let mut prefixes = PREFIXES.into_iter();
            let found = prefixes.find(|(name, _)| *name == prefix.trim_end());
            found.map(|(name, kind)| (name, kind, id.trim()))
        });
        let (name, kind, id) = prefixed.unwrap_or_else(|| match text {
            _ if context == Context::Transform => ("variable", ReferenceKind::Variable, text),
            "encrypted" if context.is_proxy() => ("encrypted", ReferenceKind::Encrypted, text),
            _ if context.is_proxy() && is_configuration(text) => {
                ("config", ReferenceKind::Config, text)
            }
            _ if context.is_proxy() && is_proxy_path(text) => ("proxy", ReferenceKind::Proxy, text),
            _ => ("id", ReferenceKind::TokenData, text),
        });
        let id = match kind {
            ReferenceKind::TransformIdentifier => unquoted(id),
            _ => id,
        };
        if id.is_empty() {
            return Err(ParseError::NoValue);
        }
        if id.contains(['{', '}']) {
            return Err(ParseError::BadReference);
        }
        if !context.allows(kind) {
            return Err(ParseError::UnavailableReference(name));
        }
        Ok(Self {
            kind,
            id: id.to_owned(),
        })
    }
}

/// Whether a text is a variable path of the proxied request. A token with such an id is `{{ token: ID }}`.
fn is_proxy_path(text: &str) -> bool {
    let rest = text.strip_prefix("proxy");
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Whether a text is a path to configuration values, which only the key of a signature may be.
fn is_configuration(text: &str) -> bool {
    let rest = text.strip_prefix("proxy.config");
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// The text between single or double quotes, if it has them.
fn unquoted(text: &str) -> &str {
    let between = |quote| text.strip_prefix(quote)?.strip_suffix(quote);
    between('\'').or_else(|| between('"')).unwrap_or(text)
}
