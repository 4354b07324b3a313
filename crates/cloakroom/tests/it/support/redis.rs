//! A Redis for one test, which may be emptied, stopped or killed.

use std::path::{Path, PathBuf};

use cloakroom_scratch::{Redis, RedisOptions};
use redis::{Cmd, FromRedisValue};

/// A Redis that no other test sees.
pub(crate) struct TestRedis {
    redis: Redis,
    tls: Option<Tls>,
}

struct Tls {
    port: u16,
    ca_file: PathBuf,
}

impl TestRedis {
    pub(crate) async fn start(settings: &[(&str, &str)]) -> Self {
        let settings = settings
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        let options = RedisOptions {
            settings,
            ..RedisOptions::default()
        };
        let start = || Redis::start(options).unwrap();
        Self {
            redis: tokio::task::spawn_blocking(start).await.unwrap(),
            tls: None,
        }
    }

    /// Also listens with TLS, under a certificate that the test finds in `ca_file`.
    pub(crate) async fn start_tls(folder: &Path) -> Self {
        let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        let (cert, key) = (folder.join("redis.crt"), folder.join("redis.key"));
        std::fs::write(&cert, made.cert.pem()).unwrap();
        std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let (cert_text, key_text) = (cert.to_str().unwrap(), key.to_str().unwrap());
        let settings = [
            ("tls-port", port.to_string()),
            ("tls-cert-file", cert_text.to_owned()),
            ("tls-key-file", key_text.to_owned()),
            ("tls-ca-cert-file", cert_text.to_owned()),
            ("tls-auth-clients", "no".to_owned()),
        ];
        let settings = settings.each_ref().map(|(name, text)| (*name, &**text));
        let mut redis = Self::start(&settings).await;
        redis.tls = Some(Tls {
            port,
            ca_file: cert,
        });
        redis
    }

    pub(crate) fn url(&self) -> String {
        self.redis.url()
    }

    pub(crate) fn tls_url(&self) -> String {
        let tls = self.tls.as_ref().unwrap();
        let plain = format!(":{}/", self.redis.port());
        self.url()
            .replace("redis://", "rediss://")
            .replace(&plain, &format!(":{}/", tls.port))
    }

    pub(crate) fn ca_file(&self) -> PathBuf {
        self.tls.as_ref().unwrap().ca_file.clone()
    }

    /// Runs a command given as words.
    pub(crate) async fn run(&self, words: &str) {
        let mut words = words.split(' ');
        let mut command = redis::cmd(words.next().unwrap());
        for word in words {
            command.arg(word);
        }
        let _answer: redis::Value = self.ask(command).await;
    }

    pub(crate) async fn keys(&self) -> Vec<String> {
        self.ask(redis::cmd("KEYS").arg("*").take()).await
    }

    pub(crate) async fn value(&self, name: &str) -> Vec<u8> {
        self.ask(redis::cmd("GET").arg(name).take()).await
    }

    /// Runs a script with one argument.
    pub(crate) async fn script(&self, script: &str, argument: &str) {
        let mut command = redis::cmd("EVAL");
        command.arg(script).arg(0).arg(argument);
        let _answer: redis::Value = self.ask(command).await;
    }

    /// The members of a sorted set as they were sent. A dump would show digits as numbers.
    pub(crate) async fn members(&self, name: &str) -> Vec<Vec<u8>> {
        self.ask(redis::cmd("ZRANGE").arg(name).arg(0).arg(-1).take())
            .await
    }

    pub(crate) async fn left_ms(&self, name: &str) -> i64 {
        self.ask(redis::cmd("PTTL").arg(name).take()).await
    }

    /// How often a command was called since the server started.
    pub(crate) async fn calls_of(&self, command: &str) -> u32 {
        let stats: String = self
            .ask(redis::cmd("INFO").arg("commandstats").take())
            .await;
        let mark = format!("cmdstat_{command}:calls=");
        let (_, rest) = stats.split_once(&mark).unwrap_or_default();
        let number = rest.split(',').next().unwrap();
        number.parse().unwrap_or(0)
    }

    pub(crate) async fn kill(self) {
        let stop = move || self.redis.stop().unwrap();
        tokio::task::spawn_blocking(stop).await.unwrap();
    }

    /// Ends it without a word to anyone.
    pub(crate) fn kill_at_once(&self) {
        signal(self.redis.pid(), "KILL");
    }

    /// Keeps connections open and answers nobody, until the value is dropped.
    pub(crate) fn stand_still(&self) -> StandingStill {
        let pid = self.redis.pid();
        signal(pid, "STOP");
        StandingStill(pid)
    }

    async fn ask<T: FromRedisValue>(&self, command: Cmd) -> T {
        let client = redis::Client::open(self.url()).unwrap();
        let mut connection = client.get_multiplexed_async_connection().await.unwrap();
        command.query_async(&mut connection).await.unwrap()
    }
}

pub(crate) struct StandingStill(u32);

impl Drop for StandingStill {
    fn drop(&mut self) {
        signal(self.0, "CONT");
    }
}

fn signal(pid: u32, name: &str) {
    let sent = std::process::Command::new("kill")
        .args(["-s", name, &pid.to_string()])
        .status();
    assert!(sent.unwrap().success());
}
