//! Lifetime of a key: it seals for one epoch, and expires when its last code has expired.

use std::time::Duration;

use cloakroom_platform::clock::Uptime;

/// The lifetime of one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lifetime {
    seals_until: Uptime,
    expires_at: Uptime,
}

impl Lifetime {
    /// The lifetime of a new key. A code sealed at the end of the epoch is still available for `retention`.
    pub(super) fn for_new_key(now: Uptime, epoch: Duration, retention: Duration) -> Self {
        let seals_until = now + epoch;
        Self {
            seals_until,
            expires_at: seals_until + retention,
        }
    }

    /// The lifetime of a key of another node that expires after `left`: it only opens.
    pub(super) fn for_fetched_key(now: Uptime, left: Duration) -> Self {
        Self {
            seals_until: now,
            expires_at: now + left,
        }
    }

    pub(super) fn may_seal(self, now: Uptime) -> bool {
        now < self.seals_until
    }

    pub(super) fn has_expired(self, now: Uptime) -> bool {
        self.expires_at <= now
    }

    pub(super) fn left(self, now: Uptime) -> Duration {
        now.until(self.expires_at)
    }
}

#[cfg(test)]
mod tests {
    use cloakroom_platform::config;

    use super::*;

    const fn minutes(count: u64) -> Duration {
        Duration::from_secs(count * 60)
    }

    #[test]
    fn a_key_seals_for_its_epoch_and_expires_with_its_last_code() {
        let config = config::SecurityCodes::default();
        let start = Uptime::default() + minutes(1_000);
        let lifetime = Lifetime::for_new_key(start, config.epoch, config.retention);

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
        for (age, may_seal, has_expired) in cases {
            let now = start + age;
            assert_eq!(lifetime.may_seal(now), may_seal, "{age:?}");
            assert_eq!(lifetime.has_expired(now), has_expired, "{age:?}");
            assert_eq!(
                lifetime.left(now),
                minutes(70).saturating_sub(age),
                "{age:?}"
            );
        }
    }

    #[test]
    fn fetched_keys_never_seal_and_expire_like_the_original() {
        let now = Uptime::default() + minutes(5);
        let lifetime = Lifetime::for_fetched_key(now, minutes(3));

        assert!(!lifetime.may_seal(now));
        assert!(!lifetime.has_expired(now + minutes(2)));
        assert!(lifetime.has_expired(now + minutes(3)));
    }
}
