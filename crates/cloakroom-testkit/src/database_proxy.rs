//! A proxy between a vault and its database that counts round trips and can add latency.

use std::str::FromStr as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_postgres::Config;
use tokio_postgres::config::Host;

/// Code of an SSLRequest, which a client sends in place of the first message.
const SSL_REQUEST: [u8; 4] = 80_877_103_u32.to_be_bytes();

/// A PostgreSQL proxy that counts round trips.
pub struct DatabaseProxy {
    /// URL of the database through the proxy.
    pub url: String,
    round_trips: Arc<AtomicU64>,
    accept_task: JoinHandle<()>,
}

impl DatabaseProxy {
    pub async fn start(url: &str) -> Self {
        Self::with_delay(url, Duration::ZERO).await
    }

    /// Delays traffic by `delay` in each direction.
    #[expect(
        clippy::disallowed_methods,
        reason = "the proxy ends with the test that holds it"
    )]
    pub async fn with_delay(url: &str, delay: Duration) -> Self {
        let config = Config::from_str(url).unwrap();
        let Some(Host::Tcp(host)) = config.get_hosts().first().cloned() else {
            panic!("the database is not reached by TCP");
        };
        let server = (host, config.get_ports()[0]);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let round_trips = Arc::new(AtomicU64::new(0));
        let counter = round_trips.clone();
        let accept_task = tokio::spawn(async move {
            loop {
                let (client, _) = listener.accept().await.unwrap();
                let server = TcpStream::connect(server.clone()).await.unwrap();
                tokio::spawn(forward(client, server, delay, counter.clone()));
            }
        });
        Self {
            url: url.replace(
                &format!(":{}/", config.get_ports()[0]),
                &format!(":{port}/"),
            ),
            round_trips,
            accept_task,
        }
    }

    /// Number of round trips so far.
    pub fn round_trips(&self) -> u64 {
        self.round_trips.load(Ordering::SeqCst)
    }
}

impl Drop for DatabaseProxy {
    fn drop(&mut self) {
        self.accept_task.abort();
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "ends when one of the connections closes"
)]
async fn forward(
    client: TcpStream,
    server: TcpStream,
    delay: Duration,
    round_trips: Arc<AtomicU64>,
) {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let replies = tokio::spawn(async move {
        let mut buffer = vec![0; 65_536];
        while let Ok(length @ 1..) = from_server.read(&mut buffer).await {
            tokio::time::sleep(delay).await;
            if to_client.write_all(&buffer[..length]).await.is_err() {
                break;
            }
        }
    });
    let mut is_started = false;
    let mut starts_round_trip = true;
    loop {
        let mut message = Vec::new();
        if is_started {
            let Ok(kind) = from_client.read_u8().await else {
                break;
            };
            message.push(kind);
            if starts_round_trip {
                tokio::time::sleep(delay).await;
            }
            // A client waits for the reply to Sync and Query.
            starts_round_trip = matches!(kind, b'S' | b'Q');
            if starts_round_trip {
                round_trips.fetch_add(1, Ordering::SeqCst);
            }
        }
        let Ok(length) = from_client.read_u32().await else {
            break;
        };
        message.extend(length.to_be_bytes());
        let start = message.len();
        message.resize(start + length as usize - 4, 0);
        if from_client.read_exact(&mut message[start..]).await.is_err() {
            break;
        }
        is_started = is_started || message.get(4..8) != Some(&SSL_REQUEST);
        if to_server.write_all(&message).await.is_err() {
            break;
        }
    }
    replies.abort();
}
