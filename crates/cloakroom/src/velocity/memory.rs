//! What one node remembers: exact for itself, and bounded.

use std::collections::HashMap;
use std::time::Duration;

use super::sighting::{Group, Member, Sighting};
use super::{admit, notice};
use crate::clock::Uptime;

/// Groups that are remembered: some tens of megabytes at most. Beyond it, the older half is forgotten.
const GROUPS_MAX: usize = 200_000;

/// Card numbers and mistakes, each for as long as it counts.
#[derive(Default)]
pub(super) struct Memory {
    cards: HashMap<Group, Window<Member>>,
    mistakes: HashMap<Group, Window<u32>>,
    blocks: HashMap<Group, Uptime>,
}

/// Different things of one group and when each was last seen, the longest ago first.
struct Window<T>(Vec<(T, Uptime)>);

impl<T> Default for Window<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: PartialEq> Window<T> {
    /// What still counts.
    fn living(&self, now: Uptime, length: Duration) -> &[(T, Uptime)] {
        let start = self.0.partition_point(|(_, at)| *at + length <= now);
        self.0.get(start..).unwrap_or_default()
    }

    fn forget(&mut self, now: Uptime, length: Duration) {
        self.0.retain(|(_, seen_at)| now < *seen_at + length);
    }

    fn see(&mut self, thing: T, now: Uptime) {
        self.0.retain(|(held, _)| *held != thing);
        self.0.push((thing, now));
    }

    fn last_seen(&self) -> Uptime {
        self.0.last().map_or(Uptime::default(), |(_, at)| *at)
    }
}

impl Memory {
    /// Counts all of the numbers, or tells how long it takes until the one that is too many may come.
    pub(super) fn admit(
        &mut self,
        sightings: &[Sighting],
        limit: usize,
        now: Uptime,
    ) -> Option<Duration> {
        let mut coming: HashMap<Group, Vec<Member>> = HashMap::new();
        for Sighting { group, member } in sightings {
            let window = self.cards.get(group);
            let seen = window.map_or(&[][..], |window| window.living(now, admit::WINDOW));
            let coming = coming.entry(*group).or_default();
            if seen.iter().any(|(held, _)| held == member) || coming.contains(member) {
                continue;
            }
            coming.push(*member);
            if seen.len() + coming.len() > limit {
                let oldest = seen.first().map_or(now, |(_, at)| *at);
                return Some(now.until(oldest + admit::WINDOW));
            }
        }
        self.remember(sightings, now);
        None
    }

    /// Counts numbers that were let through.
    pub(super) fn remember(&mut self, sightings: &[Sighting], now: Uptime) {
        make_room(&mut self.cards, now, admit::WINDOW);
        for Sighting { group, member } in sightings {
            let window = self.cards.entry(*group).or_default();
            window.forget(now, admit::WINDOW);
            window.see(*member, now);
        }
    }

    /// Counts mistakes; tells how long their maker is blocked, if it is.
    pub(super) fn notice(&mut self, suspect: Group, count: usize, now: Uptime) -> Option<Duration> {
        if let Some(left) = self.blocked(&suspect, now) {
            return Some(left);
        }
        make_room(&mut self.mistakes, now, notice::WINDOW);
        let window = self.mistakes.entry(suspect).or_default();
        window.forget(now, notice::WINDOW);
        for _ in 0..count {
            // Nobody's mistakes are equal: each counts.
            let next = window.0.last().map_or(0, |(number, _)| number + 1);
            window.see(next, now);
        }
        if window.0.len() <= notice::FORGIVEN {
            return None;
        }
        self.mistakes.remove(&suspect);
        self.blocks.retain(|_, end| now < *end);
        self.blocks.insert(suspect, now + notice::BLOCK);
        Some(notice::BLOCK)
    }

    /// How long it is still blocked for its mistakes.
    pub(super) fn blocked(&self, suspect: &Group, now: Uptime) -> Option<Duration> {
        let left = now.until(*self.blocks.get(suspect)?);
        (!left.is_zero()).then_some(left)
    }
}

