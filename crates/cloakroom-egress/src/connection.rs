//! An open HTTP/1.1 connection.

use std::time::{Duration, Instant};

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::TrySendError;
use hyper::client::conn::http1::SendRequest;
use tokio::task::AbortHandle;

use crate::request::RequestBody;

/// How long the previous response may take to be finished by the driver, after its last byte was read.
const READY_TIMEOUT: Duration = Duration::from_millis(10);

/// A connection for one request at a time. Dropping it closes it.
pub(crate) struct Connection {
    sender: SendRequest<RequestBody>,
    driver: AbortHandle,
    opened_at: Instant,
}

impl Connection {
    /// Runs the protocol in a task, which ends with the connection.
    #[expect(
        clippy::disallowed_methods,
        reason = "the driver task ends with its connection"
    )]
    pub(crate) fn new<D>(sender: SendRequest<RequestBody>, driver: D) -> Self
    where
        D: Future<Output = hyper::Result<()>> + Send + 'static,
    {
        let driver = tokio::spawn(async {
            // The request that is in flight, if any, gets the error.
            let _ = driver.await;
        });
        Self {
            sender,
            driver: driver.abort_handle(),
            opened_at: Instant::now(),
        }
    }

    pub(crate) fn age(&self) -> Duration {
        self.opened_at.elapsed()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }

    /// Whether the connection can take a request now.
    pub(crate) async fn is_ready(&mut self) -> bool {
        if self.sender.is_ready() {
            return true;
        }
        let ready = tokio::time::timeout(READY_TIMEOUT, self.sender.ready()).await;
        matches!(ready, Ok(Ok(())))
    }

    /// Sends a request. The error contains the request if no byte of it was written.
    pub(crate) async fn send(
        &mut self,
        request: Request<RequestBody>,
    ) -> Result<Response<Incoming>, TrySendError<Request<RequestBody>>> {
        self.sender.try_send_request(request).await
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}
