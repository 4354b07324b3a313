//! One shared connection to Redis, which may be away: every question ends in time.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{
    AsyncConnectionConfig, Client, FromRedisValue, Pipeline, RedisError, TlsCertificates, pipe,
};
use tokio::time::{Instant, timeout};

use super::Error;
use crate::config;

/// How long a request waits for Redis, connecting included.
const PATIENCE: Duration = Duration::from_millis(200);
/// How long jobs and examinations wait, so that a slow handshake succeeds at all.
const PATIENCE_OF_JOBS: Duration = Duration::from_secs(2);
/// How long requests do not even try once Redis has failed to answer twice.
const REST: Duration = Duration::from_millis(500);
/// One failure may be a connection that went stale; the second is an outage.
const FAILURES_UNTIL_REST: u32 = 2;

/// A Redis that nodes share. It holds nothing that may not be lost.
pub struct Redis {
    client: Client,
    connection: tokio::sync::Mutex<Option<MultiplexedConnection>>,
    health: Mutex<Health>,
}

/// Redis gave no usable answer in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Redis does not answer")]
pub struct Away;

/// Whether Redis writes what it holds to disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Persistence {
    Off,
    On,
    /// The server does not let us ask.
    Hidden,
}

/// A setting of the server as it tells it: name and value.
type NamedSetting = (String, String);

#[derive(Default)]
struct Health {
    failures: u32,
    rests_until: Option<Instant>,
}

impl Redis {
    /// Takes the address, if there is one; the connection is made when it is first needed.
    pub fn open(config: &config::Redis) -> Result<Option<Self>, Error> {
        let Some(url) = &config.url else {
            return Ok(None);
        };
        // The library's own messages may quote the address, and with it the password.
        let unusable = |_| Error::RedisAddress("it is not of the form redis://user@host".into());
        let client = match &config.ca_file {
            None => Client::open(url.reveal()).map_err(unusable)?,
            Some(path) => {
                let certificates = std::fs::read(path).map_err(|error| {
                    Error::RedisAddress(format!("{}: {}", path.display(), error.kind()))
                })?;
                let tls = TlsCertificates {
                    client_tls: None,
                    root_cert: Some(certificates),
                };
                Client::build_with_tls(url.reveal(), tls).map_err(unusable)?
            }
        };
        Ok(Some(Self {
            client,
            connection: tokio::sync::Mutex::default(),
            health: Mutex::default(),
        }))
    }

    /// Asks on behalf of a request: briefly, and not at all while Redis is known to be away.
    ///
    /// A question may be asked twice, when the connection turns out to be stale.
    pub async fn ask<T: FromRedisValue>(&self, question: &Pipeline) -> Result<T, Away> {
        if self.is_resting() {
            return Err(Away);
        }
        self.ask_within(PATIENCE, question).await
    }

    /// Asks on behalf of a job, which has time.
    pub async fn ask_patiently<T: FromRedisValue>(&self, question: &Pipeline) -> Result<T, Away> {
        self.ask_within(PATIENCE_OF_JOBS, question).await
    }

    /// Whether the server writes to disk, as far as it lets us know.
    pub async fn persistence(&self) -> Result<Persistence, Away> {
        let () = self.ask_patiently(pipe().cmd("PING").ignore()).await?;
        let mut settings = pipe();
        settings.cmd("CONFIG").arg("GET").arg("save");
        settings.cmd("CONFIG").arg("GET").arg("appendonly");
        Ok(
            match self.ask_patiently::<[NamedSetting; 2]>(&settings).await {
                Ok([(_, save), (_, appendonly)]) if save.is_empty() && appendonly == "no" => {
                    Persistence::Off
                }
                Ok(_) => Persistence::On,
                Err(Away) => Persistence::Hidden,
            },
        )
    }

    async fn ask_within<T: FromRedisValue>(
        &self,
        patience: Duration,
        question: &Pipeline,
    ) -> Result<T, Away> {
        let kind = match timeout(patience, self.send(question)).await {
            Ok(Ok(value)) => {
                self.note_answer();
                return Ok(value);
            }
            Ok(Err(error)) if is_lost(&error) => "redis_unreachable",
            Ok(Err(_)) => "redis_refused",
            Err(_) => "redis_silent",
        };
        // Whoever holds the lock is connecting anew already.
        if let Ok(mut connection) = self.connection.try_lock() {
            *connection = None;
        }
        self.note_failure(kind);
        Err(Away)
    }

    async fn send<T: FromRedisValue>(&self, question: &Pipeline) -> Result<T, RedisError> {
        let (mut connection, is_new) = self.connection().await?;
        let answer = question.query_async(&mut connection).await;
        if is_new || !answer.as_ref().is_err_and(is_lost) {
            return answer;
        }
        *self.connection.lock().await = None;
        let (mut connection, _) = self.connection().await?;
        question.query_async(&mut connection).await
    }

    /// The shared connection, and whether it was made just now.
    async fn connection(&self) -> Result<(MultiplexedConnection, bool), RedisError> {
        let mut shared = self.connection.lock().await;
        if let Some(connection) = &*shared {
            return Ok((connection.clone(), false));
        }
        // Whoever asks has a limit of their own.
        let unlimited = AsyncConnectionConfig::new()
            .set_connection_timeout(None)
            .set_response_timeout(None);
        let connection = self
            .client
            .get_multiplexed_async_connection_with_config(&unlimited)
            .await?;
        *shared = Some(connection.clone());
        Ok((connection, true))
    }

    fn is_resting(&self) -> bool {
        let health = self.health.lock().unwrap_or_else(PoisonError::into_inner);
        health.rests_until.is_some_and(|end| Instant::now() < end)
    }

    fn note_answer(&self) {
        let mut health = self.health.lock().unwrap_or_else(PoisonError::into_inner);
        if health.failures >= FAILURES_UNTIL_REST {
            tracing::info!("Redis answers again");
        }
        *health = Health::default();
        metrics::gauge!("redis_up").set(1.0);
    }

    /// An outage is told once, when it begins.
    fn note_failure(&self, kind: &'static str) {
        let mut health = self.health.lock().unwrap_or_else(PoisonError::into_inner);
        health.failures = health.failures.saturating_add(1);
        if health.failures == FAILURES_UNTIL_REST {
            tracing::warn!(
                error.kind = kind,
                "Redis is away; what nodes share through it has to wait"
            );
        }
        if health.failures >= FAILURES_UNTIL_REST {
            health.rests_until = Some(Instant::now() + REST);
            metrics::gauge!("redis_up").set(0.0);
        }
    }
}

/// Whether the connection, rather than the server's answer, is the trouble.
fn is_lost(error: &RedisError) -> bool {
    error.is_io_error() || error.is_connection_dropped()
}
