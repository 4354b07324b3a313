//! Device data of the cardholder's browser or app.

use std::net::IpAddr;

use cloakroom_emv3ds::{MessageKind, field};
use cloakroom_platform::api::{FieldError, optional_object};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

const ACCEPT_MAX: usize = 2_048;
const LANGUAGE_MAX: usize = 8;

/// Device data of a browser or an app. Fields without a value are omitted.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct DeviceInfo {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub browser_accept_header: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub browser_ip: Option<String>,
    /// The same as `browser_ip`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub browser_ip_address: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub browser_javascript_enabled: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub browser_java_enabled: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub browser_language: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub browser_color_depth: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub browser_screen_height: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub browser_screen_width: Option<String>,
    /// Offset between UTC and local time, in minutes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub browser_tz: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub browser_user_agent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sdk_transaction_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sdk_application_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sdk_encryption_data: Option<String>,
    /// A JSON Web Key, as an object or a JSON string.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
    pub sdk_ephemeral_public_key: Option<Value>,
    /// Minutes, as two digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sdk_max_timeout: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sdk_reference_number: Option<String>,
    #[serde(
        deserialize_with = "optional_object",
        skip_serializing_if = "Option::is_none"
    )]
    pub sdk_render_options: Option<RenderOptions>,
    /// The Accept-Language header, sent from protocol version 2.3.1 on.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(ignore)]
    pub accept_language: Option<String>,
}

/// User interfaces that the app supports.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct RenderOptions {
    /// `01` native, `02` HTML, `03` both.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sdk_interface: Option<String>,
    /// `01` text, `02` single select, `03` multi select, `04` out of band, `05` HTML.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sdk_ui_type: Option<Vec<String>>,
}

/// Path in `device_info`, AReq field, and value.
type DeviceField = (&'static str, &'static str, Option<Value>);

impl DeviceInfo {
    /// Fills in the client address and the Accept header of the request, and sets both IP address fields.
    pub fn complete(&mut self, address: Option<String>, accept: Option<&str>) {
        let given = self.browser_ip.take().or(self.browser_ip_address.take());
        let given = given.filter(|address| address.parse::<IpAddr>().is_ok());
        self.browser_ip = given.or(address);
        self.browser_ip_address = self.browser_ip.clone();
        let accept = self
            .browser_accept_header
            .take()
            .or(accept.map(str::to_owned));
        let accept = accept.filter(|accept| !accept.trim().is_empty());
        let accept = accept.unwrap_or_else(|| "*/*".to_owned());
        self.browser_accept_header = Some(accept.chars().take(ACCEPT_MAX).collect());
    }

    /// Returns the missing or invalid fields of a browser.
    pub fn check_browser(&self) -> Vec<FieldError> {
        check(&self.browser())
    }

    /// Returns the missing or invalid fields of an app.
    pub fn check_app(&self) -> Vec<FieldError> {
        check(&self.app())
    }

    /// AReq fields of a browser.
    pub(super) fn browser_fields(&self) -> Map<String, Value> {
        fields(self.browser())
    }

    /// AReq fields of an app.
    pub(super) fn app_fields(&self) -> Map<String, Value> {
        fields(self.app())
    }

    /// Removes fields that are not part of the API.
    pub fn public_view(mut self) -> Self {
        self.accept_language = None;
        self
    }

    /// Overwrites the app fields that `newer` contains.
    pub fn merge(&mut self, newer: Self) {
        macro_rules! take {
            ($($field:ident)+) => { $(if newer.$field.is_some() { self.$field = newer.$field; })+ };
        }
        take! {
            sdk_transaction_id sdk_application_id sdk_encryption_data sdk_ephemeral_public_key
            sdk_max_timeout sdk_reference_number sdk_render_options
        }
    }

