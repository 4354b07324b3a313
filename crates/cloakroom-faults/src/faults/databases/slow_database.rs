//! Delays every response of the database with a proxy.

use std::sync::Arc;

use anyhow::Result;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::clients::Workload;
use crate::faults::Environment;

const DELAY: Duration = Duration::from_millis(150);

pub(in crate::faults) async fn inject(
    environment: &Environment,
    _load: &Arc<Workload>,
) -> Result<()> {
    let cluster = &environment.cluster;
    let mut proxies = JoinSet::new();
    let mut addresses = Vec::new();
    for database in &cluster.databases {
        let listener = TcpListener::bind((cluster.network.address(1), 0)).await?;
        addresses.push(listener.local_addr()?.to_string());
        proxies.spawn(delay_all(
            listener,
            format!("{}:5432", database.machine.address),
        ));
    }
    for node in &cluster.nodes {
        cluster.route_to_database(node, &addresses)?;
        node.restart_proxy().await?;
    }
    tokio::time::sleep(environment.fault_duration * 2).await;
    for node in &cluster.nodes {
        cluster.route_to_database(node, &[])?;
        node.restart_proxy().await?;
    }
    Ok(())
}

async fn delay_all(listener: TcpListener, target: String) {
    let mut connections = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        let target = target.clone();
        connections.spawn(async move {
            let Ok(server) = TcpStream::connect(target).await else {
                return;
            };
            let (from_client, to_client) = client.into_split();
            let (mut from_server, to_server) = server.into_split();
            let requests = forward(from_client, to_server, Duration::ZERO);
            let responses = async {
                let from_server = &mut from_server;
                forward(from_server, to_client, DELAY).await;
            };
            tokio::join!(requests, responses);
        });
    }
}

/// Forwards data with a delay per chunk.
async fn forward(
    mut from: impl tokio::io::AsyncRead + Unpin,
    mut to: impl tokio::io::AsyncWrite + Unpin,
    delay: Duration,
) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        tokio::time::sleep(delay).await;
        if to.write_all(&buffer[..length]).await.is_err() {
            return;
        }
    }
    let _closed = to.shutdown().await;
}
