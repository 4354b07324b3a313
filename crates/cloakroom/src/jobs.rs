//! Every background job, its period and what it watches.

use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

use crate::admin::Readiness;
use crate::storage::{self, Connection};
use crate::vault::Vault;

/// What must be right before this node takes requests.
pub const CHECKS: &[&str] = &["database", "migrations", "clock"];

const WATCH_PERIOD: Duration = Duration::from_secs(5);
/// A node whose clock is further off is not trusted with deadlines and log times.
const CLOCK_SKEW_MAX: Duration = Duration::from_secs(60);
const CLOCK_SKEW_WARN: Duration = Duration::from_secs(2);

/// Starts every job; dropping the set stops them.
pub fn start(vault: &Vault, readiness: &Readiness) -> JoinSet<()> {
    let mut jobs = JoinSet::new();
    jobs.spawn(watch(vault.clone(), readiness.clone()));
    jobs
}

/// Looks at what the node depends on, and tells load balancers through `/readyz`.
async fn watch(vault: Vault, readiness: Readiness) {
    let mut ticks = interval(WATCH_PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        examine(&vault, &readiness).await;
    }
}

async fn examine(vault: &Vault, readiness: &Readiness) {
    let look = async |connection: &Connection| {
        let clock_skew = storage::clock_skew(connection).await?;
        let migrations = storage::check(connection).await;
        Ok(Seen {
            clock_skew,
            migrations,
        })
    };
    match vault.db.lend(look).await {
        Ok(seen) => tell(readiness, seen),
        Err(error) => readiness.set("database", Err(error.to_string())),
    }
}

/// What one look at the database showed.
struct Seen {
    clock_skew: Duration,
    migrations: Result<(), storage::Error>,
}

fn tell(readiness: &Readiness, seen: Seen) {
    let Seen {
        clock_skew,
        migrations,
    } = seen;
    readiness.set("database", Ok(()));
    readiness.set("migrations", migrations.map_err(|error| error.to_string()));
    metrics::gauge!("clock_skew_seconds").set(clock_skew.as_secs_f64());
    if clock_skew > CLOCK_SKEW_WARN {
        tracing::warn!(
            job = "watch",
            "this node's clock differs from the database's"
        );
    }
    let clock = match clock_skew {
        skew if skew > CLOCK_SKEW_MAX => Err(format!(
            "this node's clock is {} s off the database's; 60 s is the limit",
            skew.as_secs()
        )),
        _ => Ok(()),
    };
    readiness.set("clock", clock);
}
