//! TLS in front of the vault and the shop, under the names that browsers and webhooks use.
//!
//! The official packages connect to the vault over https on port 443 only, so a browser has to map that port to this
//! one. Connections are forwarded as they are, by the name in the TLS handshake.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use cloakroom_processor_simulator::TestTls;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// Bound, but not yet accepting connections.
pub(super) struct Front {
    listener: TcpListener,
    pub(super) address: SocketAddr,
    pub(super) tls: TestTls,
}

/// The server of a host name.
#[derive(Clone, Copy)]
pub(super) struct Backend {
    pub(super) host: &'static str,
    pub(super) address: SocketAddr,
}

impl Front {
    pub(super) async fn bind(hosts: &[&str]) -> anyhow::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        Ok(Self {
            address: listener.local_addr()?,
            listener,
            tls: TestTls::create(hosts)?,
        })
    }

    /// Forwards until the future is dropped, which closes every connection.
    pub(super) async fn run(self, backends: Arc<[Backend]>) {
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                Some(_) = connections.join_next() => {}
                accepted = self.listener.accept() => if let Ok((stream, _)) = accepted {
                    let (acceptor, backends) = (self.tls.acceptor.clone(), backends.clone());
                    connections.spawn(async move {
                        let Ok(mut client) = acceptor.accept(stream).await else {
                            return;
                        };
                        let name = client.get_ref().1.server_name().map(str::to_owned);
                        let backend = backends.iter().find(|one| Some(one.host) == name.as_deref());
                        let Some(backend) = backend else {
                            return;
                        };
                        if let Ok(mut server) = TcpStream::connect(backend.address).await {
                            // A connection that either side closes is an error of neither.
                            let _ = copy_bidirectional(&mut client, &mut server).await;
                        }
                    });
                },
            }
        }
    }
}
