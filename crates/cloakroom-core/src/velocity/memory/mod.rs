//! Velocity counters of one node: exact for this node, and bounded.

use std::collections::HashMap;
use std::time::Duration;

use cloakroom_platform::clock::Uptime;

use super::allowance::{Volume, allowance};
use super::digests::{Group, GroupMember, NumberDigests};
use super::{admit, invalid_numbers};

/// Groups in memory: some tens of megabytes at most. Beyond this, the older half is evicted.
const GROUPS_MAX: usize = 200_000;

/// Numbers and invalid numbers, each for the length of its window.
#[derive(Default)]
pub(super) struct Memory {
    cards: HashMap<Group, Window<GroupMember>>,
    volumes: HashMap<Group, Volume>,
    /// Groups with a rejected number, until the window has passed: they admit nothing.
    rejected: HashMap<Group, Uptime>,
    invalid: HashMap<Group, Window<u32>>,
    blocks: HashMap<Group, Uptime>,
}

/// Distinct members of a group and when each was last seen, least recently seen first.
struct Window<T>(Vec<(T, Uptime)>);

impl<T> Default for Window<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: PartialEq> Window<T> {
    /// Members that have not expired.
    fn active(&self, now: Uptime, length: Duration) -> &[(T, Uptime)] {
        let start = self.0.partition_point(|(_, at)| *at + length <= now);
        self.0.get(start..).unwrap_or_default()
    }

    fn remove_expired(&mut self, now: Uptime, length: Duration) {
        self.0.retain(|(_, seen_at)| now < *seen_at + length);
    }

    /// Returns whether the member is new.
    fn insert(&mut self, member: T, now: Uptime) -> bool {
        let before = self.0.len();
        self.0.retain(|(existing, _)| *existing != member);
        let is_new = self.0.len() == before;
        self.0.push((member, now));
        is_new
    }

    fn last_seen(&self) -> Uptime {
        self.0.last().map_or(Uptime::default(), |(_, at)| *at)
    }
}

impl Memory {
    /// Counts all of the numbers, or returns how long to wait until the rejected one may be
    /// retried.
    ///
    /// After a rejection the whole group is blocked. Otherwise numbers that were counted before
    /// would be admitted, and reveal that they had been sent.
    pub(super) fn admit(
        &mut self,
        numbers: &[NumberDigests],
        limit: usize,
        now: Uptime,
    ) -> Option<Duration> {
        let ends = numbers
            .iter()
            .filter_map(|one| self.rejected.get(&one.group));
        if let Some(end) = ends.max()
            && now < *end
        {
            return Some(now.until(*end));
        }
        let mut incoming: HashMap<Group, Vec<GroupMember>> = HashMap::new();
        for number in numbers {
            let window = self.cards.get(&number.group);
            let seen = window.map_or(&[][..], |window| window.active(now, admit::WINDOW));
            let incoming = incoming.entry(number.group).or_default();
            let member = number.member;
            if seen.iter().any(|(existing, _)| *existing == member) || incoming.contains(&member) {
                continue;
            }
            incoming.push(member);
            let count = seen.len() + incoming.len();
            if count <= limit {
                continue;
            }
            let is_same_part = |existing: &GroupMember| existing.part == member.part;
            let same_part = seen
                .iter()
                .filter(|(existing, _)| is_same_part(existing))
                .count()
                + incoming
                    .iter()
                    .filter(|existing| is_same_part(existing))
                    .count();
            if self.limit_for(limit, &number.volume, now) < count
                || self.limit_for(limit, &number.part_volume, now) < same_part
            {
                self.rejected.retain(|_, end| now < *end);
                self.rejected.insert(number.group, now + admit::WINDOW);
                return Some(admit::WINDOW);
            }
        }
        self.insert(numbers, now);
        None
    }

    fn limit_for(&mut self, limit: usize, volume: &Group, now: Uptime) -> usize {
        let volume = self.volumes.get_mut(volume);
        allowance(limit, volume.map_or(0, |volume| volume.total(now)))
    }

    /// Counts numbers that were admitted.
    fn insert(&mut self, numbers: &[NumberDigests], now: Uptime) {
        evict(&mut self.cards, now, admit::WINDOW);
        if GROUPS_MAX <= self.volumes.len() {
            self.volumes.retain(|_, volume| !volume.is_expired(now));
        }
        for number in numbers {
            let window = self.cards.entry(number.group).or_default();
            window.remove_expired(now, admit::WINDOW);
            if window.insert(number.member, now) {
                self.add_volume(number, now);
            }
        }
    }

    /// Counts a number that is new in its group. Once the table is full no volume is added: limits
    /// stay as low as they are.
    fn add_volume(&mut self, number: &NumberDigests, now: Uptime) {
        let mut volumes = vec![number.volume, number.part_volume];
        volumes.dedup();
        for volume in volumes {
            if self.volumes.len() < GROUPS_MAX || self.volumes.contains_key(&volume) {
                self.volumes.entry(volume).or_default().add(now);
            }
        }
    }

    /// Counts invalid numbers; returns how long the client is blocked, if it is.
    pub(super) fn count_invalid(
        &mut self,
        client: Group,
        count: usize,
        now: Uptime,
    ) -> Option<Duration> {
        if let Some(left) = self.block_remaining(&client, now) {
            return Some(left);
        }
        evict(&mut self.invalid, now, invalid_numbers::WINDOW);
        let window = self.invalid.entry(client).or_default();
        window.remove_expired(now, invalid_numbers::WINDOW);
        for _ in 0..count {
            // Each invalid number counts, even if it is repeated.
            let next = window.0.last().map_or(0, |(number, _)| number + 1);
            window.insert(next, now);
        }
        if window.0.len() <= invalid_numbers::TOLERATED {
            return None;
        }
        self.invalid.remove(&client);
        self.blocks.retain(|_, end| now < *end);
        self.blocks.insert(client, now + invalid_numbers::BLOCK);
        Some(invalid_numbers::BLOCK)
    }

    /// How long the client remains blocked.
    pub(super) fn block_remaining(&self, client: &Group, now: Uptime) -> Option<Duration> {
        let left = now.until(*self.blocks.get(client)?);
        (!left.is_zero()).then_some(left)
    }
}

/// Evicts groups that have expired and, if that is not enough, the least recently seen ones. Runs
/// when the table is full and removes at least half of it, so the amortized cost is small.
fn evict<T: PartialEq>(groups: &mut HashMap<Group, Window<T>>, now: Uptime, length: Duration) {
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
mod tests;
