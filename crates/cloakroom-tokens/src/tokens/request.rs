//! Requests to create and to update a token, not yet validated.

use cloakroom_core::access::Container;
use cloakroom_platform::api::Object;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::attributes::Privacy;
use crate::types::TokenKind;

/// A token to create.
#[derive(Deserialize, ToSchema)]
#[schema(as = NewTokenBody)]
pub struct NewToken<'a> {
    /// A custom id, or an expression that derives one from the data. Defaults to a UUID.
    #[schema(min_length = 3, max_length = 1000)]
    pub id: Option<String>,
    /// The type of the data, which determines its validation. Required unless `token_intent_id` is set.
    #[serde(rename = "type")]
    #[schema(value_type = Option<TokenKind>)]
    pub kind: Option<String>,
    /// A JSON value that is valid for the type and not null. Required unless `encrypted` or `token_intent_id` is set.
    #[serde(borrow)]
    #[schema(value_type = Value, required = false)]
    pub data: Option<&'a RawValue>,
    /// The data as a compact JWE (`ECDH-ES`, `A256GCM`) for a client encryption key; replaces `data`.
    pub encrypted: Option<String>,
    /// What readers see instead of the data unless a rule reveals it. Defaults to the mask of the type.
    pub mask: Option<Value>,
    /// Exactly one path, such as `/pci/high/`. Defaults to the container of the type.
    #[schema(value_type = Option<Vec<Container>>, min_items = 1, max_items = 1)]
    pub containers: Option<Vec<String>>,
    /// Deprecated: determines the container if `containers` is absent.
    #[schema(value_type = Option<Privacy>)]
    pub privacy: Option<Object<Privacy>>,
    /// Plaintext strings stored with the token. Entries that are null are dropped.
    #[schema(value_type = Option<BTreeMap<String, Option<String>>>)]
    pub metadata: Option<Map<String, Value>>,
    /// Expressions whose values the token can be searched by. Defaults to those of the type.
    #[schema(max_items = 10)]
    pub search_indexes: Option<Vec<String>>,
    /// The expression that the fingerprint is computed from. Defaults to that of the type.
    #[schema(max_length = 400)]
    pub fingerprint_expression: Option<String>,
    /// Whether an existing token with the same fingerprint in the same container is returned instead of creating a
    /// new one. Defaults to the tenant's setting.
    pub deduplicate_token: Option<bool>,
    /// ISO 8601, or `month/day/year` with an optional time and offset.
    pub expires_at: Option<String>,
    /// An intent that supplies type and data. It is deleted, and its security code is not stored with the token.
    pub token_intent_id: Option<String>,
}

/// Changes to a token. Absent attributes are unchanged; `id`, `type` and unknown members are ignored.
#[derive(Default, Deserialize, ToSchema)]
#[schema(as = TokenPatchBody)]
pub struct TokenPatch {
    /// Merged into the data. A value that is not an object replaces it; null is rejected.
    #[serde(default)]
    #[schema(value_type = Option<Value>)]
    pub data: Change<Value>,
    /// Merged into the mask; null removes it.
    #[serde(default)]
    #[schema(value_type = Option<Value>)]
    pub mask: Change<Value>,
    /// Merged into the metadata. Null removes all entries; a null entry removes that entry.
    #[serde(default)]
    #[schema(value_type = Option<BTreeMap<String, Option<String>>>)]
    pub metadata: Change<Map<String, Value>>,
    /// Moves the token. Null moves it to the default container of its type.
    #[serde(default)]
    #[schema(value_type = Option<Vec<Container>>, min_items = 1, max_items = 1)]
    pub containers: Change<Vec<String>>,
    /// Replaces the search indexes; null removes them.
    #[serde(default)]
    #[schema(value_type = Option<Vec<String>>, max_items = 10)]
    pub search_indexes: Change<Vec<String>>,
    /// Replaces the expression. Null restores the default of the type.
    #[serde(default)]
    #[schema(value_type = Option<String>, max_length = 400)]
    pub fingerprint_expression: Change<String>,
    /// Applies to this request only. Defaults to the tenant's setting.
    pub deduplicate_token: Option<bool>,
    /// Replaces the expiry; null removes it.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    pub expires_at: Change<String>,
}

/// An attribute in a merge patch: absent, null, or a value.
#[derive(Clone, Default)]
pub enum Change<T> {
    #[default]
    Keep,
    Remove,
    Set(T),
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Change<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let given = Option::<T>::deserialize(deserializer)?;
        Ok(given.map_or(Self::Remove, Self::Set))
    }
}
