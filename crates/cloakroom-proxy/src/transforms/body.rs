//! A transform as it is sent, stored and returned.

use cloakroom_platform::api::optional_object;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// A transform. It is returned as it was sent: clients compare the two.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TransformBody {
    /// `mask`, `tokenize`, `append_json`, `append_text` or `append_header`. `code` is not built.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub kind: Option<String>,
    /// Not built: JavaScript is not executed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub code: Option<String>,
    /// For `mask`: `regex` or `chase_stratus_pan`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub matcher: Option<String>,
    /// For `mask` with `regex`: an expression with at least one capture group.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, max_length = 1000)]
    pub expression: Option<String>,
    /// For `mask`: the character that replaces each masked one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub replacement: Option<String>,
    #[serde(
        default,
        deserialize_with = "optional_object",
        skip_serializing_if = "Option::is_none"
    )]
    #[schema(nullable = false)]
    pub options: Option<TransformOptionsBody>,
}

impl TransformBody {
    /// Whether it adds something to what the caller sent.
    pub(crate) fn appends(&self) -> bool {
        let kind = self.kind.as_deref();
        kind.is_some_and(|kind| kind.starts_with("append_"))
    }
}

/// Options of `tokenize` and of the `append` transforms.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TransformOptionsBody {
    /// For `tokenize`: the name by which later transforms refer to the token.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, max_length = 100)]
    pub identifier: Option<String>,
    /// For `append` transforms: the value, usually text with expressions.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
    pub value: Option<Value>,
    /// For `append_json`: a JSON path such as `$.card.token_id`. For `append_header`: the name of the header.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub location: Option<String>,
    /// For `tokenize`: the body of a request to create a token, whose strings may contain expressions.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
    pub token: Option<Value>,
    /// Not built: belongs to `code`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
    pub runtime: Option<Value>,
}

/// An empty string counts as absent: some clients send every attribute.
pub(super) fn given(text: Option<&String>) -> Option<&str> {
    text.map(String::as_str).filter(|text| !text.is_empty())
}
