//! Replaces the expressions of a request by their values.

use cloakroom_expressions::{CONFIGURATION, Document, Reference, ReferenceKind, Scope};
use cloakroom_tokens::attributes::sources;
use http::HeaderMap;
use serde_json::{Map, Value, json};

use super::body::ReceivedBody;
use super::call::Call;
use super::content::ContentKind;
use super::error::Error;
use super::outgoing::Outgoing;
use super::target::Target;
use super::template::RequestTemplate;
use super::values::{self, Values};
use super::{headers, transform};
use crate::server::ProxyServer;

/// A request with values, and what transforms need.
pub(super) struct Replaced {
    pub(super) outgoing: Outgoing,
    pub(super) encrypted: Option<Value>,
}

/// A request with the values of its expressions, which are not evaluated yet.
pub(super) struct Prepared {
    pub(super) outgoing: Outgoing,
    /// `None` if expressions are sent as they are.
    template: Option<RequestTemplate>,
    values: Values,
}

/// Loads the values that the caller may use for the expressions in body, query and headers.
pub(super) async fn prepare(
    server: &ProxyServer,
    target: &Target,
    call: &Call,
    mut body: ReceivedBody,
) -> Result<Prepared, Error> {
    let sends_configuration = target.sends_configuration();
    let Some(caller) = &target.replaces_for else {
        let mut outgoing = Outgoing::verbatim(call, body);
        outgoing.has_values = sends_configuration;
        outgoing.has_sensitive_head = sends_configuration;
        let encrypted = transform::decrypt(server, target, call).await?;
        return Ok(Prepared {
            outgoing,
            template: None,
            values: Values {
                encrypted,
                ..Values::default()
            },
        });
    };
    if let ReceivedBody::Streamed(body) = &mut body {
        body.reject_expressions(ContentKind::of(&call.headers))?;
    }
    let complete = body.complete();
    let template = RequestTemplate::parse(&call.headers, call.query.as_deref(), complete.as_ref())?;
    let mut values = values::load(server, target, caller, &call.headers, &template).await?;
    let mut outgoing = Outgoing::verbatim(call, body);
    outgoing.has_values = sends_configuration || template.references().next().is_some();
    outgoing.has_sensitive_head = sends_configuration;
    outgoing.entries = std::mem::take(&mut values.entries);
    Ok(Prepared {
        outgoing,
        template: Some(template),
        values,
    })
}

impl Prepared {
    /// Replaces the expressions by their values. If the caller does not see all of them, none decides whether the request is
    /// sent: only closed expressions are evaluated, and one that fails is null.
    pub(super) fn evaluate(self, target: &Target, call: &Call) -> Result<Replaced, Error> {
        let Self {
            mut outgoing,
            template,
            values,
        } = self;
        if values.are_hidden {
            outgoing.withheld.has_hidden_values = true;
            for value in values.by_reference.values() {
                outgoing.withheld.add_numbers(value);
            }
        }
        if let Some(template) = template {
            let nothing = RequestVariables::default();
            let rendered = template.render_content(|document| fill(document, &values, &nothing))?;
            if let Some(body) = rendered.body {
                outgoing.body = ReceivedBody::Complete(body.into());
            }
            if let Some(query) = rendered.query {
                outgoing.query = Some(query);
                outgoing.has_sensitive_head = true;
            }
            if !template.header_references().is_empty() {
                let proxy = RequestVariables {
                    request: proxy_value(call, &outgoing.body),
                    configuration: target.configuration_value(),
                };
                let headers =
                    template.render_headers(|document| fill(document, &values, &proxy))?;
                for (name, rendered) in headers {
                    outgoing.headers.remove(&name);
                    for value in rendered {
                        outgoing.headers.append(&name, value);
                    }
                }
                outgoing.has_sensitive_head = true;
            }
        }
        Ok(Replaced {
            outgoing,
            encrypted: values.encrypted,
        })
    }
}

/// The variables of headers.
#[derive(Default)]
struct RequestVariables {
    request: Value,
    /// For keys of signatures only.
    configuration: Value,
}

fn fill(document: &Document, values: &Values, proxy: &RequestVariables) -> Result<Value, Error> {
    let RequestVariables {
        request,
        configuration,
    } = proxy;
    let scope = Scope {
        variables: &[("proxy", request), (CONFIGURATION, configuration)],
        sources: sources(),
    };
    let value_of = |reference: &Reference| match reference.kind {
        ReferenceKind::Proxy => Some(member(request, &reference.id)),
        _ => values.by_reference.get(reference),
    };
    let filled = match values.are_hidden {
        true => document.fill_totally(&scope, value_of),
        false => document.fill_in(&scope, value_of),
    };
    filled.map_err(|_| Error::NotEvaluated)
}

/// The value at a path such as `proxy.request.headers.X-Date`; null if there is none.
fn member<'a>(proxy: &'a Value, path: &str) -> &'a Value {
    const MISSING: &Value = &Value::Null;
    let members = path.split('.').skip(1);
    members.fold(proxy, |value, name| value.get(name).unwrap_or(MISSING))
}

/// The proxied request, for expressions in headers.
fn proxy_value(call: &Call, body: &ReceivedBody) -> Value {
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
