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
/// Pauses after the first, second, ... attempt that could not be made; the last one repeats. An endpoint that is reachable
/// again waits no longer than that.
const PAUSES: [u64; 5] = [5, 10, 20, 40, MINUTE];
/// Part of a delay that is random, so that the events of an outage do not return all at once.
const JITTER: f64 = 0.2;

/// Attempts end this long after the first one, which may be late after an outage of the vault.
pub(super) const RETRY_PERIOD: Duration = Duration::from_secs(72 * HOUR);
/// The sweep fails events this long after the event or its first attempt. The last attempt comes before.
pub(super) const EXPIRY: Duration = Duration::from_secs(73 * HOUR);

/// The delay after `failures` failed attempts, at least one.
pub(super) fn delay_after(failures: i32) -> Duration {
    jittered(
        nth(&DELAYS, usize::try_from(failures).unwrap_or(1)),
        random(),
    )
}

/// The pause after `pauses` consecutive attempts that could not be made, at least one.
pub(super) fn pause_after(pauses: u32) -> Duration {
    let pauses = usize::try_from(pauses).unwrap_or(usize::MAX);
    jittered(nth(&PAUSES, pauses), random())
}

/// The `number`-th of these delays, counted from one, or the last one.
fn nth(delays: &[u64], number: usize) -> u64 {
    let index = number.saturating_sub(1).min(delays.len() - 1);
    delays[index]
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
