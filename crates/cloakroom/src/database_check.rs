//! Checks the database of a node for `/readyz`: whether it responds, its migrations and its clock.

use std::time::Duration;

use cloakroom_platform::storage::{self, Connection};
use cloakroom_platform::telemetry::catalog;

use crate::admin::Readiness;
use crate::node::Node;

/// A node whose clock differs by more is not trusted with deadlines and log times.
const CLOCK_SKEW_MAX: Duration = Duration::from_secs(60);
const CLOCK_SKEW_WARN: Duration = Duration::from_secs(2);

/// The check, and what it remembers between two runs.
#[derive(Default)]
pub(crate) struct DatabaseCheck {
    clocks: Clocks,
}

/// Result of one check of the database.
struct DatabaseStatus {
    clock_skew: Duration,
    migrations: Result<(), storage::Error>,
}

impl DatabaseCheck {
    /// Updates `/readyz`. Fails if the database does not respond.
    pub(crate) async fn run(
        &mut self,
        node: &Node,
        readiness: &Readiness,
    ) -> Result<(), storage::Error> {
        let check = async |connection: &Connection| {
            let clock_skew = storage::clock_skew(connection).await?;
            let migrations = storage::check(connection).await;
            Ok(DatabaseStatus {
                clock_skew,
                migrations,
            })
        };
        match node.db.with_connection(check).await {
            Ok(status) => {
                self.clocks.log(status.clock_skew);
                report(readiness, status);
                Ok(())
            }
            Err(error) => {
                readiness.set("database", Err(error.to_string()));
                Err(error)
            }
        }
    }
}

fn report(readiness: &Readiness, status: DatabaseStatus) {
    let DatabaseStatus {
        clock_skew,
        migrations,
    } = status;
    readiness.set("database", Ok(()));
    readiness.set("migrations", migrations.map_err(|error| error.to_string()));
    catalog::CLOCK_SKEW.set(clock_skew.as_secs_f64());
    let clock = match clock_skew {
        skew if skew > CLOCK_SKEW_MAX => Err(format!(
            "the clocks of this node and of the database differ by {} s; the limit is 60 s: check NTP on both hosts",
            skew.as_secs()
        )),
        _ => Ok(()),
    };
    readiness.set("clock", clock);
}

/// Whether the clocks of node and database differ.
#[derive(Default)]
struct Clocks {
    differ: bool,
}

impl Clocks {
    fn log(&mut self, skew: Duration) {
        match self.change(skew) {
            Some(true) => {
                let reason = format!("the difference is {:.1} s", skew.as_secs_f64());
                tracing::warn!(
                    job = "watch",
                    reason,
                    "the clocks of this node and of the database differ; check NTP on both hosts"
                );
            }
            Some(false) => tracing::info!(
                job = "watch",
                "the clocks of this node and of the database agree again"
            ),
            None => {}
        }
    }

    /// Returns whether the clocks differ if that has changed. A difference around the threshold is no change each time.
    fn change(&mut self, skew: Duration) -> Option<bool> {
        let differ = match self.differ {
            true => CLOCK_SKEW_WARN / 2 <= skew,
            false => CLOCK_SKEW_WARN < skew,
        };
        let has_changed = differ != self.differ;
        self.differ = differ;
        has_changed.then_some(differ)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_of_clocks_is_logged_when_it_begins_and_when_it_ends() {
        let mut clocks = Clocks::default();
        let steps = [
            (1_900, None),
            (2_100, Some(true)),
            (90_000, None),
            (1_900, None),
            (2_100, None),
            (900, Some(false)),
            (1_900, None),
        ];

        for (step, (milliseconds, logged)) in steps.into_iter().enumerate() {
            let skew = Duration::from_millis(milliseconds);
            assert_eq!(clocks.change(skew), logged, "{step}");
        }
    }
}
