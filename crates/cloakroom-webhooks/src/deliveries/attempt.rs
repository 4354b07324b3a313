//! One attempt to deliver an event.

use std::time::Duration;

use bytes::Bytes;
use cloakroom_core::keys;
use cloakroom_egress::{Destination, DestinationUrl, SendError, Timeouts};
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use tokio::time::timeout;

use super::payload::envelope;
use super::store::ClaimedDelivery;
use crate::server::WebhookServer;
use crate::signatures::{Secret, SignedBody, sign};
use crate::webhooks::Endpoint;

/// An endpoint must respond within ten seconds.
const TIMEOUTS: Timeouts = Timeouts {
    connect: Duration::from_secs(5),
    head: Duration::from_secs(10),
    idle: Duration::from_secs(10),
    total: Duration::from_secs(10),
};
/// Ends an attempt that the inner time limits do not end. Less than the claim of the row.
const ATTEMPT_MAX: Duration = Duration::from_secs(12);
/// Responses are read up to here, so that the connection can be reused. Their content does not matter.
const RESPONSE_BYTES_MAX: usize = 64 * 1024;

/// What became of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The endpoint responded with a status of 200 to 299.
    Delivered(StatusCode),
    /// The endpoint responded with another status.
    Rejected(StatusCode),
    /// There was no response. The text names the reason.
    Failed(&'static str),
    /// Nothing was sent, because of limits of this node. The attempt does not count.
    Busy(&'static str),
    /// Nothing was sent, because the vault's own keys are damaged, which repeating hardly changes. The attempt does not
    /// count: it is not the endpoint's failure.
    Unsigned(&'static str),
}

/// Sends an event to its webhook.
pub(super) async fn attempt(
    server: &WebhookServer,
    endpoint: &Endpoint,
    claimed: &ClaimedDelivery,
) -> Outcome {
    let attempt = prepare_and_send(server, endpoint, claimed);
    match timeout(ATTEMPT_MAX, attempt).await {
        Ok(outcome) => outcome,
        Err(_) => Outcome::Failed("timeout"),
    }
}

async fn prepare_and_send(
    server: &WebhookServer,
    endpoint: &Endpoint,
    claimed: &ClaimedDelivery,
) -> Outcome {
    let control = server.keys.control();
    let (tenant, webhook) = (endpoint.tenant.number, endpoint.row.id);
    if !claimed.event.is_genuine(control, tenant, webhook) {
        tracing::error!(
            error.kind = "altered_row",
            tenant.id = %endpoint.tenant.uuid,
            webhook.id = %endpoint.row.id,
            "an event was changed or copied outside the vault; it is not delivered"
        );
        return Outcome::Failed("altered_row");
    }
    let Ok(url) = DestinationUrl::parse(&endpoint.row.url) else {
        return Outcome::Failed("invalid_url");
    };
    match signed_body(server, endpoint, claimed).await {
        Ok(Some(signed)) => send(server, endpoint, &url, signed).await,
        Ok(None) => Outcome::Failed("invalid_event"),
        Err(keys::Error::Storage(_) | keys::Error::Provider(_)) => {
            Outcome::Busy("keys_unavailable")
        }
        Err(error) => Outcome::Unsigned(error_kind(&error)),
    }
}

fn error_kind(error: &keys::Error) -> &'static str {
    match error {
        keys::Error::Missing(_) | keys::Error::SystemKeysLost => "key_missing",
        keys::Error::WrongKey(_) | keys::Error::RootKey(_) => "wrong_key",
        keys::Error::Integrity => "key_altered",
        _ => "keys",
    }
}

/// Builds and signs the body of this attempt; `None` if the event cannot be read.
async fn signed_body(
    server: &WebhookServer,
    endpoint: &Endpoint,
    claimed: &ClaimedDelivery,
) -> Result<Option<SignedBody>, keys::Error> {
    let webhook = &endpoint.row;
    let secret = Secret::open(&server.keys, endpoint.tenant, webhook.id, &webhook.secret).await?;
    let signing_keys = server.signing_keys.current(server).await?;
    let now = server.clock.now().await?;
    let Some(body) = envelope(endpoint.tenant, webhook.id, claimed, now) else {
        return Ok(None);
    };
    let event = claimed.event.id;
    // An RSA signature takes up to a millisecond, which must not delay requests.
    let signed = tokio::task::spawn_blocking(move || {
        let key = signing_keys.first();
        let key = key.ok_or(keys::Error::Missing("webhook signing key"))?;
        sign(key, &secret, event, now, body)
    });
    signed.await.map_err(|_| keys::Error::Seal)?.map(Some)
}

async fn send(
    server: &WebhookServer,
    endpoint: &Endpoint,
    url: &DestinationUrl,
    signed: SignedBody,
) -> Outcome {
    let mut request = Request::new(Full::<Bytes>::new(signed.body));
    *request.method_mut() = Method::POST;
    *request.headers_mut() = signed.headers;
    let destination = Destination {
        url,
        tenant: endpoint.tenant,
        hosts: endpoint.settings.egress_hosts.as_ref(),
        has_sensitive_head: false,
    };
    match server.egress.send(destination, request, &TIMEOUTS).await {
        Ok(response) => {
            let status = response.status();
            let body = Limited::new(response.into_body(), RESPONSE_BYTES_MAX);
            // The status decides, even if the body is too large or incomplete.
            let _ignored = body.collect().await;
            match status.is_success() {
                true => Outcome::Delivered(status),
                false => Outcome::Rejected(status),
            }
        }
        Err(error @ (SendError::Overloaded | SendError::CircuitOpen)) => {
            Outcome::Busy(error.kind())
        }
        Err(error) => Outcome::Failed(error.kind()),
    }
}