/// Forgets groups that do not count any more, and, if that is not enough, those last seen longest ago.
/// Done when the table is full, and then half of it at least: on average it costs nothing.
fn make_room<T: PartialEq>(groups: &mut HashMap<Group, Window<T>>, now: Uptime, length: Duration) {
    if groups.len() < GROUPS_MAX {
        return;
    }
    groups.retain(|_, window| now < window.last_seen() + length);
    if groups.len() < GROUPS_MAX / 2 {
        return;
    }
    let mut times: Vec<Uptime> = groups.values().map(Window::last_seen).collect();
    let middle = times.len() / 2;
    let (_, median, _) = times.select_nth_unstable(middle);
    let median = *median;
    groups.retain(|_, window| median < window.last_seen());
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn sighting(group: u8, member: u8) -> Sighting {
        Sighting {
            group: [group; 16],
            member: [member; 8],
        }
    }

    #[test]
    fn the_eleventh_different_number_of_a_group_waits_until_one_is_forgotten() {
        let (mut memory, start) = (Memory::default(), Uptime::now());
        for member in 0..10 {
            let now = start + SECOND * u32::from(member);
            assert_eq!(memory.admit(&[sighting(1, member)], 10, now), None);
        }
        let later = start + SECOND * 60;

        let eleventh = memory.admit(&[sighting(1, 10)], 10, later);
        let again = memory.admit(&[sighting(1, 3)], 10, later);
        let elsewhere = memory.admit(&[sighting(2, 10)], 10, later);
        let just_before = start + (admit::WINDOW - Duration::from_millis(1));
        let before = memory.admit(&[sighting(1, 10)], 10, just_before);
        let after = memory.admit(&[sighting(1, 10)], 10, start + admit::WINDOW);
        let next = memory.admit(&[sighting(1, 11)], 10, start + admit::WINDOW);

        assert_eq!(eleventh, Some(admit::WINDOW - SECOND * 60));
        assert_eq!((again, elsewhere), (None, None));
        assert_eq!(before, Some(Duration::from_millis(1)));
        assert_eq!(after, None);
        assert_eq!(next, Some(SECOND));
    }

    #[test]
    fn numbers_of_one_request_count_together_and_all_or_none() {
        let (mut memory, now) = (Memory::default(), Uptime::now());
        let eleven: Vec<Sighting> = (0..11).map(|member| sighting(1, member)).collect();

        let refused = memory.admit(&eleven, 10, now);
        let twice = [&eleven[..10], &eleven[..10]].concat();
        let admitted = memory.admit(&twice, 10, now);
        let further = memory.admit(&eleven[10..], 10, now);

        assert_eq!(refused, Some(admit::WINDOW));
        assert_eq!(admitted, None);
        assert_eq!(further, Some(admit::WINDOW));
    }

    #[test]
    fn the_eleventh_mistake_blocks_for_ten_minutes() {
        let (mut memory, start) = (Memory::default(), Uptime::now());
        let (suspect, other) = ([1; 16], [2; 16]);
        for mistake in 0..10 {
            let now = start + SECOND * mistake;
            assert_eq!(memory.notice(suspect, 1, now), None);
        }
        // One of ten is forgotten, so one more is forgiven.
        let late = start + notice::WINDOW;
        assert_eq!(memory.notice(suspect, 1, late), None);

        assert_eq!(memory.notice(suspect, 1, late), Some(notice::BLOCK));
        assert_eq!(
            memory.blocked(&suspect, late + SECOND),
            Some(notice::BLOCK - SECOND)
        );
        assert_eq!(memory.blocked(&other, late), None);
        assert_eq!(memory.blocked(&suspect, late + notice::BLOCK), None);
        assert_eq!(memory.notice(suspect, 1, late + notice::BLOCK), None);
        assert_eq!(memory.notice(other, 11, late), Some(notice::BLOCK));
    }

    #[test]
    fn what_is_remembered_is_bounded_and_the_newest_of_it_stays() {
        let (mut memory, start) = (Memory::default(), Uptime::now());
        let group = |number: usize| Sighting {
            group: (number as u128).to_be_bytes(),
            member: [0; 8],
        };
        for number in 0..GROUPS_MAX + 10 {
            let now = start + Duration::from_millis(number as u64);
            memory.remember(&[group(number)], now);
        }

        assert!(memory.cards.len() <= GROUPS_MAX / 2 + 10);
        assert!(memory.cards.contains_key(&group(GROUPS_MAX - 1).group));
        assert!(!memory.cards.contains_key(&group(0).group));
    }
}
