//! A TCP relay that can cut and stall the network between a node and its provider.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Network {
    Up,
    /// Connections are closed at once.
    Cut,
    /// Connections are accepted, and nothing is ever sent.
    Stalled,
}

pub(crate) struct Relay {
    pub(crate) address: SocketAddr,
    network: Arc<watch::Sender<Network>>,
    _task: JoinSet<()>,
}

impl Relay {
    pub(crate) async fn start(target: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let network = Arc::new(watch::Sender::new(Network::Up));
        let mut task = JoinSet::new();
        task.spawn(accept(listener, target, network.clone()));
        Self {
            address,
            network,
            _task: task,
        }
    }

    /// Changes the network; existing connections are closed.
    pub(crate) fn set(&self, network: Network) {
        self.network.send_replace(network);
    }
}

async fn accept(listener: TcpListener, target: SocketAddr, network: Arc<watch::Sender<Network>>) {
    let mut connections = JoinSet::new();
    loop {
        let (mut client, _) = listener.accept().await.unwrap();
        let mut changes = network.subscribe();
        let state = *changes.borrow_and_update();
        connections.spawn(async move {
            let relay = async {
                match state {
                    Network::Up => {
                        let mut server = TcpStream::connect(target).await.unwrap();
                        let _ = copy_bidirectional(&mut client, &mut server).await;
                    }
                    Network::Cut => {}
                    Network::Stalled => std::future::pending().await,
                }
            };
            tokio::select! {
                () = relay => {}
                _ = changes.changed() => {}
            }
        });
    }
}
