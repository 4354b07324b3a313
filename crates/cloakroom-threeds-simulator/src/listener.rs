//! A listener on a loopback address: accepts connections, bounds them, and can hang up on purpose.

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
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Between two requests of a connection as well: longer than clients keep theirs.
const HEAD: Duration = Duration::from_secs(120);
/// How long to wait when the system has no room for another connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// In an answer's extensions: send nothing and close the connection.
#[derive(Clone, Copy)]
pub(crate) struct HangUp;

/// An address that is held but does not answer yet.
pub(crate) struct Listener {
    listener: TcpListener,
    pub(crate) address: SocketAddr,
}

impl Listener {
    /// Refuses addresses that others can reach: everybody passes here who knows `1234`.
    pub(crate) async fn bind(address: SocketAddr) -> Result<Self, Error> {
        if !address.ip().is_loopback() {
            return Err(Error::NotLoopback { address });
        }
        let refused = |reason| Error::Listen { address, reason };
        let listener = TcpListener::bind(address).await.map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        Ok(Self { listener, address })
    }

    /// Answers until the future is dropped, which cuts every connection.
    pub(crate) async fn run(self, app: Router, tls: Option<TlsAcceptor>) {
        let mut connections = JoinSet::new();
        loop {
            let has_room = connections.len() < CONNECTIONS_MAX;
            tokio::select! {
                Some(_) = connections.join_next() => {}
                accepted = self.listener.accept(), if has_room => match accepted {
                    Ok((stream, _)) => {
                        connections.spawn(open(stream, app.clone(), tls.clone()));
                    }
                    Err(_) => sleep(ACCEPT_PAUSE).await,
                },
            }
        }
    }
}

async fn open(stream: TcpStream, app: Router, tls: Option<TlsAcceptor>) {
    // Answers are written whole; waiting to fill a packet would only delay them.
    let _ = stream.set_nodelay(true);
    let Some(tls) = tls else {
        return serve(stream, app).await;
    };
    if let Ok(Ok(stream)) = timeout(HANDSHAKE, tls.accept(stream)).await {
        serve(stream, app).await;
    }
}

async fn serve<I>(io: I, app: Router)
where
    I: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let app = Arc::new(app);
    let service =
        service_fn(move |request: Request<Incoming>| answer(Router::clone(&app), request));
    // How a connection ends is the caller's affair.
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .serve_connection(TokioIo::new(io), service)
        .await;
}

async fn answer(mut app: Router, request: Request<Incoming>) -> io::Result<Response<Body>> {
    let response = match app.call(request).await {
        Ok(response) => response,
        Err(never) => match never {},
    };
    match response.extensions().get::<HangUp>() {
        Some(HangUp) => Err(io::ErrorKind::ConnectionAborted.into()),
        None => Ok(response),
    }
}
