//! Builds the AReq from the request, by the field table, and from the session.

use cloakroom_emv3ds::codes::{ChallengePreference, DeviceChannel};
use cloakroom_emv3ds::{AReq, ErrorCode, Fault, MessageKind, Version, fields};
use cloakroom_platform::api::FieldError;
use jiff::civil::Date;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::check::{currency, latin, minutes, subdivision};
use super::field::{Case, Field, FieldType, value_at};
use super::requestor::requestor;
use super::{DeviceInfo, FIELDS, SessionKind};
use crate::networks::Network;

const INSTALLMENT_DAYS: i64 = 30;
const LANGUAGES_MAX: usize = 20;

/// Input of the AReq from the session and the configuration.
pub struct MessageContext<'a> {
    pub session: Uuid,
    pub kind: SessionKind,
    pub channel: DeviceChannel,
    pub version: Version,
    pub network: Network,
    pub card: Card<'a>,
    pub device: Option<&'a DeviceInfo>,
    /// 3DS Method completion indicator (`Y`, `N` or `U`), for browsers.
    pub method_completion: &'static str,
    pub notification_url: String,
    pub results_url: String,
    pub reference_number: &'a str,
    pub operator_id: Option<&'a str>,
    pub server_name: &'a str,
}

/// Card data of the AReq.
pub struct Card<'a> {
    pub number: &'a str,
    /// `YYMM`, if the card has an expiry.
    pub expiry: Option<String>,
    pub is_network_token: bool,
}

/// Builds the AReq, or returns the fields of the request that are invalid.
pub fn message(
    body: &Map<String, Value>,
    context: &MessageContext<'_>,
) -> Result<AReq, Vec<FieldError>> {
    let case = Case::of(context.kind, body);
    let mut fields = server_fields(context);
    fields.extend(device_fields(context));
    for field in FIELDS.iter().filter(|field| field.is_sent(context)) {
        let value = field
            .find(body)
            .and_then(|value| field.convert(value, context.version));
        if let Some(value) = value {
            put(&mut fields, field.to, value);
        }
    }
    purpose(&mut fields, &case, context);
    decoupled(&mut fields, body, &case, context);
    installments(&mut fields, &case, context);
    let requestor = requestor(body, context.network, context.server_name)?;
    put(&mut fields, "threeDSRequestorID", requestor.id.into());
    put(&mut fields, "threeDSRequestorName", requestor.name.into());
    put(&mut fields, "threeDSRequestorURL", requestor.url.into());
    if context.version >= Version::V2_3_1 {
        adapt_to_2_3_1(&mut fields, body, context);
    }
    AReq::from_object(fields).map_err(|fault| field_errors(&fault))
}

fn server_fields(context: &MessageContext<'_>) -> Map<String, Value> {
    let own = json!({
        "messageType": "AReq",
        "messageVersion": context.version.to_string(),
        "deviceChannel": context.channel.code(),
        "threeDSServerTransID": context.session.to_string(),
        "threeDSServerRefNumber": context.reference_number,
        "threeDSServerURL": context.results_url,
        "acctNumber": context.card.number,
    });
    let mut fields = own.as_object().cloned().unwrap_or_default();
    if let Some(operator) = context.operator_id {
        put(&mut fields, "threeDSServerOperatorID", operator.into());
    }
    if let Some(expiry) = &context.card.expiry {
        put(&mut fields, "cardExpiryDate", expiry.as_str().into());
    }
    if context.card.is_network_token {
        put(&mut fields, "payTokenInd", true.into());
        put(&mut fields, "payTokenSource", "01".into());
    }
    fields
}

fn device_fields(context: &MessageContext<'_>) -> Map<String, Value> {
    let Some(device) = context.device else {
        return Map::new();
    };
    match context.channel {
        DeviceChannel::ThreeRi => Map::new(),
        DeviceChannel::App => device.app_fields(),
        DeviceChannel::Browser => {
            let mut fields = device.browser_fields();
            if context.version < Version::V2_2_0 {
                fields.remove("browserJavascriptEnabled");
            }
            if let Some(address) = &device.browser_ip {
                put(&mut fields, "browserIP", address.as_str().into());
            }
            put(
                &mut fields,
                "threeDSCompInd",
                context.method_completion.into(),
            );
            put(
                &mut fields,
                "notificationURL",
                context.notification_url.as_str().into(),
            );
            fields
        }
    }
}

