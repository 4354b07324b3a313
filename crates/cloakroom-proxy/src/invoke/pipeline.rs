//! The path of a proxied request.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::Request;
use axum::response::Response;
use cloakroom_core::audit::{EntityKind, Entry, Operation};
use cloakroom_core::caller::Caller;
use cloakroom_egress::{Destination, DestinationUrl, ResponseBody, SendError, Timeouts};
use cloakroom_platform::api::ApiError;
use cloakroom_platform::telemetry::catalog;
use http::StatusCode;

use super::body::{self, Limits};
use super::call::Call;
use super::error::Error;
use super::outgoing::{Outgoing, OutgoingBody};
use super::target::Target;
use super::{event, headers, replace, response, transform};
use crate::server::ProxyServer;

/// Sends a request to its destination, with tokens replaced by their data, and returns the response.
pub(super) async fn invoke(server: &ProxyServer, request: Request) -> Result<Response, Error> {
    let (head, body) = request.into_parts();
    let call = Call::new(head);
    if headers::is_marked(&call.headers) {
        return Err(Error::Loop);
    }
    let target = Target::select(server, &call).await?;
    // Before anything is decrypted: a destination that is not allowed gets nothing.
    server.egress.check(&target.base, target.hosts())?;
    target.base.join(&call.suffix, None)?;

    let limits = Limits::new(&server.config);
    let body = body::receive(body, limits).await?;
    let sent_body = body.complete();
    let actor = actor(&target, &call)?;
    let mut prepared = replace::prepare(server, &target, &call, body).await?;
    record(server, &target, &actor, &mut prepared.outgoing).await?;

    let replaced = prepared.evaluate(&target, &call)?;
    let (mut outgoing, exchange) = match target.has_transforms() {
        true => {
            let sent_body = sent_body.ok_or(Error::BodyTooLarge(limits.complete_bytes))?;
            transform::request(server, &target, &call, sent_body, replaced).await?
        }
        false => (replaced.outgoing, None),
    };

    let url = target.base.join(&call.suffix, outgoing.query.as_deref());
    let url = url.map_err(|error| match outgoing.has_values {
        true => Error::NotEvaluated,
        false => error.into(),
    })?;
    let invocation = Invocation {
        server,
        target: &target,
        actor: &actor,
        is_anonymous: call.caller.is_none(),
    };
    target.withhold_configuration(&mut outgoing.withheld);
    let mut withheld = std::mem::take(&mut outgoing.withheld);
    if !withheld.is_empty() {
        headers::require_readable(&mut outgoing.headers);
    }
    let received = invocation.send(outgoing, &url).await?;
    let response = match exchange {
        Some(exchange) if target.transforms_response() && received.status().is_success() => {
            let received = transform::response(server, &target, exchange, received, limits);
            match received.await? {
                received if withheld.are_in(&received) => Err(Error::ResponseWithheld),
                received => Ok(response::complete(received)),
            }
        }
        _ => {
            // Transforms run on successful responses only.
            withheld.any_number = target.hides_in_response();
            match withheld.is_empty() {
                true => Ok(response::streamed(received)),
                false => response::searched(received, &withheld).await,
            }
        }
    }?;
    Ok(match invocation.is_anonymous {
        true => response::without_navigation(response),
        false => response,
    })
}

/// The caller in the audit log. Invocations without a key are recorded as those of the proxy.
fn actor(target: &Target, call: &Call) -> Result<Arc<Caller>, Error> {
    if let Some(caller) = &call.caller {
        return Ok(Arc::clone(caller));
    }
    let definition = target.definition.as_ref();
    let definition = definition.ok_or_else(ApiError::unauthorized)?;
    let origin = call.client.map(|client| client.0);
    let anonymous = definition.anonymous.clone();
    Ok(Arc::new(Caller::new(
        anonymous,
        call.trace_id.clone(),
        origin,
    )))
}

/// Records the use of every value together with the destination. Durable before a value is used: whether its evaluation
/// fails already discloses something about it. If it cannot be recorded, nothing is evaluated or sent.
async fn record(
    server: &ProxyServer,
    target: &Target,
    actor: &Caller,
    outgoing: &mut Outgoing,
) -> Result<(), Error> {
    let mut entries = std::mem::take(&mut outgoing.entries);
    let host = target.base.host().to_owned();
    let kind = EntityKind::Destination;
    entries.push(Entry::new(actor, Operation::Use, kind, host));
    match outgoing.has_values {
        true => server.audit.record(entries).await?,
        false => server.audit.enqueue(entries).await?,
    }
    Ok(())
}

/// An invocation that is ready to be sent.
struct Invocation<'a> {
    server: &'a ProxyServer,
    target: &'a Target,
    actor: &'a Caller,
    is_anonymous: bool,
}

impl Invocation<'_> {
    async fn send(
        &self,
        outgoing: Outgoing,
        url: &DestinationUrl,
    ) -> Result<http::Response<ResponseBody>, Error> {
        let target = self.target;
        let settings = &self.server.config.proxy;
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
        headers::mark(request.headers_mut());
        let started_at = Instant::now();
        let egress = &self.server.egress;
        let received = match self.is_anonymous {
            true => egress.send_anonymous(destination, request, &timeouts).await,
            false => egress.send(destination, request, &timeouts).await,
        };
        let outcome = received.as_ref().map(http::Response::status);
        count(outcome);
        self.record(url, outcome, started_at).await;
        received.map_err(|error| {
            let fault = fault.and_then(|fault| fault.error());
            fault.unwrap_or(Error::Send(error))
        })
    }

    /// Records the invocation of a pre-configured proxy, with its event, once its outcome is known.
    async fn record(
        &self,
        url: &DestinationUrl,
        outcome: Result<StatusCode, &SendError>,
        started_at: Instant,
    ) {
        let Some(definition) = &self.target.definition else {
            return;
        };
        let id = definition.id.to_string();
        let entry = Entry::new(self.actor, Operation::Invoke, EntityKind::Proxy, id);
        let event = event::invoked(definition, url, outcome, started_at.elapsed());
        let enqueued = self
            .server
            .audit
            .enqueue(vec![entry.with_event(event)])
            .await;
        // The destination may have acted on the request: its response is not withheld. The use itself is recorded.
        if enqueued.is_err() {
            catalog::PROXY_UNRECORDED.increment(1);
        }
    }
}

fn count(outcome: Result<StatusCode, &SendError>) {
    let outcome = match outcome {
        Ok(status) => status_class(status),
        Err(error) => error.kind(),
    };
    catalog::PROXY_REQUESTS.with([outcome]).increment(1);
}

fn status_class(status: StatusCode) -> &'static str {
    match status.as_u16() / 100 {
        2 => "2xx",
        3 => "3xx",
        4 => "4xx",
        _ => "5xx",
    }
}
