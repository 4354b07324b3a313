//! The path of a proxied request.

use axum::extract::Request;
use axum::response::Response;
use cloakroom_core::audit::{EntityKind, Entry, Operation};
use cloakroom_core::caller::Caller;
use cloakroom_core::gates::rate_limits::admit_work;
use cloakroom_crypto::Sensitive;
use cloakroom_egress::{Destination, DestinationUrl, ResponseBody, Timeouts};
use cloakroom_platform::api::ApiError;
use http::StatusCode;
use serde_json::Value;

use super::body::{self, Limits, ReceivedBody};
use super::call::Call;
use super::error::Error;
use super::outgoing::{Outgoing, OutgoingBody};
use super::replace::{Replaced, replace};
use super::target::Target;
use super::{encrypted, headers, response};
use crate::exchange::{Exchange, OutgoingRequest, ReceivedRequest};
use crate::server::ProxyServer;
use crate::transforms;

/// Sends a request to its destination, with tokens replaced by their data, and returns the response.
pub(super) async fn invoke(server: &ProxyServer, request: Request) -> Result<Response, Error> {
    let (head, body) = request.into_parts();
    let call = Call::new(head);
    let target = Target::select(server, &call).await?;
    // Before anything is decrypted: a destination that is not allowed gets nothing.
    server.egress.check(&target.base, target.hosts())?;
    target.base.join(&call.suffix, None)?;

    let body = body::receive(body, limits(server)).await?;
    let sent_body = match &body {
        ReceivedBody::Complete(bytes) => Some(bytes.clone()),
        ReceivedBody::Streamed(_) => None,
    };
    let replaced = match &target.replaces_for {
        Some(caller) => replace(server, &target, caller, &call, body).await?,
        None => Replaced {
            outgoing: Outgoing::verbatim(&call, body),
            encrypted: decrypt_for_transforms(server, &target, &call).await?,
        },
    };
    let Replaced {
        mut outgoing,
        encrypted,
    } = replaced;
    let mut exchange = match (&target.definition, sent_body) {
        (Some(definition), Some(sent_body))
            if target.transforms_request() || target.transforms_response() =>
        {
            let mut exchange = exchange(&call, sent_body, &mut outgoing, encrypted);
            let _permit = admit_work(&server.limits, target.tenant, true).await?;
            let applied =
                transforms::apply_request(server, &definition.transforms, &mut exchange).await;
            applied.map_err(ApiError::from)?;
            take_back(&mut exchange, &mut outgoing);
            Some(exchange)
        }
        (_, None) if target.transforms_request() || target.transforms_response() => {
            return Err(Error::BodyTooLarge(limits(server).complete_bytes));
        }
        _ => None,
    };
    if target.transforms_response() {
        headers::require_identity(&mut outgoing.headers);
    }

    let url = target.base.join(&call.suffix, outgoing.query.as_deref())?;
    record(server, &target, &call, &mut outgoing, &url).await?;
    let received = send(server, &target, outgoing, &url).await?;

    match (&target.definition, &mut exchange) {
        (Some(definition), Some(exchange))
            if target.transforms_response() && received.status().is_success() =>
        {
            let max_bytes = limits(server).complete_bytes;
            let mut received = response::receive(received, max_bytes).await?;
            let transforms = &definition.transforms;
            let _permit = admit_work(&server.limits, target.tenant, true).await?;
            transforms::apply_response(server, transforms, exchange, &mut received)
                .await
                .map_err(ApiError::from)?;
            Ok(response::complete(received))
        }
        _ => Ok(response::streamed(received)),
    }
}

/// Decrypts `BT-ENCRYPTED` for `tokenize` transforms of a proxy that replaces no expressions. They have the permissions of
/// the proxy's application, and so has the decryption: a client encryption key may be bound to it.
async fn decrypt_for_transforms(
    server: &ProxyServer,
    target: &Target,
    call: &Call,
) -> Result<Option<Value>, Error> {
    let definition = target.definition.as_ref();
    let application = definition.and_then(|it| it.transforms.application.clone());
    let Some(application) = application else {
        return Ok(None);
    };
    let origin = call.client.map(|client| client.0);
    let caller = Caller::new(application, call.trace_id.clone(), origin);
    encrypted::decrypt(server, &caller, &call.headers).await
}

