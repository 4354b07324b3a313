//! Bodies of requests.

use cloakroom_platform::api::optional_object;
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::requests::DeviceInfo;
use crate::sessions::{CallbackUrls, NewSession};

/// A session to create.
#[derive(Deserialize, ToSchema)]
pub(super) struct NewThreedsBody {
    /// A token that contains a card number. Either `token_id` or `token_intent_id` is required.
    token_id: Option<String>,
    token_intent_id: Option<String>,
    /// Deprecated name of `token_id`. Must not be a card number.
    #[schema(deprecated)]
    pub(super) pan: Option<String>,
    /// `customer` (default) or `merchant`.
    #[serde(rename = "type")]
    kind: Option<String>,
    /// `browser` or `app`; required for customers.
    device: Option<String>,
    /// Device data; required for browsers.
    #[serde(default, deserialize_with = "optional_object")]
    device_info: Option<DeviceInfo>,
    /// `iframe` or `redirect`.
    web_challenge_mode: Option<String>,
    /// Authentication request that the hosted page sends. Requires `callback_urls`.
    #[schema(value_type = Option<AuthenticateBody>)]
    authentication_request: Option<Map<String, Value>>,
    #[serde(default, deserialize_with = "optional_object")]
    callback_urls: Option<CallbackUrls>,
    #[schema(value_type = Option<std::collections::BTreeMap<String, String>>)]
    metadata: Option<Map<String, Value>>,
}

impl From<NewThreedsBody> for NewSession {
    fn from(body: NewThreedsBody) -> Self {
        Self {
            token_id: body.token_id,
            token_intent_id: body.token_intent_id,
            pan: body.pan,
            kind: body.kind,
            device: body.device,
            device_info: body.device_info,
            web_challenge_mode: body.web_challenge_mode,
            authentication_request: body.authentication_request,
            callback_urls: body.callback_urls,
            metadata: body.metadata,
        }
    }
}

/// Device data of an app.
#[derive(Deserialize, ToSchema)]
pub(super) struct DeviceBody {
    pub(super) device_info: Option<DeviceInfo>,
}

/// An authentication request. docs/api/threeds.md describes when each field is required and its format.
#[expect(
    dead_code,
    reason = "only describes the schema; the handler validates the body field by field"
)]
#[derive(ToSchema)]
pub(super) struct AuthenticateBody {
    /// `payment` or `non-payment`.
    authentication_category: String,
    authentication_type: String,
    #[schema(nullable = false)]
    card_brand: Option<String>,
    #[schema(nullable = false)]
    request_decoupled_challenge: Option<bool>,
    /// Minutes.
    #[schema(nullable = false, minimum = 1, maximum = 10080)]
    decoupled_challenge_max_time: Option<u32>,
    #[schema(nullable = false)]
    challenge_preference: Option<String>,
    #[schema(nullable = false, value_type = Option<Object>)]
    purchase_info: Option<Value>,
    #[schema(nullable = false, value_type = Option<Object>)]
    merchant_info: Option<Value>,
    #[schema(value_type = Object)]
    requestor_info: Value,
    #[schema(value_type = Object)]
    cardholder_info: Value,
    #[schema(nullable = false, value_type = Option<Object>)]
    broadcast_info: Option<Value>,
    #[schema(nullable = false, value_type = Option<Vec<Object>>)]
    message_extensions: Option<Value>,
    #[schema(nullable = false, value_type = Option<std::collections::BTreeMap<String, String>>)]
    metadata: Option<Value>,
}
