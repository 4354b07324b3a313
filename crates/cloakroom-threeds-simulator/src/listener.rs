//! A listener on a loopback address that limits connections and can close them without a response.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tower::Service as _;

use crate::Error;

const CONNECTIONS_MAX: usize = 256;
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Also the idle timeout between requests; longer than the idle timeout of clients.
const HEADER_READ_TIMEOUT: Duration = Duration::from_secs(120);
/// Delay after a failed `accept`, for example when file descriptors are exhausted.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// Response extension: close the connection without sending the response.
#[derive(Clone, Copy)]
pub(crate) struct CloseConnection;

/// A bound address that does not accept connections yet.
pub(crate) struct Listener {
    listener: TcpListener,
    pub(crate) address: SocketAddr,
}

impl Listener {
    /// Rejects non-loopback addresses: the simulator authenticates anyone with the code `1234`.
    pub(crate) async fn bind(address: SocketAddr) -> Result<Self, Error> {
        if !address.ip().is_loopback() {
            return Err(Error::NotLoopback { address });
        }
        let listen_error = |reason| Error::Listen { address, reason };
        let listener = TcpListener::bind(address).await.map_err(listen_error)?;
        let address = listener.local_addr().map_err(listen_error)?;
        Ok(Self { listener, address })
    }

    /// Serves until the future is dropped, which closes every connection.
    pub(crate) async fn run(self, app: Router, tls: Option<TlsAcceptor>) {
        let mut connections = JoinSet::new();
        loop {
            let has_capacity = connections.len() < CONNECTIONS_MAX;
            tokio::select! {
                Some(_) = connections.join_next() => {}
                accepted = self.listener.accept(), if has_capacity => match accepted {
                    Ok((stream, _)) => {
                        connections.spawn(accept(stream, app.clone(), tls.clone()));
                    }
                    Err(_) => sleep(ACCEPT_RETRY_DELAY).await,
                },
            }
        }
    }
}

async fn accept(stream: TcpStream, app: Router, tls: Option<TlsAcceptor>) {
    // Responses are written at once; Nagle's algorithm would only delay them.
    let _ = stream.set_nodelay(true);
    let Some(tls) = tls else {
        return serve(stream, app).await;
    };
    if let Ok(Ok(stream)) = timeout(HANDSHAKE_TIMEOUT, tls.accept(stream)).await {
        serve(stream, app).await;
    }
}

async fn serve<I>(io: I, app: Router)
where
    I: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let app = Arc::new(app);
    let service =
        service_fn(move |request: Request<Incoming>| handle(Router::clone(&app), request));
    // Connection errors are the client's concern.
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_READ_TIMEOUT)
        .serve_connection(TokioIo::new(io), service)
        .await;
}

async fn handle(mut app: Router, request: Request<Incoming>) -> io::Result<Response<Body>> {
    let response = match app.call(request).await {
        Ok(response) => response,
        Err(never) => match never {},
    };
    match response.extensions().get::<CloseConnection>() {
        Some(CloseConnection) => Err(io::ErrorKind::ConnectionAborted.into()),
        None => Ok(response),
    }
}
