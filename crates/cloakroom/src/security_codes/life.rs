//! How long a key lives: one epoch in which it seals, and then until its last code has expired.

use std::time::Duration;

use crate::clock::Uptime;

/// The life of one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Life {
    seals_until: Uptime,
    ends_at: Uptime,
}

impl Life {
    /// Of a key that is made now. A code sealed at the last moment is still kept for `retention`.
    pub(super) fn of_new_key(now: Uptime, epoch: Duration, retention: Duration) -> Self {
        let seals_until = now + epoch;
        Self {
            seals_until,
            ends_at: seals_until + retention,
        }
    }

    /// Of a key that another node made and that has `left` to live: it only opens.
    pub(super) fn of_fetched_key(now: Uptime, left: Duration) -> Self {
        Self {
            seals_until: now,
            ends_at: now + left,
        }
    }

    pub(super) fn may_seal(self, now: Uptime) -> bool {
        now < self.seals_until
    }

    pub(super) fn has_ended(self, now: Uptime) -> bool {
        self.ends_at <= now
    }

    pub(super) fn left(self, now: Uptime) -> Duration {
        now.until(self.ends_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;

    const fn minutes(count: u64) -> Duration {
        Duration::from_secs(count * 60)
    }

    #[test]
    fn a_key_seals_for_its_epoch_and_lives_until_its_last_code_has_expired() {
        let config = config::SecurityCodes::default();
        let born = Uptime::default() + minutes(1_000);
        let life = Life::of_new_key(born, config.epoch, config.retention);

        let moment = Duration::from_millis(1);
        let cases = [
            (Duration::ZERO, true, false),
            (minutes(10) - moment, true, false),
            (minutes(10), false, false),
            (minutes(59), false, false),
            (minutes(61), false, false),
            (minutes(70) - moment, false, false),
            (minutes(70), false, true),
            (minutes(71), false, true),
        ];
        for (age, may_seal, has_ended) in cases {
            let now = born + age;
            assert_eq!(life.may_seal(now), may_seal, "{age:?}");
            assert_eq!(life.has_ended(now), has_ended, "{age:?}");
            assert_eq!(life.left(now), minutes(70).saturating_sub(age), "{age:?}");
        }
    }

    #[test]
    fn a_fetched_key_never_seals_and_ends_when_the_others_do() {
        let now = Uptime::default() + minutes(5);
        let life = Life::of_fetched_key(now, minutes(3));

        assert!(!life.may_seal(now));
        assert!(!life.has_ended(now + minutes(2)));
        assert!(life.has_ended(now + minutes(3)));
    }
}
