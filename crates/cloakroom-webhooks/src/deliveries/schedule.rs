//! When a failed delivery is attempted again.

use std::time::Duration;

use cloakroom_crypto::random_bytes;

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;

/// Delays after the first, second, ... failed attempt; the last one repeats.
const DELAYS: [u64; 9] = [
    10,
    MINUTE,
    5 * MINUTE,
    15 * MINUTE,
    30 * MINUTE,
    HOUR,
    2 * HOUR,
    4 * HOUR,
    8 * HOUR,
];
/// Delay of an attempt that was not made because of this node's own limits.
const BUSY_DELAY: u64 = 5;
/// Part of a delay that is random, so that the events of an outage do not return all at once.
const JITTER: f64 = 0.2;

/// Attempts end this long after the event or its replay.
pub(super) const RETRY_PERIOD: Duration = Duration::from_secs(72 * HOUR);

/// The delay after `failures` failed attempts, at least one.
pub(super) fn delay_after(failures: i32) -> Duration {
    let index = usize::try_from(failures)
        .unwrap_or_default()
        .saturating_sub(1);
    let last = DELAYS[DELAYS.len() - 1];
    jittered(DELAYS.get(index).copied().unwrap_or(last), random())
}

pub(super) fn busy_delay() -> Duration {
    jittered(BUSY_DELAY, random())
}

/// A delay changed by up to a fifth in either direction; `random` is from 0 to 1.
fn jittered(seconds: u64, random: f64) -> Duration {
    let factor = 1.0 - JITTER + 2.0 * JITTER * random;
    Duration::from_secs(seconds).mul_f64(factor)
}

fn random() -> f64 {
    f64::from(u16::from_be_bytes(random_bytes())) / f64::from(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_to_eight_hours_with_a_fifth_of_jitter() {
        let cases = [
            (1, 10),
            (2, 60),
            (3, 300),
            (8, 4 * HOUR),
            (9, 8 * HOUR),
            (50, 8 * HOUR),
        ];
        for (failures, seconds) in cases {
            let delay = delay_after(failures).as_secs_f64();
            let seconds = seconds as f64;
            assert!(
                (0.8 * seconds..=1.2 * seconds).contains(&delay),
                "{failures}"
            );
        }
        assert_eq!(jittered(10, 0.0), Duration::from_secs(8));
        assert_eq!(jittered(10, 1.0), Duration::from_secs(12));
    }

    #[test]
    fn an_endpoint_is_tried_for_three_days() {
        let mut elapsed = Duration::ZERO;
        let mut attempts = 1;
        while elapsed <= RETRY_PERIOD {
            elapsed += Duration::from_secs(DELAYS[(attempts - 1).min(DELAYS.len() - 1)]);
            attempts += 1;
        }
        assert_eq!(attempts - 1, 17);
    }
}
