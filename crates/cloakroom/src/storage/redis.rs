//! One shared connection to Redis, which may be away: no request waits for it then.

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

/// How long a request listens at a time, and how often in a row it hears nothing until Redis counts as
/// away: 100 ms together.
const LISTENING: Duration = Duration::from_millis(20);
const SILENCES_UNTIL_AWAY: u32 = 5;
/// How long a request waits for a Redis that answers others. It is slow then, and not away.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long jobs and examinations wait, so that a slow handshake succeeds at all.
const PATIENCE_OF_JOBS: Duration = Duration::from_secs(2);

/// A Redis that nodes share. It holds nothing that may not be lost.
///
/// It is away once it has been silent for too long, or refuses connections. From then on no request
/// asks or waits, until a job has heard from it again.
pub struct Redis {
    client: Client,
    connection: Mutex<Option<MultiplexedConnection>>,
    /// Held by who connects; the others wait for the same connection.
    connecting: tokio::sync::Mutex<()>,
    /// How often anything was heard from it.
    heard: AtomicU64,
    is_away: watch::Sender<bool>,
    /// Told once: a server that refuses a question goes on refusing it.
    has_told_refusal: AtomicBool,
}

/// A script with the digest under which the server knows it.
#[derive(Clone, Copy, Debug)]
pub struct Script {
    pub text: &'static str,
    pub sha1: &'static str,
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
            connection: Mutex::default(),
            connecting: tokio::sync::Mutex::default(),
            heard: AtomicU64::new(0),
            is_away: watch::Sender::new(false),
            has_told_refusal: AtomicBool::new(false),
        }))
    }

    /// Whether requests do without it for now.
    pub fn is_away(&self) -> bool {
        *self.is_away.borrow()
    }

    /// Asks on behalf of a request: not at all while Redis is away, and no longer than until it is.
    ///
    /// A question may be asked twice, when the connection turns out to be stale.
    pub async fn ask<T: FromRedisValue>(&self, question: &Pipeline) -> Result<T, Away> {
        self.ask_briefly(Question::Commands(question)).await
    }

    /// Runs a script on behalf of a request, as [`Self::ask`] does.
    pub async fn run<T: FromRedisValue>(
        &self,
        script: Script,
        keys: &[&str],
        arguments: &[u64],
    ) -> Result<T, Away> {
        let question = Question::Script {
            script,
            keys,
            arguments,
        };
        self.ask_briefly(question).await
    }

    /// Asks on behalf of a job, which has time, and finds out whether an absent Redis is back.
    pub async fn ask_patiently<T: FromRedisValue>(&self, question: &Pipeline) -> Result<T, Away> {
        let question = Question::Commands(question);
        let answer = match timeout(PATIENCE_OF_JOBS, self.send(question)).await {
            Ok(answer) => self.judge(answer),
            Err(_) => Err(self.lose("redis_silent")),
        };
        // Jobs ask every second, and requests too often to tell each time.
        metrics::gauge!("redis_up").set(if self.is_away() { 0.0 } else { 1.0 });
        answer
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

    async fn ask_briefly<T: FromRedisValue>(&self, question: Question<'_>) -> Result<T, Away> {
        let mut is_away = self.is_away.subscribe();
        if *is_away.borrow_and_update() {
            return Err(Away);
        }
        let heard = self.heard.load(Ordering::Relaxed);
        tokio::select! {
            biased;
            answer = self.send(question) => self.judge(answer),
            // Somebody else has waited long enough for all.
            _ = is_away.changed() => Err(Away),
            () = self.silence() => Err(self.lose("redis_silent")),
            () = sleep(PATIENCE) => match self.heard.load(Ordering::Relaxed) == heard {
                true => Err(self.lose("redis_silent")),
                false => Err(Away),
            },
        }
    }

    /// Ends when nothing has been heard for too long.
    ///
    /// A process that is itself held up hears late: such times do not count.
    async fn silence(&self) {
        let mut heard = self.heard.load(Ordering::Relaxed);
        let mut silences = 0;
        while silences < SILENCES_UNTIL_AWAY {
            let begun = Instant::now();
            sleep(LISTENING).await;
            let now = self.heard.load(Ordering::Relaxed);
            silences = match now == heard {
                false => 0,
                true if begun.elapsed() > 2 * LISTENING => silences,
                true => silences + 1,
            };
            heard = now;
        }
    }

    async fn send<T: FromRedisValue>(&self, question: Question<'_>) -> Result<T, RedisError> {
        let (connection, is_new) = self.connection().await?;
        let answer = question.put_to(connection).await;
        if is_new || !answer.as_ref().is_err_and(is_lost) {
            return answer;
        }
        *lock(&self.connection) = None;
        let (connection, _) = self.connection().await?;
        question.put_to(connection).await
    }

    /// The shared connection, and whether it was made just now.
    async fn connection(&self) -> Result<(MultiplexedConnection, bool), RedisError> {
        let shared = || lock(&self.connection).clone();
        if let Some(connection) = shared() {
            return Ok((connection, false));
        }
        let _turn = self.connecting.lock().await;
        if let Some(connection) = shared() {
            return Ok((connection, true));
        }
        // Whoever asks has a limit of their own.
        let unlimited = AsyncConnectionConfig::new()
            .set_connection_timeout(None)
            .set_response_timeout(None);
        let connection = self
            .client
            .get_multiplexed_async_connection_with_config(&unlimited)
            .await?;
        *lock(&self.connection) = Some(connection.clone());
        Ok((connection, true))
    }

    /// What an answer says about the server: a refusal is one, too.
    fn judge<T>(&self, answer: Result<T, RedisError>) -> Result<T, Away> {
        match answer {
            Ok(value) => {
                self.hear();
                Ok(value)
            }
            Err(error) if is_lost(&error) => Err(self.lose("redis_unreachable")),
            Err(_) => {
                self.hear();
                if !self.has_told_refusal.swap(true, Ordering::Relaxed) {
                    tracing::warn!(
                        error.kind = "redis_refused",
                        "Redis refuses a command; its user may lack a right"
                    );
                }
                Err(Away)
            }
        }
    }

    fn hear(&self) {
        self.heard.fetch_add(1, Ordering::Relaxed);
        if self.is_away.send_if_modified(std::mem::take) {
            tracing::info!("Redis answers again");
        }
    }

    /// An absence is told once, when it begins.
    fn lose(&self, kind: &'static str) -> Away {
        *lock(&self.connection) = None;
        let is_news = |is_away: &mut bool| !std::mem::replace(is_away, true);
        if self.is_away.send_if_modified(is_news) {
            metrics::gauge!("redis_up").set(0.0);
            tracing::warn!(
                error.kind = kind,
                "Redis is away; what nodes share through it has to wait"
            );
        }
        Away
    }
}

/// What one round trip asks for.
#[derive(Clone, Copy)]
enum Question<'a> {
    Commands(&'a Pipeline),
    Script {
        script: Script,
        keys: &'a [&'a str],
        arguments: &'a [u64],
    },
}

impl Question<'_> {
    async fn put_to<T: FromRedisValue>(
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
        let known = call("EVALSHA", script.sha1);
        match known.query_async(&mut connection).await {
            // A server that has restarted since is told the text once more.
            Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
                let whole = call("EVAL", script.text);
                whole.query_async(&mut connection).await
            }
            answer => answer,
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether the connection, rather than the server's answer, is the trouble.
fn is_lost(error: &RedisError) -> bool {
    error.is_io_error() || error.is_connection_dropped()
}
