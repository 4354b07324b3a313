//! The message to a network: the request by the table, and what the session knows besides.

use cloakroom_emv3ds::codes::{ChallengePreference, DeviceChannel};
use cloakroom_emv3ds::{AReq, ErrorCode, Fault, MessageKind, Version, fields};
use jiff::civil::Date;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::check::{currency, latin, minutes, subdivision};
use super::field::{Case, Field, Takes, at};
use super::requestor::requestor;
use super::{DeviceInfo, FIELDS, SessionKind};
use crate::api::Broken;
use crate::card_networks::Network;

const INSTALLMENT_DAYS: i64 = 30;
const LANGUAGES_MAX: usize = 20;

/// What an authentication is about, besides what the merchant says.
pub(crate) struct About<'a> {
    pub session: Uuid,
    pub kind: SessionKind,
    pub channel: DeviceChannel,
    pub version: Version,
    pub network: Network,
    pub card: Card<'a>,
    pub device: Option<&'a DeviceInfo>,
    /// `Y`, `N` or `U`, for browsers.
    pub method_completion: &'static str,
    pub notification_url: String,
    pub results_url: String,
    pub reference_number: &'a str,
    pub operator_id: Option<&'a str>,
    pub server_name: &'a str,
}

/// The card itself.
pub(crate) struct Card<'a> {
    pub number: &'a str,
    /// `YYMM`, if the card tells it.
    pub expiry: Option<String>,
    pub is_network_token: bool,
}

/// Makes the message, or tells which fields of the request stand in its way.
pub(crate) fn message(body: &Map<String, Value>, about: &About<'_>) -> Result<AReq, Vec<Broken>> {
    let case = Case::of(about.kind, body);
    let mut fields = own_fields(about);
    fields.extend(device_fields(about));
    for field in FIELDS.iter().filter(|field| field.is_sent(about)) {
        let value = field
            .find(body)
            .and_then(|value| field.told(value, about.version));
        if let Some(value) = value {
            put(&mut fields, field.to, value);
        }
    }
    purpose(&mut fields, &case, about);
    decoupled(&mut fields, body, &case, about);
    installments(&mut fields, &case, about);
    let requestor = requestor(body, about.network, about.server_name)?;
    put(&mut fields, "threeDSRequestorID", requestor.id.into());
    put(&mut fields, "threeDSRequestorName", requestor.name.into());
    put(&mut fields, "threeDSRequestorURL", requestor.url.into());
    if about.version >= Version::V2_3_1 {
        newer_shapes(&mut fields, body, about);
    }
    AReq::from_object(fields).map_err(|fault| by_our_names(&fault))
}

fn own_fields(about: &About<'_>) -> Map<String, Value> {
    let own = json!({
        "messageType": "AReq",
        "messageVersion": about.version.to_string(),
        "deviceChannel": about.channel.code(),
        "threeDSServerTransID": about.session.to_string(),
        "threeDSServerRefNumber": about.reference_number,
        "threeDSServerURL": about.results_url,
        "acctNumber": about.card.number,
    });
    let mut fields = own.as_object().cloned().unwrap_or_default();
    if let Some(operator) = about.operator_id {
        put(&mut fields, "threeDSServerOperatorID", operator.into());
    }
    if let Some(expiry) = &about.card.expiry {
        put(&mut fields, "cardExpiryDate", expiry.as_str().into());
    }
    if about.card.is_network_token {
        put(&mut fields, "payTokenInd", true.into());
        put(&mut fields, "payTokenSource", "01".into());
    }
    fields
}

fn device_fields(about: &About<'_>) -> Map<String, Value> {
    let Some(device) = about.device else {
        return Map::new();
    };
    match about.channel {
        DeviceChannel::ThreeRi => Map::new(),
        DeviceChannel::App => device.app_fields(),
        DeviceChannel::Browser => {
            let mut fields = device.browser_fields();
            if about.version < Version::V2_2_0 {
                fields.remove("browserJavascriptEnabled");
            }
            if let Some(address) = &device.browser_ip {
                put(&mut fields, "browserIP", address.as_str().into());
            }
            put(
                &mut fields,
                "threeDSCompInd",
                about.method_completion.into(),
            );
            put(
                &mut fields,
                "notificationURL",
                about.notification_url.as_str().into(),
            );
            fields
        }
    }
}

impl Field {
    /// Whether the message has a place for it, in this version and on this channel.
    fn is_sent(&self, about: &About<'_>) -> bool {
        let is_by_itself = ["threeDSRequestorDecReqInd", "threeDSRequestorDecMaxTime"];
        !self.to.is_empty()
            && !is_by_itself.contains(&self.to)
            && has_place(self.to, about.version, about.channel)
    }

