//! Values that the client encrypted for this request, in the header `BT-ENCRYPTED`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cloakroom_core::caller::Caller;
use cloakroom_core::keys;
use cloakroom_platform::api::{ApiError, FieldError, read_json};
use cloakroom_tokens::client_encryption::{RequestData, SentData, resolve_request_data};
use http::{HeaderMap, HeaderName};
use serde_json::{Map, Value};

use super::call::single;
use super::error::Error;
use crate::server::ProxyServer;

const ENCRYPTED: HeaderName = HeaderName::from_static("bt-encrypted");
/// Values in one header, as many as a request may refer to tokens.
const VALUES_MAX: usize = 20;

/// Decrypts the header: base64 of `{"type", "encrypted"}`, or of an object of these. Each `encrypted` is replaced by
/// `data`. `None` if there is no such header.
pub(super) async fn decrypt(
    server: &ProxyServer,
    caller: &Caller,
    headers: &HeaderMap,
) -> Result<Option<Value>, Error> {
    if !headers.contains_key(ENCRYPTED) {
        return Ok(None);
    }
    let rule =
        "must be base64 of a JSON object with `type` and `encrypted`, or of an object of these";
    let malformed = || Error::invalid_at("BT-ENCRYPTED", rule);
    let text = single(headers, &ENCRYPTED).ok_or_else(malformed)?;
    let json = STANDARD.decode(text.trim()).map_err(|_| malformed())?;
    let sent: Map<String, Value> = read_json(&json).map_err(|_| malformed())?;
    if sent.contains_key("encrypted") {
        return decrypt_one(server, caller, sent).await.map(Some);
    }
    if sent.len() > VALUES_MAX {
        let rule = format!("must contain at most {VALUES_MAX} values");
        return Err(Error::invalid_at("BT-ENCRYPTED", rule));
    }
    let mut decrypted = Map::new();
    for (name, one) in sent {
        let Value::Object(one) = one else {
            return Err(malformed());
        };
        let one = decrypt_one(server, caller, one).await?;
        decrypted.insert(name, one);
    }
    Ok(Some(Value::Object(decrypted)))
}

async fn decrypt_one(
    server: &ProxyServer,
    caller: &Caller,
    mut sent: Map<String, Value>,
) -> Result<Value, Error> {
    let encrypted = sent.remove("encrypted");
    let text = encrypted
        .as_ref()
        .and_then(Value::as_str)
        .unwrap_or_default();
    let data = SentData {
        plain: None,
        encrypted: Some(text),
    };
    let failed = |error: keys::Error| Error::from(ApiError::from(error));
    let resolved = resolve_request_data(server, caller, data, None).await;
    let data = match resolved.map_err(failed)? {
        Ok(RequestData::Opened(opened)) => read_json::<Value>(opened.expose()).ok(),
        Ok(RequestData::Plain(_)) => None,
        Err(errors) => {
            let rule = errors
                .into_iter()
                .next()
                .map(|FieldError { rule, .. }| rule);
            return Err(Error::invalid_at("BT-ENCRYPTED", rule.unwrap_or_default()));
        }
    };
    sent.insert("data".to_owned(), data.unwrap_or_default());
    Ok(Value::Object(sent))
}