impl Field {
    /// Whether the AReq has the field in this version and device channel.
    fn is_sent(&self, context: &MessageContext<'_>) -> bool {
        let set_separately = ["threeDSRequestorDecReqInd", "threeDSRequestorDecMaxTime"];
        !self.to.is_empty()
            && !set_separately.contains(&self.to)
            && is_allowed(self.to, context.version, context.channel)
    }

    /// Converts the value to its protocol format; `None` if it is not sent.
    fn convert(&self, value: &Value, version: Version) -> Option<Value> {
        match self.takes {
            FieldType::Text | FieldType::Free | FieldType::OneOf(_) | FieldType::Opaque => {
                Some(value.clone())
            }
            FieldType::Words => Some(latin(value.as_str()?))
                .filter(|text| text.len() >= 2)
                .map(Value::String),
            FieldType::Date => Some(self.date(value)?.into()),
            FieldType::Count => Some(self.count(value)?.into()),
            FieldType::Flag(code) => Some(code(value.as_bool()?).into()),
            FieldType::Named(names) => {
                let name = value.as_str()?;
                let code = match ChallengePreference::from_name(name) {
                    Some(preference) if self.path == "challenge_preference" => {
                        preference.for_version(version).code()
                    }
                    _ => (names.code)(name)?,
                };
                Some(code.into())
            }
            FieldType::Currency => Some(currency(value)?.into()),
            FieldType::Subdivision => Some(subdivision(value.as_str()?).into()),
            FieldType::Extensions => Some(extensions(value)),
            FieldType::Minutes | FieldType::Object => None,
        }
    }
}

fn is_allowed(path: &str, version: Version, channel: DeviceChannel) -> bool {
    let outer = path.split('.').next().unwrap_or(path);
    let applies = |path: &str| {
        fields(MessageKind::AReq).any(|row| row.path == path && row.applies(version, Some(channel)))
    };
    applies(path) && applies(outer)
}

/// Converts message extensions. Data that is a JSON string of an object is sent as that object.
fn extensions(value: &Value) -> Value {
    let one = |extension: &Value| {
        let data = match &extension["data"] {
            Value::String(text) => serde_json::from_str(text)
                .ok()
                .filter(Value::is_object)
                .unwrap_or_else(|| json!({"value": text})),
            data @ Value::Object(_) => data.clone(),
            data => json!({"value": data}),
        };
        json!({
            "id": extension["id"],
            "name": extension["name"],
            "criticalityIndicator": extension["critical"],
            "data": data,
        })
    };
    value.as_array().into_iter().flatten().map(one).collect()
}

/// Sets the purpose, which has different fields and codes for customer and 3RI sessions.
fn purpose(fields: &mut Map<String, Value>, case: &Case, context: &MessageContext<'_>) {
    let Some(purpose) = case.purpose else { return };
    let (name, code) = match context.kind {
        SessionKind::Customer => (
            "threeDSRequestorAuthenticationInd",
            purpose.requestor_code(),
        ),
        SessionKind::Merchant => ("threeRIInd", purpose.three_ri_code()),
    };
    if let Some(code) = code {
        put(fields, name, code.into());
    }
}

/// Sets the decoupled authentication fields, which version 2.1.0 does not have. 3RI requests decoupled authentication
/// by default.
fn decoupled(
    fields: &mut Map<String, Value>,
    body: &Map<String, Value>,
    case: &Case,
    context: &MessageContext<'_>,
) {
    if context.version < Version::V2_2_0 {
        return;
    }
    let indicator = if case.requests_decoupled { "Y" } else { "N" };
    put(fields, "threeDSRequestorDecReqInd", indicator.into());
    let minutes_max = value_at(body, "decoupled_challenge_max_time").and_then(minutes);
    if let (true, Some(minutes_max)) = (case.requests_decoupled, minutes_max) {
        put(
            fields,
            "threeDSRequestorDecMaxTime",
            format!("{minutes_max:05}").into(),
        );
    }
}

