//! The velocity limit of a group, adapted to the volume of the application.
//!
//! Decision 17 has the arithmetic.

use std::time::Duration;

use cloakroom_platform::clock::Uptime;

use super::admit::WINDOW;

/// Groups per BIN, or per type: the values of the last four digits.
pub(super) const GROUPS: u32 = 10_000;
/// Standard deviations above the mean that no group of ordinary traffic reaches, and a margin for
/// small means.
const DEVIATIONS: f64 = 6.0;
const MARGIN: f64 = 4.0;
/// The limit that small volumes stay below.
const BASE: f64 = 10.0;

/// The limit does not grow beyond this volume: an attacker must not raise it without bound with
/// traffic of its own.
pub(super) const VOLUME_MAX: u32 = 100_000;

/// Intervals of the window.
pub(super) const INTERVALS: usize = 6;
/// One more is summed, because the window starts within it.
const INTERVALS_SUMMED: usize = INTERVALS + 1;

/// The limit of a group if the application sent `volume` distinct numbers with the same prefix.
///
/// Random numbers are distributed evenly over the groups: their count in one group has the mean and
/// the variance `volume / GROUPS`. The limit grows only when ordinary traffic would reach it.
pub(super) fn allowance(limit: usize, volume: u32) -> usize {
    let mean = f64::from(volume.min(VOLUME_MAX)) / f64::from(GROUPS);
    let expected = (mean + DEVIATIONS * mean.sqrt() + MARGIN).ceil();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "not negative, and bounded by the maximum volume"
    )]
    let extra = (expected - BASE).max(0.0) as usize;
    limit + extra
}

/// Distinct numbers within the window, by interval.
#[derive(Default)]
pub(super) struct Volume {
    intervals: [u32; INTERVALS_SUMMED],
    newest: u64,
}

impl Volume {
    pub(super) fn add(&mut self, now: Uptime) {
        self.advance(now);
        if let Some(newest) = self.intervals.first_mut() {
            *newest = newest.saturating_add(1);
        }
    }

    pub(super) fn total(&mut self, now: Uptime) -> u32 {
        self.advance(now);
        self.intervals
            .iter()
            .fold(0, |sum, count| sum.saturating_add(*count))
    }

    pub(super) fn is_expired(&self, now: Uptime) -> bool {
        self.newest + INTERVALS_SUMMED as u64 <= interval(now)
    }

    fn advance(&mut self, now: Uptime) {
        let now = interval(now).max(self.newest);
        let passed = usize::try_from(now - self.newest).unwrap_or(INTERVALS_SUMMED);
        let passed = passed.min(INTERVALS_SUMMED);
        self.intervals.rotate_right(passed);
        self.intervals
            .iter_mut()
            .take(passed)
            .for_each(|count| *count = 0);
        self.newest = now;
    }
}

fn interval(now: Uptime) -> u64 {
    let length = WINDOW.as_secs() / INTERVALS as u64;
    let since_start: Duration = Uptime::default().until(now);
    since_start.as_secs() / length
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limit_grows_only_with_volumes_that_would_reach_it() {
        let cases = [
            (10, 0, 10),
            (10, 7_000, 10),
            (10, 10_000, 11),
            (10, 72_000, 28),
            (3, 0, 3),
            (3, 72_000, 21),
            (10, 720_000, 33),
        ];
        for (limit, volume, expected) in cases {
            assert_eq!(allowance(limit, volume), expected, "{limit} {volume}");
        }
    }

    #[test]
    fn volume_covers_the_window_and_at_most_one_more_interval() {
        let (mut volume, start) = (Volume::default(), Uptime::default() + WINDOW * 100);
        for minute in 0..60 {
            volume.add(start + Duration::from_secs(60 * minute));
        }
        let minutes = |minutes: u64| start + Duration::from_secs(60 * minutes);

        assert_eq!(volume.total(minutes(59)), 60);
        assert_eq!(volume.total(minutes(69)), 60);
        assert_eq!(volume.total(minutes(70)), 50);
        assert_eq!(volume.total(minutes(119)), 10);
        assert!(!volume.is_expired(minutes(129)) && volume.is_expired(minutes(190)));
        assert_eq!(volume.total(minutes(1_000)), 0);
    }
}
