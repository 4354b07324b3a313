//! The event of an invocation.

use std::time::Duration;

use cloakroom_core::events::{Event, EventKind};
use cloakroom_egress::{DestinationUrl, SendError};
use http::StatusCode;
use serde_json::json;

use crate::definition::ProxyDefinition;

/// `proxy.invoked`. Of the destination it shows the origin only: path, query, headers and bodies may contain values.
pub(super) fn invoked(
    definition: &ProxyDefinition,
    url: &DestinationUrl,
    outcome: Result<StatusCode, &SendError>,
    elapsed: Duration,
) -> Event {
    let elapsed_ms = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
    let response = match outcome {
        Ok(status) => json!({"status": status.as_u16(), "elapsed_ms": elapsed_ms}),
        Err(error) => json!({"error": error.kind(), "elapsed_ms": elapsed_ms}),
    };
    let data = json!({
        "proxy": {"id": definition.id, "name": definition.name},
        "destination": {"request": {"url": url.origin()}, "response": response},
    });
    // Invocations of one proxy are many and concurrent: a delivery that fails must not delay the others.
    Event::unordered(EventKind::ProxyInvoked, data)
}
