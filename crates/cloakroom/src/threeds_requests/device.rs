//! What a session knows of the cardholder's device.

use std::net::IpAddr;

use cloakroom_emv3ds::{MessageKind, field};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use crate::api::{Broken, optional_object};

const ACCEPT_MAX: usize = 2_048;
const LANGUAGE_MAX: usize = 8;

/// A browser or an app. Fields without a value are left out.
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
    /// Minutes from local time to UTC.
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
    /// A JSON Web Key, as an object or as its text.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
    pub sdk_ephemeral_public_key: Option<Value>,
    /// Minutes, two digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sdk_max_timeout: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sdk_reference_number: Option<String>,
    #[serde(
        deserialize_with = "optional_object",
        skip_serializing_if = "Option::is_none"
    )]
    pub sdk_render_options: Option<RenderOptions>,
    /// The languages that the browser asks for, which newer versions of the protocol want.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(ignore)]
    pub accept_language: Option<String>,
}

/// What an app can show.
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

/// A field of ours, the one of the protocol, and the value that is told.
type Told = (&'static str, &'static str, Option<Value>);

impl DeviceInfo {
    /// Adds what the request itself tells of a browser, and makes both names of its address agree.
    pub(crate) fn complete(&mut self, address: Option<String>, accept: Option<&str>) {
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

    /// What is missing or wrong of a browser.
    pub(crate) fn check_browser(&self) -> Vec<Broken> {
        check(&self.browser())
    }

    /// What is missing or wrong of an app.
    pub(crate) fn check_app(&self) -> Vec<Broken> {
        check(&self.app())
    }

    /// The fields of a message about a browser.
    pub(super) fn browser_fields(&self) -> Map<String, Value> {
        fields(self.browser())
    }

    /// The fields of a message about an app.
    pub(super) fn app_fields(&self) -> Map<String, Value> {
        fields(self.app())
    }

    /// Without what callers have no use for.
    pub(crate) fn shown(mut self) -> Self {
        self.accept_language = None;
        self
    }

    /// Takes over what another description says.
    pub(crate) fn merge(&mut self, newer: Self) {
        macro_rules! take {
            ($($field:ident)+) => { $(if newer.$field.is_some() { self.$field = newer.$field; })+ };
        }
        take! {
            sdk_transaction_id sdk_application_id sdk_encryption_data sdk_ephemeral_public_key
            sdk_max_timeout sdk_reference_number sdk_render_options
        }
    }

    fn browser(&self) -> Vec<Told> {
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

    fn app(&self) -> Vec<Told> {
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

    /// A language tag that fits: the language alone if the rest is too long.
    fn language(&self) -> Option<String> {
        let tag = self.browser_language.as_deref()?;
        if tag.len() <= LANGUAGE_MAX {
            return Some(tag.to_owned());
        }
        let language = tag.split('-').next().unwrap_or_default();
        Some(language.chars().take(LANGUAGE_MAX).collect())
    }

    /// Apps send the key as an object or as the text of one.
    fn public_key(&self) -> Option<Value> {
        match self.sdk_ephemeral_public_key.as_ref()? {
            Value::String(text) => serde_json::from_str(text).ok().or(Some(Value::Null)),
            other => Some(other.clone()),
        }
    }
}

fn check(told: &[Told]) -> Vec<Broken> {
    let mut broken = Vec::new();
    for (path, name, value) in told {
        let format = field(MessageKind::AReq, name).map(|field| &field.format);
        let rule = match (value, format) {
            (None, _) => Some("is required".to_owned()),
            (Some(value), Some(format)) if !format.accepts(value) => {
                Some(format!("must be {format}"))
            }
            (Some(_), _) => None,
        };
        broken.extend(rule.map(|rule| Broken::new(format!("device_info.{path}"), rule)));
    }
    broken
}

fn fields(told: Vec<Told>) -> Map<String, Value> {
    let mut fields = Map::new();
    for (_, name, value) in told {
        if let Some(value) = value {
            super::message::put(&mut fields, name, value);
        }
    }
    fields
}
