//! The response to a request, rendered before the commit that makes it true.

use std::sync::Arc;

use cloakroom_platform::api::{Answer, ApiError};
use cloakroom_platform::storage::Error;
use jiff::Timestamp;

use super::lease::Lease;
use crate::keys::TenantKeys;

/// A response that cannot be rendered before the write is not sent, and neither is the write.
const NOT_RENDERED: Error = Error::NotSent("response_not_stored");

/// Renders the result of an operation as the response of a handler.
pub struct ResponseTemplate<'a, T: ?Sized> {
    lease: Option<&'a Lease>,
    render: Box<Render<'a, T>>,
    /// Members that are not stored.
    secrets: &'static [&'static str],
}

type Render<'a, T> = dyn Fn(&T) -> Result<Answer, ApiError> + Send + Sync + 'a;

/// A response to store for an idempotency key; empty for a request without a key.
#[derive(Clone, Default)]
#[must_use = "the lease ends only with `mark_stored`"]
pub struct PendingResponse<'a> {
    response: Option<(&'a Lease, Answer)>,
    until: Option<Timestamp>,
    reads: Option<Vec<u8>>,
}

impl<'a, T: ?Sized> ResponseTemplate<'a, T> {
    pub fn new(
        lease: Option<&'a Lease>,
        render: impl Fn(&T) -> Result<Answer, ApiError> + Send + Sync + 'a,
    ) -> Self {
        Self {
            lease,
            render: Box::new(render),
            secrets: &[],
        }
    }

    /// For callers that need no response.
    pub fn none() -> Self {
        Self {
            lease: None,
            render: Box::new(|_| Ok(Answer::empty())),
            secrets: &[],
        }
    }

    /// Keeps secrets out of the stored response: it lives for a day, and is shown to every holder of the idempotency key.
    pub fn without_secrets(self, secrets: &'static [&'static str]) -> Self {
        Self { secrets, ..self }
    }

    /// Whether the response must be rendered before the commit.
    pub fn needs_storing(&self) -> bool {
        self.lease.is_some()
    }

    /// Renders the response for the statement that makes the change.
    pub fn render_pending(&self, value: &T) -> Result<PendingResponse<'a>, Error> {
        let Some(lease) = self.lease else {
            return Ok(PendingResponse::default());
        };
        let response = (self.render)(value).map_err(|_| NOT_RENDERED)?;
        Ok(PendingResponse {
            response: Some((lease, response.without(self.secrets))),
            ..PendingResponse::default()
        })
    }

    /// Renders the response after the commit.
    pub fn render(&self, value: &T) -> Result<Answer, ApiError> {
        (self.render)(value)
    }
}

impl PendingResponse<'_> {
    /// Limits the lifetime of the stored response to that of the data it shows.
    pub fn until(mut self, end: Option<Timestamp>) -> Self {
        self.until = end;
        self
    }

    /// Sets the encoded reads to record in the audit log when the response is replayed.
    pub fn with_reads(mut self, reads: Vec<u8>) -> Self {
        self.reads = Some(reads);
        self
    }

    /// The parameter of `insert_response!`: the encrypted response together with the encoded reads to record in the
    /// audit log when it is replayed, by default `reads`.
    pub fn rows(&self, reads: &[u8]) -> Result<Vec<String>, Error> {
        let Some((lease, response)) = &self.response else {
            return Ok(Vec::new());
        };
        let reads = self.reads.as_deref().unwrap_or(reads);
        let row = lease.row(response, reads, self.until);
        Ok(vec![row.map_err(|_| NOT_RENDERED)?])
    }

    /// Encrypts the response with these keys.
    pub fn use_keys(&self, keys: &Arc<TenantKeys>) {
        if let Some((lease, _)) = &self.response {
            lease.use_keys(keys);
        }
    }

    /// Ends the lease: the statement that stored the response made its change and is durable.
    pub fn mark_stored(self) {
        if let Some((lease, _)) = self.response {
            lease.end();
        }
    }
}
