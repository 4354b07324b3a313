//! A TLS listener on the loopback interface.

use std::net::{Ipv4Addr, SocketAddr};

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::Error;

pub(crate) struct Listener {
    listener: TcpListener,
    pub(crate) address: SocketAddr,
}

impl Listener {
    pub(crate) async fn bind() -> Result<Self, Error> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let listen_error = |reason| Error::Listen { address, reason };
        let listener = TcpListener::bind(address).await.map_err(listen_error)?;
        let address = listener.local_addr().map_err(listen_error)?;
        Ok(Self { listener, address })
    }

    /// Serves until the future is dropped, which closes every connection.
    pub(crate) async fn run(self, app: Router, tls: TlsAcceptor) {
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                Some(_) = connections.join_next() => {}
                accepted = self.listener.accept() => if let Ok((stream, _)) = accepted {
                    connections.spawn(serve(stream, app.clone(), tls.clone()));
                },
            }
        }
    }
}

async fn serve(stream: TcpStream, app: Router, tls: TlsAcceptor) {
    let Ok(stream) = tls.accept(stream).await else {
        return;
    };
    // Connection errors are the client's concern.
    let _ = http1::Builder::new()
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(app))
        .await;
}
