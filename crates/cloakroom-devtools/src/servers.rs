//! Private PostgreSQL and Redis servers, installed first where they are missing.

use std::path::Path;

use anyhow::Result;
use cloakroom_scratch::{Error, Postgres, PostgresOptions, Redis, RedisOptions};

use crate::{packages, workspace};

const POSTGRES_PACKAGE: &str = "postgresql-15";
/// The name of the program as well.
const REDIS_PACKAGE: &str = "redis-server";
/// Debian installs each version into a folder below this one, outside of the path.
const DEBIAN_POSTGRES: &str = "/usr/lib/postgresql";

/// Starts a PostgreSQL server.
pub fn start_postgres(options: PostgresOptions) -> Result<Postgres> {
    match Postgres::start(options.clone()) {
        Err(Error::PostgresMissing | Error::UserMissing) => {
            packages::install(&[POSTGRES_PACKAGE])?;
            Ok(Postgres::start(options)?)
        }
        started => Ok(started?),
    }
}

/// Starts a Redis server.
pub fn start_redis(options: RedisOptions) -> Result<Redis> {
    match Redis::start(options.clone()) {
        Err(Error::RedisMissing) => {
            packages::install(&[REDIS_PACKAGE])?;
            Ok(Redis::start(options)?)
        }
        started => Ok(started?),
    }
}

/// Installs the servers, for programs that start their own.
pub fn install_missing() -> Result<()> {
    let has_postgres = workspace::has_program("postgres") || Path::new(DEBIAN_POSTGRES).is_dir();
    if !has_postgres {
        packages::install(&[POSTGRES_PACKAGE])?;
    }
    packages::require(&[(REDIS_PACKAGE, REDIS_PACKAGE)])
}
