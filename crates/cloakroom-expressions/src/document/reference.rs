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
        let unprefixed = match context {
            Context::Transform => ("variable", ReferenceKind::Variable, text),
            _ => ("id", ReferenceKind::TokenData, text),
        };
        let (name, kind, id) = prefixed.unwrap_or(unprefixed);
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

/// The text between single or double quotes, if it has them.
fn unquoted(text: &str) -> &str {
    let between = |quote| text.strip_prefix(quote)?.strip_suffix(quote);
    between('\'').or_else(|| between('"')).unwrap_or(text)
}