/// Derives missing recurring fields, which the protocol also requires for installments.
fn installments(fields: &mut Map<String, Value>, case: &Case, context: &MessageContext<'_>) {
    let is_allowed = is_allowed("recurringExpiry", context.version, context.channel);
    if !case.is_installment() || !is_allowed {
        return;
    }
    let frequency = fields.get("recurringFrequency").and_then(Value::as_str);
    let days = frequency.map_or(Some(INSTALLMENT_DAYS), |text| text.parse().ok());
    let text = |name: &str| fields.get(name).and_then(Value::as_str);
    let count: Option<i64> = text("purchaseInstalData").and_then(|text| text.parse().ok());
    let date = text("purchaseDate").and_then(|text| text.get(..8));
    let date = date.and_then(|text| Date::strptime("%Y%m%d", text).ok());
    if let (Some(days), Some(count), Some(date)) = (days, count, date) {
        let end = date.checked_add(jiff::Span::new().days(days.saturating_mul(count)));
        if let (false, Ok(end)) = (fields.contains_key("recurringExpiry"), end) {
            let end = end.strftime("%Y%m%d").to_string();
            put(fields, "recurringExpiry", end.into());
        }
        if !fields.contains_key("recurringFrequency") {
            put(fields, "recurringFrequency", days.to_string().into());
        }
    }
}

/// Version 2.3.1 has arrays instead of single values for some fields, and requires additional fields.
fn adapt_to_2_3_1(
    fields: &mut Map<String, Value>,
    body: &Map<String, Value>,
    context: &MessageContext<'_>,
) {
    for name in [
        "threeDSRequestorChallengeInd",
        "threeDSRequestorAuthenticationInfo",
        "threeDSRequestorPriorAuthenticationInfo",
    ] {
        if let Some(value) = fields.get_mut(name) {
            *value = Value::Array(vec![value.take()]);
        }
    }
    if let Some(country) = value_at(body, "merchant_info.country_code") {
        put(fields, "acquirerCountryCode", country.clone());
        put(fields, "acquirerCountryCodeSource", "01".into());
    }
    match context.channel {
        DeviceChannel::Browser => {
            let languages = context
                .device
                .and_then(|device| device.accept_language.as_deref());
            let is_tag = |tag: &&str| {
                let is_part = |byte: u8| byte == b'-' || byte.is_ascii_alphanumeric();
                (1..=35).contains(&tag.len()) && tag.bytes().all(is_part)
            };
            let languages = languages.unwrap_or_default().split(',').map(language_tag);
            let mut languages: Vec<&str> = languages.filter(is_tag).take(LANGUAGES_MAX).collect();
            if languages.is_empty() {
                languages.push("en");
            }
            put(fields, "acceptLanguage", json!(languages));
        }
        DeviceChannel::App => put(fields, "sdkType", "01".into()),
        DeviceChannel::ThreeRi => {}
    }
}

/// Removes the quality value of a language: `de-CH` for ` de-CH;q=0.9`.
fn language_tag(text: &str) -> &str {
    text.split(';').next().unwrap_or(text).trim()
}

/// Sets the value at a dotted path.
pub(super) fn put(fields: &mut Map<String, Value>, path: &str, value: Value) {
    match path.split_once('.') {
        None => {
            fields.insert(path.to_owned(), value);
        }
        Some((outer, inner)) => {
            let outer = fields.entry(outer).or_insert_with(|| Map::new().into());
            if let Value::Object(outer) = outer {
                put(outer, inner, value);
            }
        }
    }
}

/// Converts a protocol fault to errors with the field paths of the request.
fn field_errors(fault: &Fault) -> Vec<FieldError> {
    let paths = fault.detail.split(',').map(str::trim);
    paths
        .map(|path| {
            let field = FIELDS.iter().find(|field| field.to == path);
            match (field, fault.code) {
                (Some(field), ErrorCode::ElementMissing) => {
                    FieldError::new(field.path, "is required by the network for this request")
                }
                (Some(field), _) => FieldError::new(field.path, field.rule()),
                (None, _) => FieldError::new(
                    "body",
                    format!("cannot be sent to the network: {path} is missing or invalid"),
                ),
            }
        })
        .collect()
}
