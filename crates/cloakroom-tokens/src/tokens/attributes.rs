//! The attributes of a token that clients set besides its type, container and data, in their stored form.

use std::borrow::Cow;
use std::sync::Arc;

use cloakroom_core::access::TenantSettings;
use cloakroom_expressions::{Context, Template};
use cloakroom_platform::api::FieldError;
use serde_json::{Map, Value};

use super::NewToken;
use crate::attributes::{self as attributes, Expiry, NO_MASK, ok_or_collect, parse_template};
use crate::types::TokenKind;

/// The attributes of a token, validated.
#[derive(Clone, Debug, Default)]
pub struct TokenAttributes {
    pub expiry: Option<Expiry>,
    /// JSON; `None` means the default of the type, and `null` means no mask.
    pub mask: Option<String>,
    /// A JSON object of strings.
    pub metadata: Option<String>,
    /// The client's expression; `None` means the default of the type.
    pub fingerprint_expression: Option<String>,
    /// A JSON array of expressions; `None` means the defaults of the type.
    pub search_indexes: Option<String>,
}

impl TokenAttributes {
    /// Validates the attributes of a request and collects all violations.
    pub fn validate(
        new: &mut NewToken<'_>,
        kind: Option<TokenKind>,
        settings: &TenantSettings,
        broken: &mut Vec<FieldError>,
    ) -> Self {
        let mask = new.mask.take();
        let mask = mask.and_then(|mask| ok_or_collect(attributes::mask(&mask), broken));
        let metadata = attributes::metadata(new.metadata.take().unwrap_or_default(), settings);
        let metadata = ok_or_collect(metadata, broken).flatten();
        let search_indexes = new
            .search_indexes
            .take()
            .and_then(|list| ok_or_collect(attributes::search_indexes(&list, kind), broken));
        let fingerprint_expression = new
            .fingerprint_expression
            .take()
            .and_then(|text| ok_or_collect(attributes::fingerprint_expression(text, kind), broken));
        let expires_at = new.expires_at.take();
        let expiry = expires_at.and_then(|text| ok_or_collect(attributes::expiry(&text), broken));
        Self {
            expiry,
            mask,
            metadata,
            fingerprint_expression,
            search_indexes,
        }
    }

    /// The mask, including the default of the type.
    pub(super) fn shown_mask(&self, kind: TokenKind) -> Option<Cow<'static, Value>> {
        match self.mask.as_deref() {
            Some(NO_MASK) => None,
            Some(text) => serde_json::from_str(text).ok().map(Cow::Owned),
            None => kind.default_mask().map(|mask| Cow::Borrowed(&mask.shown)),
        }
    }

    /// The search indexes, including the defaults of the type.
    pub(super) fn shown_search_indexes(&self, kind: TokenKind) -> Vec<String> {
        match &self.search_indexes {
            Some(text) => serde_json::from_str(text).unwrap_or_default(),
            None => kind
                .default_search_indexes()
                .iter()
                .map(|text| (*text).to_owned())
                .collect(),
        }
    }

    /// The fingerprint expression, including the default of the type.
    pub(super) fn shown_fingerprint_expression(&self, kind: TokenKind) -> &str {
        let given = self.fingerprint_expression.as_deref();
        given.unwrap_or_else(|| kind.default_fingerprint_expression())
    }

    /// Whether the client set a fingerprint expression.
    pub(super) fn has_own_fingerprint(&self) -> bool {
        self.fingerprint_expression.is_some()
    }

    /// The client's fingerprint expression.
    pub(super) fn fingerprint_template(&self) -> Option<Arc<Template>> {
        let text = self.fingerprint_expression.as_deref()?;
        parse_template(Context::Fingerprint, text).ok()
    }

    pub fn metadata_map(&self) -> Option<Map<String, Value>> {
        serde_json::from_str(self.metadata.as_deref()?).ok()
    }

    /// Replaces the expressions that `given` sets.
    pub(super) fn replace_expressions(&mut self, given: &Self) {
        let replace = |stored: &mut Option<String>, given: &Option<String>| {
            if given.is_some() {
                stored.clone_from(given);
            }
        };
        replace(
            &mut self.fingerprint_expression,
            &given.fingerprint_expression,
        );
        replace(&mut self.search_indexes, &given.search_indexes);
    }

    /// The first attribute that the client set and that determines what is disclosed about the data.
    pub(super) fn chosen_disclosure(&self) -> Option<&'static str> {
        let chosen = [
            ("mask", self.mask.is_some()),
            ("fingerprint_expression", self.has_own_fingerprint()),
            ("search_indexes", self.search_indexes.is_some()),
        ];
        first_set(chosen)
    }

    /// The first attribute whose change could disclose more than `before`. Removing a mask or search indexes discloses
    /// less.
    pub(super) fn widened_disclosure(
        &self,
        before: &Self,
        kind: TokenKind,
    ) -> Option<&'static str> {
        let indexes_before = before.shown_search_indexes(kind);
        let has_new_index = self
            .shown_search_indexes(kind)
            .iter()
            .any(|index| !indexes_before.contains(index));
        let changes_expression = self.fingerprint_expression != before.fingerprint_expression;
        let widened = [
            (
                "mask",
                self.mask != before.mask && self.mask.as_deref() != Some(NO_MASK),
            ),
            ("fingerprint_expression", changes_expression),
            ("search_indexes", has_new_index),
        ];
        first_set(widened)
    }
}

fn first_set<const N: usize>(attributes: [(&'static str, bool); N]) -> Option<&'static str> {
    let set = attributes.into_iter().find(|(_, is_set)| *is_set);
    set.map(|(attribute, _)| attribute)
}