fn limits(server: &ProxyServer) -> Limits {
    let settings = &server.config.proxy;
    Limits {
        complete_bytes: settings.max_replaced_bytes,
        max_bytes: settings.max_body_bytes,
        timeout: server.config.http.body_timeout,
    }
}

/// What transforms see. The body that is sent moves into it and back.
fn exchange(
    call: &Call,
    sent_body: bytes::Bytes,
    outgoing: &mut Outgoing,
    encrypted: Option<Value>,
) -> Exchange {
    let body = match &outgoing.body {
        ReceivedBody::Complete(bytes) => bytes.to_vec(),
        ReceivedBody::Streamed(_) => Vec::new(),
    };
    Exchange {
        received: ReceivedRequest {
            method: call.method.clone(),
            suffix: call.suffix.clone(),
            query: call.query.clone(),
            headers: headers::outgoing(&call.headers),
            body: sent_body,
        },
        request: OutgoingRequest {
            method: outgoing.method.clone(),
            headers: std::mem::take(&mut outgoing.headers),
            body: Sensitive::new(body),
        },
        encrypted,
        caller: call.caller.clone(),
        trace_id: call.trace_id.clone(),
        origin: call.client.map(|client| client.0),
        created: Vec::new(),
    }
}

fn take_back(exchange: &mut Exchange, outgoing: &mut Outgoing) {
    let request = &mut exchange.request;
    outgoing.headers = std::mem::take(&mut request.headers);
    let body = std::mem::replace(&mut request.body, Sensitive::new(Vec::new()));
    outgoing.body = ReceivedBody::Complete(body.into_inner().into());
}

/// Records the use of every value together with the destination. Durable before anything is sent; if it cannot be
/// recorded, nothing is sent.
async fn record(
    server: &ProxyServer,
    target: &Target,
    call: &Call,
    outgoing: &mut Outgoing,
    url: &DestinationUrl,
) -> Result<(), Error> {
    let mut entries = std::mem::take(&mut outgoing.entries);
    // Invocations without a key are recorded as those of the proxy.
    let anonymous = target.definition.as_ref().map(|definition| {
        let origin = call.client.map(|client| client.0);
        Caller::new(definition.anonymous.clone(), call.trace_id.clone(), origin)
    });
    let Some(caller) = call.caller.as_deref().or(anonymous.as_ref()) else {
        return Err(ApiError::unauthorized().into());
    };
    let entry = |operation, kind, id: String| Entry::new(caller, operation, kind, id);
    let host = url.host().to_owned();
    entries.push(entry(Operation::Use, EntityKind::Destination, host));
    if let Some(definition) = &target.definition {
        let id = definition.id.to_string();
        entries.push(entry(Operation::Invoke, EntityKind::Proxy, id));
    }
    match outgoing.has_values {
        true => server.audit.record(entries).await?,
        false => server.audit.enqueue(entries).await?,
    }
    Ok(())
}

async fn send(
    server: &ProxyServer,
    target: &Target,
    outgoing: Outgoing,
    url: &DestinationUrl,
) -> Result<http::Response<ResponseBody>, Error> {
    let settings = &server.config.proxy;
    let own_timeout = target.definition.as_ref().and_then(|it| it.timeout);
    let timeouts = Timeouts {
        head: own_timeout.unwrap_or(settings.destination_timeout),
        total: settings.total_timeout,
        ..Timeouts::default()
    };
    let destination = Destination {
        url,
        tenant: target.tenant,
        hosts: target.hosts(),
        has_sensitive_head: outgoing.has_sensitive_head,
    };
    let body = OutgoingBody::new(outgoing.body);
    let fault = body.fault();
    let mut request = http::Request::new(body);
    *request.method_mut() = outgoing.method;
    *request.headers_mut() = outgoing.headers;
    let received = server.egress.send(destination, request, &timeouts).await;
    // The place of the event `proxy.invoked`: the destination has responded, or it is known why not.
    let outcome = match &received {
        Ok(received) => status_class(received.status()),
        Err(error) => error.kind(),
    };
    metrics::counter!("proxy_requests_total", "outcome" => outcome).increment(1);
    received.map_err(|error| {
        let fault = fault.and_then(|fault| fault.error());
        fault.unwrap_or(Error::Send(error))
    })
}

fn status_class(status: StatusCode) -> &'static str {
    match status.as_u16() / 100 {
        2 => "2xx",
        3 => "3xx",
        4 => "4xx",
        _ => "5xx",
    }
}