    fn browser(&self) -> Vec<DeviceField> {
        let text = |value: &Option<String>| value.clone().map(Value::String);
        vec![
            (
                "browser_accept_header",
                "browserAcceptHeader",
                text(&self.browser_accept_header),
            ),
            (
                "browser_javascript_enabled",
                "browserJavascriptEnabled",
                self.browser_javascript_enabled.map(Value::Bool),
            ),
            (
                "browser_java_enabled",
                "browserJavaEnabled",
                self.browser_java_enabled.map(Value::Bool),
            ),
            (
                "browser_language",
                "browserLanguage",
                self.language().map(Value::String),
            ),
            (
                "browser_color_depth",
                "browserColorDepth",
                text(&self.browser_color_depth),
            ),
            (
                "browser_screen_height",
                "browserScreenHeight",
                text(&self.browser_screen_height),
            ),
            (
                "browser_screen_width",
                "browserScreenWidth",
                text(&self.browser_screen_width),
            ),
            ("browser_tz", "browserTZ", text(&self.browser_tz)),
            (
                "browser_user_agent",
                "browserUserAgent",
                self.browser_user_agent
                    .as_ref()
                    .map(|agent| agent.chars().take(ACCEPT_MAX).collect::<String>().into()),
            ),
        ]
    }

    fn app(&self) -> Vec<DeviceField> {
        let text = |value: &Option<String>| value.clone().map(Value::String);
        let options = self.sdk_render_options.clone().unwrap_or_default();
        vec![
            (
                "sdk_application_id",
                "sdkAppID",
                text(&self.sdk_application_id),
            ),
            (
                "sdk_encryption_data",
                "sdkEncData",
                text(&self.sdk_encryption_data),
            ),
            (
                "sdk_ephemeral_public_key",
                "sdkEphemPubKey",
                self.public_key(),
            ),
            (
                "sdk_max_timeout",
                "sdkMaxTimeout",
                text(&self.sdk_max_timeout),
            ),
            (
                "sdk_reference_number",
                "sdkReferenceNumber",
                text(&self.sdk_reference_number),
            ),
            (
                "sdk_transaction_id",
                "sdkTransID",
                text(&self.sdk_transaction_id),
            ),
            (
                "sdk_render_options.sdk_interface",
                "deviceRenderOptions.sdkInterface",
                text(&options.sdk_interface),
            ),
            (
                "sdk_render_options.sdk_ui_type",
                "deviceRenderOptions.sdkUiType",
                options.sdk_ui_type.map(|types| json!(types)),
            ),
        ]
    }

    /// The language tag, shortened to the primary language if it is too long.
    fn language(&self) -> Option<String> {
        let tag = self.browser_language.as_deref()?;
        if tag.len() <= LANGUAGE_MAX {
            return Some(tag.to_owned());
        }
        let language = tag.split('-').next().unwrap_or_default();
        Some(language.chars().take(LANGUAGE_MAX).collect())
    }

    /// Parses the key, which apps send as an object or a JSON string.
    fn public_key(&self) -> Option<Value> {
        match self.sdk_ephemeral_public_key.as_ref()? {
            Value::String(text) => serde_json::from_str(text).ok().or(Some(Value::Null)),
            other => Some(other.clone()),
        }
    }
}

fn check(device_fields: &[DeviceField]) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (path, name, value) in device_fields {
        let format = field(MessageKind::AReq, name).map(|field| &field.format);
        let rule = match (value, format) {
            (None, _) => Some("is required".to_owned()),
            (Some(value), Some(format)) if !format.accepts(value) => {
                Some(format!("must be {format}"))
            }
            (Some(_), _) => None,
        };
        errors.extend(rule.map(|rule| FieldError::new(format!("device_info.{path}"), rule)));
    }
    errors
}

fn fields(device_fields: Vec<DeviceField>) -> Map<String, Value> {
    let mut fields = Map::new();
    for (_, name, value) in device_fields {
        if let Some(value) = value {
            super::message::put(&mut fields, name, value);
        }
    }
    fields
}
