//! A listener between a vault and its database that counts how often the vault waits for it, or makes it wait longer.

use std::str::FromStr as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_postgres::Config;
use tokio_postgres::config::Host;

/// The code of a request for TLS, which comes in place of the first message.
const SSL_REQUEST: [u8; 4] = 80_877_103_u32.to_be_bytes();

/// Everything that goes through it is counted.
pub(crate) struct Tap {
    /// The address of the database, through the tap.
    pub(crate) url: String,
    trips: Arc<AtomicU64>,
    listening: JoinHandle<()>,
}

impl Tap {
    pub(crate) async fn before(url: &str) -> Self {
        Self::far(url, Duration::ZERO).await
    }

    /// What goes through it takes so long, each way.
    #[expect(
        clippy::disallowed_methods,
        reason = "the tap ends with the test that holds it"
    )]
    pub(crate) async fn far(url: &str, delay: Duration) -> Self {
        let config = Config::from_str(url).unwrap();
        let Some(Host::Tcp(host)) = config.get_hosts().first().cloned() else {
            panic!("the database is not reached by TCP");
        };
        let server = (host, config.get_ports()[0]);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let trips = Arc::new(AtomicU64::new(0));
        let counter = trips.clone();
        let listening = tokio::spawn(async move {
            loop {
                let (client, _) = listener.accept().await.unwrap();
                let server = TcpStream::connect(server.clone()).await.unwrap();
                tokio::spawn(pass((client, server), delay, counter.clone()));
            }
        });
        Self {
            url: url.replace(
                &format!(":{}/", config.get_ports()[0]),
                &format!(":{port}/"),
            ),
            trips,
            listening,
        }
    }

    /// How often the vault waited for an answer so far.
    pub(crate) fn trips(&self) -> u64 {
        self.trips.load(Ordering::SeqCst)
    }
}

impl Drop for Tap {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "it ends when one of the two ends does"
)]
async fn pass((client, server): (TcpStream, TcpStream), delay: Duration, trips: Arc<AtomicU64>) {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let back = tokio::spawn(async move {
        let mut answer = vec![0; 65_536];
        while let Ok(length @ 1..) = from_server.read(&mut answer).await {
            tokio::time::sleep(delay).await;
            if to_client.write_all(&answer[..length]).await.is_err() {
                break;
            }
        }
    });
    let mut is_started = false;
    let mut begins = true;
    loop {
        let mut message = Vec::new();
        if is_started {
            let Ok(kind) = from_client.read_u8().await else {
                break;
            };
            message.push(kind);
            if begins {
                tokio::time::sleep(delay).await;
            }
            // Sync and Query are what a client waits for.
            begins = matches!(kind, b'S' | b'Q');
            if begins {
                trips.fetch_add(1, Ordering::SeqCst);
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
    back.abort();
}
