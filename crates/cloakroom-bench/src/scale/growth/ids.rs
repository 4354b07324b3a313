//! Ids of new tokens: as in the service, and alternatives.

use uuid::Uuid;

/// As in `src/ids.rs` of the service.
#[expect(
    clippy::disallowed_methods,
    reason = "this crate does not depend on the service"
)]
pub(super) fn random() -> Uuid {
    Uuid::new_v4()
}

/// Kinds of ids that clients accept: all are valid version 4.
#[derive(Clone, Copy)]
pub(super) enum Ids {
    Random,
    /// The first 48 bits are the time in milliseconds.
    ByTime,
    /// The first 16 bits are the same for all ids of some minutes, and have no other meaning.
    ByWindow,
}

impl Ids {
    pub(super) fn make(self, count: usize, round: usize) -> Vec<Uuid> {
        let (window, _) = random().as_u64_pair();
        let id = |n: usize| {
            let (high, low) = random().as_u64_pair();
            let high = match self {
                Self::Random => high,
                // Greater than all existing ids, as the newest time-ordered ids are.
                Self::ByTime => {
                    let time = ((round * count + n) as u64) << 16;
                    (0xffff << 48) + time + (high & 0xffff)
                }
                Self::ByWindow => window & (0xffff << 48) | high & (u64::MAX >> 16),
            };
            Uuid::from_u64_pair(high, low)
        };
        (0..count).map(id).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_ids_look_like_version_4_and_are_ordered_as_they_say() {
        for ids in [Ids::Random, Ids::ByTime, Ids::ByWindow] {
            let made = ids.make(100, 3);
            assert!(made.iter().all(|id| id.get_version_num() == 4));
            let distinct: std::collections::BTreeSet<&Uuid> = made.iter().collect();
            assert_eq!(distinct.len(), 100);
            assert_eq!(made.is_sorted(), matches!(ids, Ids::ByTime));
        }
        assert!(Ids::ByTime.make(5, 0).last() < Ids::ByTime.make(5, 1).first());
        let window = Ids::ByWindow.make(10, 0);
        assert!(
            window
                .iter()
                .all(|id| id.as_bytes()[..2] == window[0].as_bytes()[..2])
        );
    }
}
