//! The shared connection to Redis. While Redis is unavailable, requests fail fast.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{
    AsyncConnectionConfig, Client, ErrorKind, FromRedisValue, Pipeline, RedisError,
    ServerErrorKind, TlsCertificates, cmd, pipe,
};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use super::Error;
use crate::config;
use crate::telemetry::catalog;

/// Redis counts as unavailable after `SILENT_POLLS_MAX` consecutive polls without any response: 100 ms in total.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
const SILENT_POLLS_MAX: u32 = 5;
/// Timeout of a request while Redis responds to others. Redis is then slow, not unavailable.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(1);
/// Timeout of jobs and diagnostics, long enough for a slow TLS handshake.
const JOB_TIMEOUT: Duration = Duration::from_secs(2);

/// The Redis server shared by all nodes. Losing its data is acceptable.
///
/// It becomes unavailable when it does not respond for too long or rejects connections. From then on requests fail
/// immediately, until a background job gets a response.
pub struct Redis {
    client: Client,
    connection: Mutex<Option<MultiplexedConnection>>,
    /// Held while connecting, so that concurrent callers share the new connection.
    connecting: tokio::sync::Mutex<()>,
    /// Number of responses received.
    responses: AtomicU64,
    is_unavailable: watch::Sender<bool>,
    /// Number of outages since the start.
    outages: AtomicU64,
    /// A rejected command is logged once: the server will reject it again.
    has_logged_rejection: AtomicBool,
}

/// A Lua script and its SHA-1 digest, for `EVALSHA`.
#[derive(Clone, Copy, Debug)]
pub struct Script {
    pub text: &'static str,
    pub sha1: &'static str,
}

/// Redis returned no usable response in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Redis is unavailable")]
pub struct RedisUnavailable;

/// Whether Redis persists its data to disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Persistence {
    Off,
    /// A setting that makes the server write to disk.
    On(&'static str),
    /// The server does not permit `CONFIG GET`.
    Hidden,
}

/// Settings that keep data in memory, and their values. With `repl-diskless-sync no`, the server writes a dump for each
/// replica that connects, although `save` is empty.
const VOLATILE_SETTINGS: [(&str, &str); 3] = [
    ("save", ""),
    ("appendonly", "no"),
    ("repl-diskless-sync", "yes"),
];

impl Redis {
    /// Creates the client, if a URL is configured. The connection is opened on first use.
    pub fn open(config: &config::Redis) -> Result<Option<Self>, Error> {
        let Some(url) = &config.url else {
            return Ok(None);
        };
        // The library's messages may quote the URL, which contains the password.
        let invalid = |_| Error::RedisAddress("expected a URL like redis://user@host".into());
        let client = match &config.ca_file {
            None => Client::open(url.reveal()).map_err(invalid)?,
            Some(path) => {
                let certificates = std::fs::read(path).map_err(|error| {
                    Error::RedisAddress(format!("{}: {}", path.display(), error.kind()))
                })?;
                let tls = TlsCertificates {
                    client_tls: None,
                    root_cert: Some(certificates),
                };
                Client::build_with_tls(url.reveal(), tls).map_err(invalid)?
            }
        };
        Ok(Some(Self {
            client,
            connection: Mutex::default(),
            connecting: tokio::sync::Mutex::default(),
            responses: AtomicU64::new(0),
            is_unavailable: watch::Sender::new(false),
            outages: AtomicU64::new(0),
            has_logged_rejection: AtomicBool::new(false),
        }))
    }

    /// Whether requests currently fail without contacting Redis.
    pub fn is_unavailable(&self) -> bool {
        *self.is_unavailable.borrow()
    }

    /// How often Redis became unavailable.
    pub fn outages(&self) -> u64 {
        self.outages.load(Ordering::Relaxed)
    }

