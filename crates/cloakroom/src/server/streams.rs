//! Runs the streams of an HTTP/2 connection, and resets those whose client stops reading.

use std::sync::Arc;
use std::time::Duration;

use cloakroom_platform::telemetry::catalog;
use hyper::rt::Executor;

use super::body::{PROGRESS, Progress};
use super::usage::ConnectionUsage;

/// Runs each stream of one connection in a task of its own.
#[derive(Clone)]
pub(super) struct StreamExecutor {
    pub(super) usage: Arc<ConnectionUsage>,
    pub(super) write_timeout: Duration,
}

impl<F> Executor<F> for StreamExecutor
where
    F: Future<Output = ()> + Send + 'static,
{
    #[expect(
        clippy::disallowed_methods,
        reason = "a stream ends with its connection, or by its timeout"
    )]
    fn execute(&self, stream: F) {
        let open = self.usage.open_stream();
        let write_timeout = self.write_timeout;
        tokio::spawn(async move {
            run(stream, write_timeout).await;
            drop(open);
        });
    }
}

/// Runs a stream to completion. Dropping a stalled stream resets it.
async fn run(stream: impl Future<Output = ()>, write_timeout: Duration) {
    let progress = Arc::new(Progress::default());
    tokio::select! {
        () = PROGRESS.scope(Arc::clone(&progress), stream) => {}
        () = progress.stalled(write_timeout) => {
            catalog::HTTP_STALLED_RESPONSES.with(["http2"]).increment(1);
        }
    }
}
