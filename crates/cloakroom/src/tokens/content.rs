//! Everything about a token that clients decide, checked and ready to be sealed.

use std::borrow::Cow;
use std::sync::Arc;

use cloakroom_crypto::{Fingerprint, Sensitive};
use cloakroom_expressions::{Context, Template};
use serde_json::{Map, Value};

use super::Error;
use super::token::{Bound, TokenData};
use crate::access::Container;
use crate::keys::{self, TenantKeys};
use crate::token_attributes::{
    Digests, Expiry, Findable, FingerprintBy, NO_MASK, TokenId, card_numbers_of, evaluate_to_text,
    parse_template,
};
use crate::token_types::TokenKind;

/// A token without its id, its history and its security code.
pub(super) struct Content {
    pub kind: TokenKind,
    pub data: TokenData,
    pub container: Container,
    /// JSON; without one the type's own applies, and `null` is no mask at all.
    pub mask: Option<String>,
    /// A JSON object of strings.
    pub metadata: Option<String>,
    pub expiry: Option<Expiry>,
    /// Only what the client gave; otherwise the type's own applies.
    pub fingerprint_expression: Option<String>,
    /// A JSON array of expressions; without one the type's own apply.
    pub search_indexes: Option<String>,
}

impl Content {
    pub(super) fn data_value(&self) -> Result<Value, keys::Error> {
        // Data was checked before it was sealed, so text that is not JSON did not come from here.
        serde_json::from_slice(self.data.expose()).map_err(|_| keys::Error::Integrity)
    }

    /// What the token is to be found by.
    ///
    /// It has a fingerprint when an expression was given for it, or when someone wants one anyway.
    pub(super) fn digests(
        &self,
        keys: &TenantKeys,
        wants_fingerprint: bool,
    ) -> Result<Digests, Error> {
        let data = self.data_value()?;
        let metadata = self.metadata_map();
        let given = self.fingerprint_template();
        let findable = Findable {
            kind: self.kind,
            data: &data,
            metadata: metadata.as_ref(),
            fingerprint: match &given {
                Some(template) => FingerprintBy::Given(template),
                None if wants_fingerprint => FingerprintBy::Type,
                None => FingerprintBy::Nothing,
            },
            search_indexes: &self.search_templates(),
        };
        findable.digest(keys).map_err(Error::Invalid)
    }

    /// The card numbers that are tried with this token.
    pub(super) fn card_numbers(&self) -> Result<Vec<Sensitive<String>>, keys::Error> {
        let data = self.data_value()?;
        let given = self.fingerprint_template().and_then(|template| {
            let metadata = self.metadata_map().map_or(Value::Null, Value::Object);
            let variables = [("data", &data), ("metadata", &metadata)];
            evaluate_to_text(&template, &variables).ok()
        });
        Ok(card_numbers_of(self.kind, &data, given.as_deref()))
    }

    /// The expression that the client gave, if it did.
    fn fingerprint_template(&self) -> Option<Arc<Template>> {
        let text = self.fingerprint_expression.as_deref()?;
        parse_template(Context::Fingerprint, text).ok()
    }

    /// Seals the data for the row that it will be in.
    pub(super) fn seal(
        &self,
        keys: &TenantKeys,
        place: (&TokenId, u32),
        fingerprint: Option<&Fingerprint>,
    ) -> Result<Vec<u8>, keys::Error> {
        let (id, row_version) = place;
        let bound = Bound {
            id,
            kind: self.kind,
            container: &self.container,
            expiry: self.expiry,
            mask: self.mask.as_deref(),
            fingerprint,
        };
        keys.seal(&bound.record(row_version), self.data.expose())
    }

    pub(super) fn metadata_map(&self) -> Option<Map<String, Value>> {
        serde_json::from_str(self.metadata.as_deref()?).ok()
    }

    fn search_templates(&self) -> Vec<Arc<Template>> {
        shown_search_indexes(self.kind, self.search_indexes.as_deref())
            .iter()
            .filter_map(|text| parse_template(Context::SearchIndex, text).ok())
            .collect()
    }
}

/// The search indexes of a token, its type's own included.
pub(super) fn shown_search_indexes(kind: TokenKind, kept: Option<&str>) -> Vec<String> {
    match kept {
        Some(text) => serde_json::from_str(text).unwrap_or_default(),
        None => kind
            .default_search_indexes()
            .iter()
            .map(|text| (*text).to_owned())
            .collect(),
    }
}

/// The mask of a token as it is shown, its type's own included.
pub(super) fn shown_mask(kind: TokenKind, kept: Option<&str>) -> Option<Cow<'static, Value>> {
    match kept {
        Some(NO_MASK) => None,
        Some(text) => serde_json::from_str(text).ok().map(Cow::Owned),
        None => kind.default_mask().map(|mask| Cow::Borrowed(&mask.shown)),
    }
}
