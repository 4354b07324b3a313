//! Clock for expiry times in memory.

use std::ops::Add;
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

/// Time since boot (`CLOCK_BOOTTIME`).
///
/// The clock is monotonic and cannot be set. Unlike `Instant`, it advances while the host is suspended, so a suspension
/// does not extend lifetimes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Uptime(Duration);

impl Uptime {
    pub fn now() -> Self {
        #[expect(clippy::expect_used, reason = "Linux has CLOCK_BOOTTIME since 2.6.39")]
        let since_boot =
            clock_gettime(ClockId::CLOCK_BOOTTIME).expect("CLOCK_BOOTTIME is available");
        Self(since_boot.into())
    }

    /// Returns the time until `later`, or zero if `later` has passed.
    pub fn until(self, later: Self) -> Duration {
        later.0.saturating_sub(self.0)
    }
}

impl Add<Duration> for Uptime {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(duration))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uptime_is_monotonic_and_saturates() {
        let (first, second) = (Uptime::now(), Uptime::now());

        assert!(first <= second && first > Uptime::default());
        assert_eq!(
            first.until(first + Duration::from_secs(7)),
            Duration::from_secs(7)
        );
        assert_eq!(
            (first + Duration::from_secs(7)).until(first),
            Duration::ZERO
        );
    }
}
