//! Servers of the vault that run as long as it does.

use cloakroom_scratch::{Place, Postgres, PostgresOptions, Redis, RedisOptions};

use super::DevArguments;

/// The PostgreSQL server, temporary unless `--data` is given, and the temporary Redis.
pub(super) struct Scratch {
    pub(super) postgres: Option<Postgres>,
    pub(super) redis: Option<Redis>,
}

impl Scratch {
    pub(super) async fn start(arguments: &DevArguments) -> anyhow::Result<Self> {
        let data = arguments.data.as_ref();
        let options = PostgresOptions {
            place: data.map_or(Place::Temporary, |data| {
                Place::Persistent(data.join("postgres"))
            }),
            ..PostgresOptions::default()
        };
        let postgres = arguments
            .database_url
            .is_none()
            .then(|| tokio::task::spawn_blocking(|| Postgres::start(options)));
        let redis = (arguments.nodes > 1)
            .then(|| tokio::task::spawn_blocking(|| Redis::start(RedisOptions::default())));
        Ok(Self {
            postgres: match postgres {
                Some(starting) => Some(starting.await??),
                None => None,
            },
            redis: match redis {
                Some(starting) => Some(starting.await??),
                None => None,
            },
        })
    }

    pub(super) async fn stop(self) -> anyhow::Result<()> {
        tokio::task::spawn_blocking(move || {
            self.redis.map(Redis::stop).transpose()?;
            self.postgres.map(Postgres::stop).transpose()?;
            Ok(())
        })
        .await?
    }
}
