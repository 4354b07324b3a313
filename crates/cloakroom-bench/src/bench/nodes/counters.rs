//! Numbers of transactions and commands, as PostgreSQL and Redis count them.

use std::ops::Sub;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::process::Command;

use crate::bench::command::capture;
use crate::bench::stage::Stage;

/// After this idle time, a session of PostgreSQL has reported its statistics.
const STATISTICS_DELAY: Duration = Duration::from_secs(11);

/// Redis counts commands of clients and of scripts. These run scripts.
const SCRIPTS: [&str; 3] = ["eval", "evalsha", "fcall"];

/// Commands of the measurement itself.
const OWN: [&str; 2] = ["info", "auth"];

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Counters {
    pub(super) transactions: u64,
    /// Including those of scripts.
    pub(super) redis_commands: u64,
    pub(super) redis_scripts: u64,
}

impl Sub for Counters {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self {
            transactions: self.transactions.saturating_sub(before.transactions),
            redis_commands: self.redis_commands.saturating_sub(before.redis_commands),
            redis_scripts: self.redis_scripts.saturating_sub(before.redis_scripts),
        }
    }
}

/// Waits for the statistics, and reads them.
pub(super) async fn read(stage: &Stage) -> Result<Counters> {
    tokio::time::sleep(STATISTICS_DELAY).await;
    let transactions = stage
        .database
        .query("select xact_commit from pg_stat_database where datname = current_database()")
        .await?;
    let mut counters = parse(&commands(stage).await?)?;
    counters.transactions = transactions.parse().context("a number of transactions")?;
    Ok(counters)
}

async fn commands(stage: &Stage) -> Result<String> {
    let url = stage.redis.url();
    let password = url
        .split_once('@')
        .and_then(|(user, _)| user.rsplit_once(':'));
    let (_, password) = password.context("the server's address has no password")?;
    let mut command = Command::new("redis-cli");
    command
        .env("REDISCLI_AUTH", password)
        .arg("-p")
        .arg(stage.redis.port().to_string())
        .args(["info", "commandstats"]);
    capture(command).await
}

fn parse(commandstats: &str) -> Result<Counters> {
    let mut counters = Counters::default();
    let lines = commandstats
        .lines()
        .filter_map(|line| line.strip_prefix("cmdstat_"));
    for line in lines {
        let parsed = line.split_once(":calls=").and_then(|(name, rest)| {
            let (calls, _) = rest.split_once(',')?;
            Some((name, calls.parse::<u64>().ok()?))
        });
        let (name, calls) = parsed.with_context(|| format!("a command without calls: {line}"))?;
        if OWN.contains(&name) {
            continue;
        }
        counters.redis_commands += calls;
        if SCRIPTS.contains(&name) {
            counters.redis_scripts += calls;
        }
    }
    Ok(counters)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_and_scripts_are_counted_without_our_own() {
        let text = "# Commandstats\r\n\
            cmdstat_evalsha:calls=40,usec=900,usec_per_call=22.50,rejected_calls=0,failed_calls=0\r\n\
            cmdstat_eval:calls=2,usec=90,usec_per_call=45.00,rejected_calls=0,failed_calls=0\r\n\
            cmdstat_zadd:calls=100,usec=9,usec_per_call=0.09,rejected_calls=0,failed_calls=0\r\n\
            cmdstat_info:calls=7,usec=9,usec_per_call=1.28,rejected_calls=0,failed_calls=0\r\n";

        let counters = parse(text).unwrap();

        assert_eq!((counters.redis_commands, counters.redis_scripts), (142, 42));
        assert!(parse("cmdstat_get:calls=many,usec=1\r\n").is_err());
    }
}
