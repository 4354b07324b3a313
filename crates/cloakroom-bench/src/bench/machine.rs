//! Load of the machine by other processes, before and after the measurements.

use std::time::Duration;

use anyhow::{Context, Result};

const WATCHED: Duration = Duration::from_secs(1);

/// Below this, results depend on other processes as much as on the node.
const QUIET_PERCENT: u64 = 90;

/// Warns if other processes use the CPUs.
pub(super) async fn warn_if_busy(when: &str) -> Result<()> {
    let before = processor_times()?;
    tokio::time::sleep(WATCHED).await;
    let after = processor_times()?;
    let idle = idle_percent(before, after);
    if idle < QUIET_PERCENT {
        println!("bench: warning: the processors are only {idle} % idle {when}");
    }
    Ok(())
}

/// CPU time of all cores since boot, and the idle part of it.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Times {
    all: u64,
    idle: u64,
}

fn processor_times() -> Result<Times> {
    let stat = std::fs::read_to_string("/proc/stat")?;
    parse(&stat).context("/proc/stat has no CPU times")
}

fn parse(stat: &str) -> Option<Times> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let times: Vec<u64> = line
        .split_whitespace()
        .map_while(|time| time.parse().ok())
        .take(8)
        .collect();
    // I/O wait counts as idle: the CPU is available to other processes.
    let idle = times.get(3)? + times.get(4)?;
    Some(Times {
        all: times.iter().sum(),
        idle,
    })
}

fn idle_percent(before: Times, after: Times) -> u64 {
    let all = after.all.saturating_sub(before.all).max(1);
    100 * after.idle.saturating_sub(before.idle) / all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_time_is_a_share_of_all_time() {
        let before = parse("cpu  100 0 50 800 50 0 0 0 0 0\ncpu0 1 1 1 1\n").unwrap();
        let after = parse("cpu  150 0 75 900 60 0 5 10 0 0\ncpu0 1 1 1 1\n").unwrap();

        assert_eq!((before.all, before.idle), (1000, 850));
        assert_eq!(idle_percent(before, after), 55);
        assert_eq!(parse("intr 1 2 3\n"), None);
    }
}
