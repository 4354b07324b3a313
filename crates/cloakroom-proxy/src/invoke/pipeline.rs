//! The path of a proxied request.

use axum::extract::Request;
use axum::response::Response;
use cloakroom_core::audit::{EntityKind, Entry, Operation};
use cloakroom_core::caller::Caller;
use cloakroom_egress::{Destination, DestinationUrl, ResponseBody, Timeouts};
use cloakroom_platform::api::ApiError;
use http::StatusCode;

use super::body::{self, Limits};
use super::call::Call;
use super::error::Error;
use super::outgoing::{Outgoing, OutgoingBody};
use super::replace::{Replaced, replace};
use super::target::Target;
use super::{response, transform};
use crate::server::ProxyServer;

/// Sends a request to its destination, with tokens replaced by their data, and returns the response.
pub(super) async fn invoke(server: &ProxyServer, request: Request) -> Result<Response, Error> {
    let (head, body) = request.into_parts();
    let call = Call::new(head);
    let target = Target::select(server, &call).await?;
    // Before anything is decrypted: a destination that is not allowed gets nothing.
    server.egress.check(&target.base, target.hosts())?;
    target.base.join(&call.suffix, None)?;

    let limits = Limits::new(&server.config);
    let body = body::receive(body, limits).await?;
    let sent_body = body.complete();
    let replaced = match &target.replaces_for {
        Some(caller) => replace(server, &target, caller, &call, body).await?,
        None => Replaced {
            outgoing: Outgoing::verbatim(&call, body),
            encrypted: transform::decrypt(server, &target, &call).await?,
        },
    };
    let (mut outgoing, exchange) = match target.has_transforms() {
        true => {
            let sent_body = sent_body.ok_or(Error::BodyTooLarge(limits.complete_bytes))?;
            transform::request(server, &target, &call, sent_body, replaced).await?
        }
        false => (replaced.outgoing, None),
    };

    let url = target.base.join(&call.suffix, outgoing.query.as_deref())?;
    record(server, &target, &call, &mut outgoing, &url).await?;
    let received = send(server, &target, outgoing, &url).await?;
    match exchange {
        Some(exchange) if target.transforms_response() && received.status().is_success() => {
            transform::response(server, &target, exchange, received, limits).await
        }
        _ => Ok(response::streamed(received)),
    }
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