    /// Runs commands for a request. Fails immediately while Redis is unavailable, and as soon as it becomes so.
    ///
    /// The commands may be sent twice, when the connection turns out to be stale.
    pub async fn query<T: FromRedisValue>(
        &self,
        commands: &Pipeline,
    ) -> Result<T, RedisUnavailable> {
        self.send_within_limits(Call::Commands(commands)).await
    }

    /// Runs a script for a request, with the limits of [`Self::query`].
    pub async fn run<T: FromRedisValue>(
        &self,
        script: Script,
        keys: &[&str],
        arguments: &[u64],
    ) -> Result<T, RedisUnavailable> {
        let call = Call::Script {
            script,
            keys,
            arguments,
        };
        self.send_within_limits(call).await
    }

    /// Runs commands for a background job, with a longer timeout and also while Redis is unavailable. Detects recovery.
    pub async fn query_in_background<T: FromRedisValue>(
        &self,
        commands: &Pipeline,
    ) -> Result<T, RedisUnavailable> {
        let call = Call::Commands(commands);
        let response = match timeout(JOB_TIMEOUT, self.send(call)).await {
            Ok(response) => self.check_response(response),
            Err(_) => Err(self.mark_unavailable("redis_silent")),
        };
        // Jobs run every second. Setting the gauge on every request would cost too much.
        catalog::REDIS_UP.set(if self.is_unavailable() { 0.0 } else { 1.0 });
        response
    }

    /// Reads the persistence settings of the server.
    pub async fn persistence(&self) -> Result<Persistence, RedisUnavailable> {
        let () = self
            .query_in_background(pipe().cmd("PING").ignore())
            .await?;
        let mut settings = pipe();
        for (name, _) in VOLATILE_SETTINGS {
            settings.cmd("CONFIG").arg("GET").arg(name);
        }
        // Each reply is a name and a value, or empty if the server does not know the setting.
        let replies: Result<Vec<Vec<String>>, _> = self.query_in_background(&settings).await;
        let Ok(replies) = replies else {
            return Ok(Persistence::Hidden);
        };
        for ((name, volatile), reply) in VOLATILE_SETTINGS.into_iter().zip(&replies) {
            match reply.get(1) {
                None => return Ok(Persistence::Hidden),
                Some(value) if value != volatile => return Ok(Persistence::On(name)),
                Some(_) => {}
            }
        }
        Ok(Persistence::Off)
    }

    async fn send_within_limits<T: FromRedisValue>(
        &self,
        call: Call<'_>,
    ) -> Result<T, RedisUnavailable> {
        let mut is_unavailable = self.is_unavailable.subscribe();
        if *is_unavailable.borrow_and_update() {
            return Err(RedisUnavailable);
        }
        let responses = self.responses.load(Ordering::Relaxed);
        tokio::select! {
            biased;
            response = self.send(call) => self.check_response(response),
            // Another request has marked Redis unavailable.
            _ = is_unavailable.changed() => Err(RedisUnavailable),
            () = self.wait_until_silent() => Err(self.mark_unavailable("redis_silent")),
            () = sleep(REQUEST_TIMEOUT) => match self.responses.load(Ordering::Relaxed) == responses {
                true => Err(self.mark_unavailable("redis_silent")),
                false => Err(RedisUnavailable),
            },
        }
    }

    /// Completes when Redis has not responded to any request for too long.
    ///
    /// A poll that this process itself delayed does not count.
    async fn wait_until_silent(&self) {
        let mut responses = self.responses.load(Ordering::Relaxed);
        let mut silent_polls = 0;
        while silent_polls < SILENT_POLLS_MAX {
            let started_at = Instant::now();
            sleep(POLL_INTERVAL).await;
            let now = self.responses.load(Ordering::Relaxed);
            silent_polls = match now == responses {
                false => 0,
                true if started_at.elapsed() > 2 * POLL_INTERVAL => silent_polls,
                true => silent_polls + 1,
            };
            responses = now;
        }
    }

