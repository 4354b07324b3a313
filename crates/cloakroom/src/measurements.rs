//! Gauges of a node: what its memory shows is measured when metrics are read, what the database knows by a job.

use cloakroom_core::{audit, cryptoperiods};
use cloakroom_platform::storage;
use cloakroom_platform::telemetry::catalog;

use crate::node::Node;
use crate::rotation;

/// Measures what is in memory. Runs for each scrape, so it neither blocks nor waits.
pub fn sample(node: Option<&Node>) {
    sample_process();
    // A node that waits for its root key has nothing else.
    let Some(node) = node else {
        return;
    };
    node.jobs.measure();
    let pool = node.db.pool_status();
    for (state, count) in [("idle", pool.idle), ("in_use", pool.in_use)] {
        catalog::DATABASE_CONNECTIONS
            .with([state])
            .set(count as f64);
    }
    catalog::DATABASE_CONNECTIONS_MAX.set(pool.max as f64);
    catalog::DATABASE_WAITING.set(pool.waiting as f64);
    let keys = &node.keys;
    let outage = keys.root().unavailable_for();
    catalog::ROOT_KEY_UNAVAILABLE.set(outage.as_secs_f64());
    catalog::ROOT_KEY_OLDEST_CACHED.set(keys.oldest_failing_age().as_secs_f64());
    catalog::ROOT_KEY_GRACE.set(node.config.root_key.grace.as_secs_f64());
}

/// Memory and file descriptors, where the system has `/proc`.
fn sample_process() {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let resident = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .and_then(|value| value.trim().strip_suffix(" kB")?.parse::<f64>().ok());
    if let Some(kilobytes) = resident {
        catalog::MEMORY.set(kilobytes * 1024.0);
    }
    if let Ok(files) = std::fs::read_dir("/proc/self/fd") {
        catalog::OPEN_FILES.set(files.count() as f64);
    }
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let max = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"))
        .and_then(|values| values.split_whitespace().next()?.parse::<f64>().ok());
    if let Some(max) = max {
        catalog::MAX_FILES.set(max);
    }
}

/// Measures ages of keys, open rotations and sizes.
pub async fn query(node: &Node) -> Result<(), storage::Error> {
    let counts = cryptoperiods::count_keys(&node.db).await?;
    let now = node.clock.now().await?;
    for age in cryptoperiods::ages(&node.config.cryptoperiods, &counts, now) {
        let purpose = age.purpose.name();
        catalog::KEY_CRYPTOPERIOD.with([purpose]).set(age.share());
        catalog::KEY_AGE.with([purpose]).set(age.age.as_secs_f64());
    }
    rotation::measure(node).await?;
    audit::measure(&node.audit).await
}
