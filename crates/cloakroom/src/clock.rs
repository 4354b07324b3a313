//! The clock that lifetimes in memory are counted on.

use std::ops::Add;
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

/// A moment since the machine started.
///
/// Nobody can set this clock, and unlike `Instant` it goes on while the machine sleeps: what has to
/// end at a given time does not live longer because a host was suspended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Uptime(Duration);

impl Uptime {
    pub(crate) fn now() -> Self {
        #[expect(
            clippy::expect_used,
            reason = "every Linux since 2.6.39 has this clock"
        )]
        let since_start = clock_gettime(ClockId::CLOCK_BOOTTIME).expect("the machine has a clock");
        Self(since_start.into())
    }

    /// How long it is from here to `later`; nothing when that has passed.
    pub(crate) fn until(self, later: Self) -> Duration {
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
    fn it_goes_forward() {
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