    /// The value as the network reads it; nothing for what has no place there.
    fn told(&self, value: &Value, version: Version) -> Option<Value> {
        match self.takes {
            Takes::Text | Takes::Free | Takes::OneOf(_) | Takes::Opaque => Some(value.clone()),
            Takes::Words => Some(latin(value.as_str()?))
                .filter(|text| text.len() >= 2)
                .map(Value::String),
            Takes::Flag(code) => Some(code(value.as_bool()?).into()),
            Takes::Named(names) => {
                let name = value.as_str()?;
                let code = match ChallengePreference::from_name(name) {
                    Some(preference) if self.path == "challenge_preference" => {
                        preference.for_version(version).code()
                    }
                    _ => (names.code)(name)?,
                };
                Some(code.into())
            }
            Takes::Currency => Some(currency(value)?.into()),
            Takes::Subdivision => Some(subdivision(value.as_str()?).into()),
            Takes::Extensions => Some(extensions(value)),
            Takes::Minutes | Takes::Object => None,
        }
    }
}

fn has_place(path: &str, version: Version, channel: DeviceChannel) -> bool {
    let outer = path.split('.').next().unwrap_or(path);
    let applies = |path: &str| {
        fields(MessageKind::AReq).any(|row| row.path == path && row.applies(version, Some(channel)))
    };
    applies(path) && applies(outer)
}

/// Data that is the text of an object is sent as that object.
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

/// What it is for has one code when a cardholder is there, and another when none is.
fn purpose(fields: &mut Map<String, Value>, case: &Case, about: &About<'_>) {
    let Some(purpose) = case.purpose else { return };
    let (name, code) = match about.kind {
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

/// A merchant alone asks for it unless it says otherwise. The oldest version does not know it.
fn decoupled(
    fields: &mut Map<String, Value>,
    body: &Map<String, Value>,
    case: &Case,
    about: &About<'_>,
) {
    if about.version < Version::V2_2_0 {
        return;
    }
    let indicator = if case.asks_decoupled { "Y" } else { "N" };
    put(fields, "threeDSRequestorDecReqInd", indicator.into());
    let most = at(body, "decoupled_challenge_max_time").and_then(minutes);
    if let (true, Some(most)) = (case.asks_decoupled, most) {
        put(
            fields,
            "threeDSRequestorDecMaxTime",
            format!("{most:05}").into(),
        );
    }
}

/// Installments are recurring as well, in the protocol: what is not said of that is worked out.
fn installments(fields: &mut Map<String, Value>, case: &Case, about: &About<'_>) {
    let has_place = has_place("recurringExpiry", about.version, about.channel);
    if !case.is_installment() || !has_place {
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

/// Version 2.3.1 has lists where there were single values, and wants to know more.
fn newer_shapes(fields: &mut Map<String, Value>, body: &Map<String, Value>, about: &About<'_>) {
    for name in [
        "threeDSRequestorChallengeInd",
        "threeDSRequestorAuthenticationInfo",
        "threeDSRequestorPriorAuthenticationInfo",
    ] {
        if let Some(value) = fields.get_mut(name) {
            *value = Value::Array(vec![value.take()]);
        }
    }
    if let Some(country) = at(body, "merchant_info.country_code") {
        put(fields, "acquirerCountryCode", country.clone());
        put(fields, "acquirerCountryCodeSource", "01".into());
    }
    match about.channel {
        DeviceChannel::Browser => {
            let languages = about
                .device
                .and_then(|device| device.accept_language.as_deref());
            let is_tag = |tag: &&str| {
                let is_part = |byte: u8| byte == b'-' || byte.is_ascii_alphanumeric();
                (1..=35).contains(&tag.len()) && tag.bytes().all(is_part)
            };
            let languages = languages.unwrap_or_default().split(',').map(first_part);
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

/// `de-CH` of ` de-CH;q=0.9`.
fn first_part(text: &str) -> &str {
    text.split(';').next().unwrap_or(text).trim()
}

/// Sets a field by its path.
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

/// What the protocol finds wrong, by the names of the request.
fn by_our_names(fault: &Fault) -> Vec<Broken> {
    let paths = fault.detail.split(',').map(str::trim);
    paths
        .map(|path| {
            let field = FIELDS.iter().find(|field| field.to == path);
            match (field, fault.code) {
                (Some(field), ErrorCode::ElementMissing) => {
                    Broken::new(field.path, "is required by the network for this request")
                }
                (Some(field), _) => Broken::new(field.path, field.rule()),
                (None, _) => Broken::new("body", format!("cannot be told to the network: {path}")),
            }
        })
        .collect()
}