    async fn send<T: FromRedisValue>(&self, call: Call<'_>) -> Result<T, RedisError> {
        let (connection, is_new) = self.connection().await?;
        let response = call.send_to(connection).await;
        if is_new || !response.as_ref().is_err_and(is_connection_error) {
            return response;
        }
        *lock(&self.connection) = None;
        let (connection, _) = self.connection().await?;
        call.send_to(connection).await
    }

    /// Returns the shared connection, and whether it is new.
    async fn connection(&self) -> Result<(MultiplexedConnection, bool), RedisError> {
        let shared = || lock(&self.connection).clone();
        if let Some(connection) = shared() {
            return Ok((connection, false));
        }
        let _guard = self.connecting.lock().await;
        if let Some(connection) = shared() {
            return Ok((connection, true));
        }
        // Callers apply their own timeouts.
        let no_timeouts = AsyncConnectionConfig::new()
            .set_connection_timeout(None)
            .set_response_timeout(None);
        let connection = self
            .client
            .get_multiplexed_async_connection_with_config(&no_timeouts)
            .await?;
        *lock(&self.connection) = Some(connection.clone());
        Ok((connection, true))
    }

    /// Updates the availability by a response. An error reply shows that the server is available.
    fn check_response<T>(&self, response: Result<T, RedisError>) -> Result<T, RedisUnavailable> {
        match response {
            Ok(value) => {
                self.record_response();
                Ok(value)
            }
            Err(error) if is_connection_error(&error) => {
                Err(self.mark_unavailable("redis_unreachable"))
            }
            Err(_) => {
                self.record_response();
                if !self.has_logged_rejection.swap(true, Ordering::Relaxed) {
                    tracing::warn!(
                        error.kind = "redis_refused",
                        "Redis rejected a command; its user may lack a permission"
                    );
                }
                Err(RedisUnavailable)
            }
        }
    }

    fn record_response(&self) {
        self.responses.fetch_add(1, Ordering::Relaxed);
        if self.is_unavailable.send_if_modified(std::mem::take) {
            tracing::info!("Redis is available again");
        }
    }

    /// Marks Redis unavailable, and logs that once per outage.
    fn mark_unavailable(&self, kind: &'static str) -> RedisUnavailable {
        *lock(&self.connection) = None;
        let set = |is_unavailable: &mut bool| !std::mem::replace(is_unavailable, true);
        if self.is_unavailable.send_if_modified(set) {
            self.outages.fetch_add(1, Ordering::Relaxed);
            catalog::REDIS_OUTAGES.increment(1);
            catalog::REDIS_UP.set(0.0);
            tracing::warn!(
                error.kind = kind,
                "Redis is unavailable; nodes cannot share state until it responds"
            );
        }
        RedisUnavailable
    }
}

/// The commands or script of one round trip.
#[derive(Clone, Copy)]
enum Call<'a> {
    Commands(&'a Pipeline),
    Script {
        script: Script,
        keys: &'a [&'a str],
        arguments: &'a [u64],
    },
}

impl Call<'_> {
    async fn send_to<T: FromRedisValue>(
        self,
        mut connection: MultiplexedConnection,
    ) -> Result<T, RedisError> {
        let (script, keys, arguments) = match self {
            Self::Commands(commands) => return commands.query_async(&mut connection).await,
            Self::Script {
                script,
                keys,
                arguments,
            } => (script, keys, arguments),
        };
        let call = |command: &str, script: &str| {
            let mut call = cmd(command);
            call.arg(script).arg(keys.len()).arg(keys).arg(arguments);
            call
        };
        let by_digest = call("EVALSHA", script.sha1);
        match by_digest.query_async(&mut connection).await {
            // The server has restarted and lost its script cache.
            Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
                let by_text = call("EVAL", script.text);
                by_text.query_async(&mut connection).await
            }
            response => response,
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether the connection failed, as opposed to an error reply of the server.
fn is_connection_error(error: &RedisError) -> bool {
    error.is_io_error() || error.is_connection_dropped()
}
