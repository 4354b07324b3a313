//! A Redis server for one test, which the test may flush, pause or kill.

use std::path::{Path, PathBuf};

use cloakroom_scratch::{Redis, RedisOptions};
use redis::{Cmd, FromRedisValue};

/// A Redis server that belongs to one test.
pub struct TestRedis {
    redis: Redis,
    tls: Option<Tls>,
}

struct Tls {
    port: u16,
    ca_file: PathBuf,
}

impl TestRedis {
    pub async fn start(settings: &[(&str, &str)]) -> Self {
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

    /// Also listens with TLS, with the self-signed certificate in `ca_file`.
    pub async fn start_tls(folder: &Path) -> Self {
        let certificate = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        let (cert, key) = (folder.join("redis.crt"), folder.join("redis.key"));
        std::fs::write(&cert, certificate.cert.pem()).unwrap();
        std::fs::write(&key, certificate.signing_key.serialize_pem()).unwrap();
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

    pub fn url(&self) -> String {
        self.redis.url()
    }

    pub fn tls_url(&self) -> String {
        let tls = self.tls.as_ref().unwrap();
        let plain = format!(":{}/", self.redis.port());
        self.url()
            .replace("redis://", "rediss://")
            .replace(&plain, &format!(":{}/", tls.port))
    }

    pub fn ca_file(&self) -> PathBuf {
        self.tls.as_ref().unwrap().ca_file.clone()
    }

    /// Runs a command, given as words separated by spaces.
    pub async fn run(&self, words: &str) {
        let mut words = words.split(' ');
        let mut command = redis::cmd(words.next().unwrap());
        for word in words {
            command.arg(word);
        }
        let _reply: redis::Value = self.query(command).await;
    }

    pub async fn keys(&self) -> Vec<String> {
        self.query(redis::cmd("KEYS").arg("*").take()).await
    }

    pub async fn value(&self, name: &str) -> Vec<u8> {
        self.query(redis::cmd("GET").arg(name).take()).await
    }

    /// Runs a script with one argument.
    pub async fn script(&self, script: &str, argument: &str) {
        let mut command = redis::cmd("EVAL");
        command.arg(script).arg(0).arg(argument);
        let _reply: redis::Value = self.query(command).await;
    }

    /// The members of a sorted set as they were sent; a dump would show digits as numbers.
    pub async fn members(&self, name: &str) -> Vec<Vec<u8>> {
        self.query(redis::cmd("ZRANGE").arg(name).arg(0).arg(-1).take())
            .await
    }

    pub async fn ttl_ms(&self, name: &str) -> i64 {
        self.query(redis::cmd("PTTL").arg(name).take()).await
    }

    /// Number of calls of a command since the server started.
    pub async fn calls_of(&self, command: &str) -> u32 {
        let stats: String = self
            .query(redis::cmd("INFO").arg("commandstats").take())
            .await;
        let mark = format!("cmdstat_{command}:calls=");
        let (_, rest) = stats.split_once(&mark).unwrap_or_default();
        let number = rest.split(',').next().unwrap();
        number.parse().unwrap_or(0)
    }

    pub async fn kill(self) {
        let stop = move || self.redis.stop().unwrap();
        tokio::task::spawn_blocking(stop).await.unwrap();
    }

    /// Kills the server with SIGKILL.
    pub fn sigkill(&self) {
        signal(self.redis.pid(), "KILL");
    }

    /// Pauses the server with SIGSTOP until the value is dropped: connections stay open, and no command gets a reply.
    pub fn pause(&self) -> PausedRedis {
        let pid = self.redis.pid();
        signal(pid, "STOP");
        PausedRedis(pid)
    }

    async fn query<T: FromRedisValue>(&self, command: Cmd) -> T {
        let client = redis::Client::open(self.url()).unwrap();
        let mut connection = client.get_multiplexed_async_connection().await.unwrap();
        command.query_async(&mut connection).await.unwrap()
    }
}

pub struct PausedRedis(u32);

impl Drop for PausedRedis {
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
