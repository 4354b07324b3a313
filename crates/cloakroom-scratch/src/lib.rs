//! Private, temporary PostgreSQL and Redis servers for development and tests.
//!
//! ```no_run
//! use cloakroom_scratch::{Postgres, PostgresOptions, Redis, RedisOptions};
//!
//! # fn main() -> Result<(), cloakroom_scratch::Error> {
//! let postgres = Postgres::start(PostgresOptions::default())?;
//! let redis = Redis::start(RedisOptions::default())?;
//! assert!(postgres.url().starts_with("postgres://"));
//! assert!(redis.url().starts_with("redis://"));
//! # Ok(())
//! # }
//! ```
//!
//! Each server listens on a free loopback port, stores its files in one directory, and stops when its value is
//! dropped. If the owning process is killed, a watchdog process stops the server and deletes its temporary files.

mod folder;
mod owner;
mod port;
mod postgres;
mod programs;
mod redis;
mod server;

use std::path::PathBuf;

pub use folder::Place;
pub use port::free_port;
pub use postgres::{PREPARED_FOLDER, Postgres, PostgresOptions};
pub use redis::{Redis, RedisOptions};

/// Errors of starting, using or stopping a server.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "the PostgreSQL server programs were not found; on Debian: apt-get install postgresql-15"
    )]
    PostgresMissing,
    #[error("redis-server was not found; on Debian: apt-get install redis-server")]
    RedisMissing,
    #[error(
        "PostgreSQL does not run as root, and the user `postgres` does not exist; \
         on Debian: apt-get install postgresql-15"
    )]
    UserMissing,
    #[error("{path} cannot be used: {source}")]
    Folder {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("a server is already running in {path}")]
    Running { path: PathBuf },
    #[error("{program} could not be run: {source}")]
    Spawn {
        program: String,
        source: std::io::Error,
    },
    #[error("{program} failed: {reason}")]
    Failed { program: String, reason: String },
    #[error("{program} was not ready in time; the last lines of its log:\n{log}")]
    NotReady { program: String, log: String },
    #[error("{program} did not stop")]
    NotStopped { program: String },
    #[error("`{name}` is not a valid database name: use a-z, 0-9 and _")]
    DatabaseName { name: String },
}
