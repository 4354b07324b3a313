//! Transforms of pre-configured proxies, before a request is sent and before its response is returned.

use bytes::Bytes;
use cloakroom_core::caller::Caller;
use cloakroom_core::gates::rate_limits::admit_work;
use cloakroom_crypto::Sensitive;
use cloakroom_egress::ResponseBody;
use cloakroom_platform::api::ApiError;
use serde_json::Value;

use super::body::{Limits, ReceivedBody};
use super::call::Call;
use super::error::Error;
use super::outgoing::Outgoing;
use super::replace::Replaced;
use super::target::Target;
use super::{encrypted, headers, response};
use crate::exchange::{BufferedResponse, Exchange, OutgoingRequest, ReceivedRequest};
use crate::server::ProxyServer;
use crate::transforms;

/// Applies the request transforms. They see the request as the caller sent it, with `sent_body`, and as it will be sent.
pub(super) async fn request(
    server: &ProxyServer,
    target: &Target,
    call: &Call,
    sent_body: Bytes,
    replaced: Replaced,
) -> Result<(Outgoing, Option<Exchange>), Error> {
    let Replaced {
        mut outgoing,
        encrypted,
    } = replaced;
    let Some(definition) = &target.definition else {
        return Ok((outgoing, None));
    };
    let mut exchange = exchange(call, sent_body, &mut outgoing, encrypted);
    let _permit = admit_work(&server.limits, target.tenant, true).await?;
    let applied = transforms::apply_request(server, &definition.transforms, &mut exchange).await;
    applied.map_err(
        |error| match outgoing.has_values && error.depends_on_values() {
            true => Error::NotEvaluated,
            false => ApiError::from(error).into(),
        },
    )?;
    take_back(&mut exchange, &mut outgoing);
    if target.transforms_response() {
        headers::require_identity(&mut outgoing.headers);
    }
    Ok((outgoing, Some(exchange)))
}

/// Receives the response completely and applies the response transforms. The destination has processed the request, so
/// every failure withholds the response, and none invites a retry.
pub(super) async fn response(
    server: &ProxyServer,
    target: &Target,
    mut exchange: Exchange,
    received: http::Response<ResponseBody>,
    limits: Limits,
) -> Result<BufferedResponse, Error> {
    let Some(definition) = &target.definition else {
        return Err(Error::ResponseNotTransformed);
    };
    let mut received = response::receive(received, limits.complete_bytes).await?;
    let permit = admit_work(&server.limits, target.tenant, true).await;
    let _permit = permit.map_err(|_| Error::ResponseNotTransformed)?;
    let transforms = &definition.transforms;
    let workers = &server.mask_workers;
    let applied =
        transforms::apply_response(server, workers, transforms, &mut exchange, &mut received);
    applied.await.map_err(ApiError::from)?;
    Ok(received)
}

/// Decrypts `BT-ENCRYPTED` for `tokenize` transforms of a proxy that replaces no expressions. They have the permissions of
/// the proxy's application, and so has the decryption: a client encryption key may be bound to it.
pub(super) async fn decrypt(
    server: &ProxyServer,
    target: &Target,
    call: &Call,
) -> Result<Option<Value>, Error> {
    if !target.transforms_read_encrypted() {
        return Ok(None);
    }
    let definition = target.definition.as_ref();
    let application = definition.and_then(|it| it.transforms.application.clone());
    let Some(application) = application else {
        return Ok(None);
    };
    let origin = call.client.map(|client| client.0);
    let caller = Caller::new(application, call.trace_id.clone(), origin);
    let _permit = admit_work(&server.limits, target.tenant, true).await?;
    let decrypted = encrypted::decrypt(server, &caller, &call.headers).await?;
    Ok(decrypted.map(|decrypted| decrypted.all()))
}

/// What transforms see. The body that is sent moves into it and back.
fn exchange(
    call: &Call,
    sent_body: Bytes,
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
