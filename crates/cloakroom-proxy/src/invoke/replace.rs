//! Replaces the expressions of a request by their values.

use cloakroom_core::caller::Caller;
use cloakroom_expressions::{Document, Reference, ReferenceKind, Scope};
use cloakroom_platform::api::FieldError;
use cloakroom_tokens::attributes::sources;
use http::HeaderMap;
use serde_json::{Map, Value, json};

use super::body::ReceivedBody;
use super::call::Call;
use super::content::ContentKind;
use super::error::Error;
use super::headers;
use super::outgoing::Outgoing;
use super::target::Target;
use super::template::RequestTemplate;
use super::values::{self, Values};
use crate::server::ProxyServer;

/// A request with values, and what transforms need.
pub(super) struct Replaced {
    pub(super) outgoing: Outgoing,
    pub(super) encrypted: Option<Value>,
}

/// Replaces the expressions in body, query and headers by values that the caller may use.
pub(super) async fn replace(
    server: &ProxyServer,
    target: &Target,
    caller: &Caller,
    call: &Call,
    mut body: ReceivedBody,
) -> Result<Replaced, Error> {
    if let ReceivedBody::Streamed(body) = &mut body {
        body.reject_expressions(ContentKind::of(&call.headers))?;
    }
    let complete = body.complete();
    let template = RequestTemplate::parse(&call.headers, call.query.as_deref(), complete.as_ref())?;
    let values = values::load(server, target, caller, &call.headers, &template).await?;
    let mut outgoing = Outgoing::verbatim(call, body);

    let rendered = template.render_content(|document| fill(document, &values, &Value::Null))?;
    if let Some(body) = rendered.body {
        outgoing.body = ReceivedBody::Complete(body.into());
    }
    if let Some(query) = rendered.query {
        outgoing.query = Some(query);
        outgoing.has_sensitive_head = true;
    }

    if !template.header_references().is_empty() {
        let proxy = proxy_value(target, call, &outgoing.body);
        let headers = template.render_headers(|document| fill(document, &values, &proxy))?;
        for (name, rendered) in headers {
            outgoing.headers.remove(&name);
            for value in rendered {
                outgoing.headers.append(&name, value);
            }
        }
        outgoing.has_sensitive_head = true;
    }
    outgoing.has_values = template.references().next().is_some();
    outgoing.entries = values.entries;
    Ok(Replaced {
        outgoing,
        encrypted: values.encrypted,
    })
}

fn fill(document: &Document, values: &Values, proxy: &Value) -> Result<Value, Error> {
    let scope = Scope {
        variables: &[("proxy", proxy)],
        sources: sources(),
    };
    let value_of = |reference: &Reference| match reference.kind {
        ReferenceKind::Proxy => Some(member(proxy, &reference.id)),
        _ => values.by_reference.get(reference),
    };
    let filled = document.fill_in(&scope, value_of);
    filled.map_err(|error| Error::invalid(FieldError::new(error.path, error.error.to_string())))
}

/// The value at a path such as `proxy.request.headers.X-Date`; null if there is none.
fn member<'a>(proxy: &'a Value, path: &str) -> &'a Value {
    const MISSING: &Value = &Value::Null;
    let members = path.split('.').skip(1);
    members.fold(proxy, |value, name| value.get(name).unwrap_or(MISSING))
}

/// The proxied request, for expressions in headers.
fn proxy_value(target: &Target, call: &Call, body: &ReceivedBody) -> Value {
    let body = body.complete();
    let body = body
        .as_deref()
        .and_then(|body| std::str::from_utf8(body).ok());
    json!({
        "request": {
            "method": call.method.as_str(),
            "path": call.suffix,
            "headers": header_values(&call.headers),
            "body": body,
        },
        "config": target.configuration_value(),
    })
}

/// Headers that are sent to the destination, as the caller sent them. Names are case-insensitive in HTTP but not in
/// expressions, so each is present in lowercase and as it is usually written.
fn header_values(sent: &HeaderMap) -> Value {
    let mut members = Map::new();
    for (name, value) in &headers::outgoing(sent) {
        if let Ok(text) = value.to_str() {
            members.insert(name.to_string(), text.into());
            members.insert(capitalized(name.as_str()), text.into());
        }
    }
    Value::Object(members)
}

/// `x-request-id` as `X-Request-Id`.
fn capitalized(name: &str) -> String {
    let words = name.split('-').map(|word| {
        let mut letters = word.chars();
        let first = letters.next().map(|letter| letter.to_ascii_uppercase());
        first.into_iter().chain(letters).collect::<String>()
    });
    words.collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_the_request_are_resolved() {
        let proxy = json!({"request": {"headers": {"X-Date": "d"}, "body": "b"}});
        for (path, expected) in [
            ("proxy.request.headers.X-Date", json!("d")),
            ("proxy.request.body", json!("b")),
            ("proxy.request.other.x", Value::Null),
            ("proxy.", Value::Null),
        ] {
            assert_eq!(*member(&proxy, path), expected, "{path}");
        }
        assert_eq!(*member(&proxy, "proxy"), proxy);
        assert_eq!(capitalized("x-request-id"), "X-Request-Id");
    }
}
