//! The request that is sent to the destination.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::HttpBody;
use bytes::Bytes;
use cloakroom_core::audit::Entry;
use http::{HeaderMap, Method};
use http_body::{Frame, SizeHint};
use http_body_util::Full;

use super::body::{BodyFault, FaultReport, ReceivedBody, StreamedBody};
use super::call::Call;
use super::headers;
use super::withheld::Withheld;

pub(super) struct Outgoing {
    pub(super) method: Method,
    pub(super) query: Option<String>,
    pub(super) headers: HeaderMap,
    pub(super) body: ReceivedBody,
    /// Whether the request contains any value.
    pub(super) has_values: bool,
    /// Whether query or headers contain values.
    pub(super) has_sensitive_head: bool,
    /// The audit log entries of the values. They must be recorded before the request is sent.
    pub(super) entries: Vec<Entry>,
    /// What the response must not return to the caller.
    pub(super) withheld: Withheld,
}

impl Outgoing {
    /// The request with its expressions, if any, as they are.
    pub(super) fn verbatim(call: &Call, body: ReceivedBody) -> Self {
        Self {
            method: call.method.clone(),
            query: call.query.clone(),
            headers: headers::outgoing(&call.headers),
            body,
            has_values: false,
            has_sensitive_head: false,
            entries: Vec::new(),
            withheld: Withheld::default(),
        }
    }
}

/// The body of an outgoing request.
pub(super) enum OutgoingBody {
    Complete(Full<Bytes>),
    Streamed(StreamedBody),
}

impl OutgoingBody {
    pub(super) fn new(body: ReceivedBody) -> Self {
        match body {
            ReceivedBody::Complete(bytes) => Self::Complete(Full::new(bytes)),
            ReceivedBody::Streamed(body) => Self::Streamed(body),
        }
    }

    pub(super) fn fault(&self) -> Option<FaultReport> {
        match self {
            Self::Complete(_) => None,
            Self::Streamed(body) => Some(body.fault()),
        }
    }
}

impl HttpBody for OutgoingBody {
    type Data = Bytes;
    type Error = BodyFault;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyFault>>> {
        match self.get_mut() {
            Self::Complete(body) => {
                let frame = Pin::new(body).poll_frame(context);
                frame.map_err(|never| match never {})
            }
            Self::Streamed(body) => Pin::new(body).poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Complete(body) => body.is_end_stream(),
            Self::Streamed(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Complete(body) => body.size_hint(),
            Self::Streamed(body) => body.size_hint(),
        }
    }
}
