//! Runs the transforms of a proxy in order.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cloakroom_core::caller::Caller;
use cloakroom_crypto::Sensitive;
use cloakroom_platform::api::read_json;
use cloakroom_platform::card_numbers::card_numbers_in;
use cloakroom_platform::ids::TenantId;
use cloakroom_tokens::tokens::TokenVault;
use http::header::{
    ACCEPT_CHARSET, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, ETAG,
    IF_RANGE, LAST_MODIFIED, RANGE,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use serde_json::Value;

use super::append::insert;
use super::mask::Mask;
use super::template::Variables;
use super::tokenize::Tokenize;
use super::{
    BODY_BYTES_MAX, Configuration, Error, Failure, MaskWorkers, Reason, Transform, Transforms,
};
use crate::exchange::{BufferedResponse, Exchange};

/// Headers that describe the body as the destination sent it. Its digests would disclose what a transform removed.
const BODY_HEADERS: [HeaderName; 7] = [
    CONTENT_LENGTH,
    ETAG,
    LAST_MODIFIED,
    HeaderName::from_static("content-md5"),
    HeaderName::from_static("content-digest"),
    HeaderName::from_static("digest"),
    HeaderName::from_static("repr-digest"),
];

/// Applies the request transforms, after expressions are replaced and before anything is sent.
///
/// Fails if a later response transform is known to fail: the destination would act on the request, and the caller would
/// not learn the result.
pub async fn apply_request(
    vault: &TokenVault,
    transforms: &Transforms,
    exchange: &mut Exchange,
) -> Result<(), Error> {
    let lists = [&transforms.request, &transforms.response];
    for (index, transform) in lists.into_iter().flat_map(|list| list.iter().enumerate()) {
        if matches!(transform, Transform::Tokenize(_)) && transforms.application.is_none() {
            let failure = failure(index, transform, Reason::NoApplication);
            return Err(Error::Request(failure));
        }
    }
    for (index, transform) in transforms.request.iter().enumerate() {
        let outcome = transform_request(vault, transforms, transform, exchange).await;
        outcome.map_err(|reason| Error::Request(failure(index, transform, reason)))?;
    }
    if !transforms.response.is_empty() {
        request_plain_response(&mut exchange.request.headers);
    }
    Ok(())
}

async fn transform_request(
    vault: &TokenVault,
    transforms: &Transforms,
    transform: &Transform,
    exchange: &mut Exchange,
) -> Result<(), Reason> {
    if let Transform::Tokenize(tokenize) = transform {
        return tokenize_values(vault, transforms, tokenize, exchange, None)
            .await
            .map(drop);
    }
    let variables = Variables {
        exchange,
        configuration: &transforms.configuration,
        response: None,
    };
    let body = exchange.request.body.expose();
    check_size(body)?;
    match transform {
        Transform::AppendJson(append) => {
            let body = append.apply(&variables, body)?;
            exchange.request.body = Sensitive::new(body);
        }
        Transform::AppendText(append) => {
            let body = append.apply(&variables, body)?;
            exchange.request.body = Sensitive::new(body);
        }
        Transform::AppendHeader(append) => {
            let header = append.apply(&variables)?;
            insert(&mut exchange.request.headers, header);
        }
        // Compiled for responses only, and handled above.
        Transform::Mask(_) | Transform::Tokenize(_) => {}
    }
    Ok(())
}

/// Asks the destination for a complete, uncompressed response: a part of it could evade a mask.
fn request_plain_response(headers: &mut HeaderMap) {
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    headers.remove(ACCEPT_CHARSET);
    headers.remove(RANGE);
    headers.remove(IF_RANGE);
}

/// Applies the response transforms. If it fails, the response is not returned.
pub async fn apply_response(
    vault: &TokenVault,
    workers: &MaskWorkers,
    transforms: &Transforms,
    exchange: &mut Exchange,
    response: &mut BufferedResponse,
) -> Result<(), Error> {
    let Some(first) = transforms.response.first() else {
        return Ok(());
    };
    check_plain(response).map_err(|reason| Error::Response(failure(0, first, reason)))?;
    let mut tokenized: Vec<Sensitive<String>> = Vec::new();
    for (index, transform) in transforms.response.iter().enumerate() {
        let outcome = match transform {
            Transform::Tokenize(tokenize) => {
                let numbers =
                    tokenize_values(vault, transforms, tokenize, exchange, Some(response)).await;
                numbers.map(|numbers| tokenized.extend(numbers))
            }
            // A response without a body stays one.
            transform if changes_body(transform) && has_no_body(exchange, response) => Ok(()),
            Transform::Mask(mask) => {
                let tenant = transforms.tenant;
                mask_body(workers, tenant, mask, response).await
            }
            transform => {
                transform_response(&transforms.configuration, transform, exchange, response)
            }
        };
        outcome.map_err(|reason| Error::Response(failure(index, transform, reason)))?;
    }
    for header in &BODY_HEADERS {
        response.headers.remove(header);
    }
    check_replaced(&tokenized, response)
        .map_err(|reason| Error::Response(failure(0, first, reason)))
}

fn transform_response(
    configuration: &Configuration,
    transform: &Transform,
    exchange: &Exchange,
    response: &mut BufferedResponse,
) -> Result<(), Reason> {
    let variables = Variables {
        exchange,
        configuration,
        response: Some(response),
    };
    let body = response.body.expose();
    let body = match transform {
        Transform::AppendJson(append) => append.apply(&variables, body)?,
        Transform::AppendText(append) => append.apply(&variables, body)?,
        Transform::AppendHeader(append) => {
            let header = append.apply(&variables)?;
            insert(&mut response.headers, header);
            return Ok(());
        }
        // Handled by the caller.
        Transform::Mask(_) | Transform::Tokenize(_) => return Ok(()),
    };
    response.body = Sensitive::new(body);
    Ok(())
}

fn changes_body(transform: &Transform) -> bool {
    match transform {
        Transform::Mask(_) | Transform::AppendJson(_) | Transform::AppendText(_) => true,
        Transform::AppendHeader(_) | Transform::Tokenize(_) => false,
    }
}

fn has_no_body(exchange: &Exchange, response: &BufferedResponse) -> bool {
    let without_body = [StatusCode::NO_CONTENT, StatusCode::RESET_CONTENT];
    exchange.request.method == Method::HEAD || without_body.contains(&response.status)
}

async fn mask_body(
    workers: &MaskWorkers,
    tenant: TenantId,
    mask: &Mask,
    response: &mut BufferedResponse,
) -> Result<(), Reason> {
    let body = response.body.expose();
    // In UTF-16 and UTF-32, a mask does not find digits: there are NULs between them.
    if !is_ascii_compatible(&response.headers) || memchr::memchr(0, body).is_some() {
        return Err(Reason::NotText);
    }
    let text = std::str::from_utf8(body).map_err(|_| Reason::NotText)?;
    let masked = workers.apply(tenant, mask, text.to_owned()).await?;
    response.body = Sensitive::new(masked.into_bytes());
    Ok(())
}

/// Whether ASCII bytes of the body are the characters that they are in UTF-8, as far as the response declares it.
fn is_ascii_compatible(headers: &HeaderMap) -> bool {
    let mut types = headers.get_all(CONTENT_TYPE).iter();
    types.all(|value| {
        let value = value.to_str().unwrap_or_default().to_ascii_lowercase();
        let mut parameters = value.split(';').skip(1);
        let charset =
            parameters.find_map(|it| it.trim().strip_prefix("charset=").map(str::to_owned));
        charset.is_none_or(|charset| {
            let charset = charset.trim_matches('"');
            ["utf-8", "utf8", "us-ascii"].contains(&charset)
                || charset.starts_with("iso-8859-")
                || charset.starts_with("windows-125")
        })
    })
}

/// Creates a token with the permissions of the proxy's application; returns the card numbers in it.
async fn tokenize_values(
    vault: &TokenVault,
    transforms: &Transforms,
    tokenize: &Tokenize,
    exchange: &mut Exchange,
    response: Option<&BufferedResponse>,
) -> Result<Vec<Sensitive<String>>, Reason> {
    let principal = transforms.application.as_ref();
    let principal = principal.ok_or(Reason::NoApplication)?;
    let trace_id = Arc::clone(&exchange.trace_id);
    let caller = Caller::new(Arc::clone(principal), trace_id, exchange.origin);
    let variables = Variables {
        exchange,
        configuration: &transforms.configuration,
        response,
    };
    let created = tokenize.apply(vault, &caller, &variables).await?;
    if let Some(identifier) = &tokenize.identifier {
        exchange.created.push((identifier.clone(), created.body));
    }
    Ok(created.card_numbers)
}

fn check_size(body: &[u8]) -> Result<(), Reason> {
    match body.len() > BODY_BYTES_MAX {
        true => Err(Reason::TooLarge(BODY_BYTES_MAX)),
        false => Ok(()),
    }
}

/// Rejects responses that transforms cannot read completely.
fn check_plain(response: &BufferedResponse) -> Result<(), Reason> {
    check_size(response.body.expose())?;
    let mut encodings = response.headers.get_all(CONTENT_ENCODING).iter();
    let is_encoded =
        encodings.any(|encoding| !encoding.as_bytes().eq_ignore_ascii_case(b"identity"));
    match is_encoded || response.status == StatusCode::PARTIAL_CONTENT {
        true => Err(Reason::Encoded),
        false => Ok(()),
    }
}

/// Rejects a response that still contains a card number that was tokenized: the caller is not meant to see it.
fn check_replaced(
    tokenized: &[Sensitive<String>],
    response: &BufferedResponse,
) -> Result<(), Reason> {
    let is_tokenized = |digits: &str| tokenized.iter().any(|number| number.expose() == digits);
    let forms: Vec<Forms> = tokenized.iter().map(Forms::of).collect();
    let contains = |text: &str| {
        let digits = text.chars().filter(char::is_ascii_digit);
        let digits = Sensitive::new(digits.collect::<String>());
        forms.iter().any(|forms| forms.are_in(text, digits.expose()))
            // In other digits than those of ASCII.
            || card_numbers_in(text).iter().any(|number| is_tokenized(number.expose()))
    };
    if tokenized.is_empty() {
        return Ok(());
    }
    let body = response.body.expose();
    // Serialized again, JSON has no escaped digits.
    let json = read_json::<Value>(body).map(|body| Sensitive::new(body.to_string()));
    let is_contained = contains(&String::from_utf8_lossy(body))
        || json.is_ok_and(|json| contains(json.expose()))
        || response
            .headers
            .values()
            .any(|value| contains(&String::from_utf8_lossy(value.as_bytes())));
    match is_contained {
        true => Err(Reason::NotReplaced),
        false => Ok(()),
    }
}

/// The forms in which a destination might repeat a number.
struct Forms {
    /// In decimal and in hexadecimal: of a text, all digits are searched, whatever separates them.
    digits: [Sensitive<String>; 2],
    /// In Base64, at each of the three positions of its first byte.
    base64: [Sensitive<String>; 3],
}

impl Forms {
    fn of(number: &Sensitive<String>) -> Self {
        let number = number.expose();
        let hexadecimal: String = number.chars().flat_map(|digit| ['3', digit]).collect();
        Self {
            digits: [number.clone(), hexadecimal].map(Sensitive::new),
            base64: [0, 1, 2].map(|before| {
                let text = STANDARD.encode(format!("{}{number}", &"00"[..before]));
                // The characters that depend on nothing but the number.
                let whole = (before * 8).div_ceil(6)..(before + number.len()) * 8 / 6;
                Sensitive::new(text.get(whole).unwrap_or_default().to_owned())
            }),
        }
    }

    fn are_in(&self, text: &str, digits: &str) -> bool {
        let is_in = |text: &str, form: &Sensitive<String>| text.contains(form.expose().as_str());
        self.digits.iter().any(|form| is_in(digits, form))
            || self.base64.iter().any(|form| is_in(text, form))
    }
}

fn failure(index: usize, transform: &Transform, reason: Reason) -> Failure {
    Failure {
        index,
        kind: transform.kind(),
        reason,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tokenized_number_is_found_in_any_usual_form() {
        let tokenized = [Sensitive::new("4242424242424242".to_owned())];
        let check = |body: &str| {
            let response = BufferedResponse {
                status: StatusCode::OK,
                headers: HeaderMap::new(),
                body: Sensitive::new(body.as_bytes().to_vec()),
            };
            check_replaced(&tokenized, &response).is_err()
        };
        for body in [
            "4242424242424242",
            "4242-4242-4242-4242",
            r#"{"pan":"\u0034242424242424242"}"#,
            "a4b2c4d2e4f2g4h2i4j2k4l2m4n2o4p2",
            "34323432343234323432343234323432",
            "34:32:34:32:34:32:34:32:34:32:34:32:34:32:34:32",
            // Base64, at each of the three positions.
            "NDI0MjQyNDI0MjQyNDI0Mg==",
            "eyJhIjoiNDI0MjQyNDI0MjQyNDI0MiJ9",
            "eyJhYiI6IjQyNDI0MjQyNDI0MjQyNDIifQ==",
            "eyJhYmMiOiI0MjQyNDI0MjQyNDI0MjQyIn0",
        ] {
            assert!(check(body), "{body}");
        }
        for body in ["4111111111111111", r#"{"id":"abc","last4":"4242"}"#, ""] {
            assert!(!check(body), "{body}");
        }
    }
}
