//! The latest known writes of tokens, by which a node detects rows that SQL rolled back or undeleted.
//!
//! A node remembers when the tokens that it wrote, deleted or revealed were written. The memory is bounded: a node forgets
//! the oldest writes first, and everything when it stops.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};

use cloakroom_platform::ids::TenantId;
use cloakroom_platform::telemetry::catalog;
use jiff::Timestamp;
use uuid::Uuid;

/// 16 MiB in total, when all are used.
const SLOTS: usize = 1 << 20;
/// Slots that one token can occupy.
const WAYS: usize = 4;
const SHARDS: usize = 64;
const SHARD_SLOTS: usize = SLOTS / SHARDS;
/// Bits of a slot's time that identify the token together with its hash. Microseconds since 1970 need 51 bits.
const TAG_BITS: u32 = 12;

/// A set-associative table of fixed size: hashed ids and the times of the latest known writes.
pub(in crate::tokens) struct LatestWrites {
    shards: Vec<Mutex<Vec<Slot>>>,
    /// Random for every node, so that clients cannot choose ids that evict each other.
    hasher: RandomState,
}

/// The hash of an id, and microseconds since 1970 with the tag. All zeros if empty. An array, and not a struct, because the
/// allocator zeroes memory for it on first use: a table that is not used takes none.
type Slot = [u64; 2];
const HASH: usize = 0;
const TAGGED_TIME: usize = 1;

fn is_same_token(one: Slot, other: Slot) -> bool {
    let mask = (1 << TAG_BITS) - 1;
    one[HASH] == other[HASH] && one[TAGGED_TIME] & mask == other[TAGGED_TIME] & mask
}

impl Default for LatestWrites {
    fn default() -> Self {
        let shard = || Mutex::new(vec![Slot::default(); SHARD_SLOTS]);
        Self {
            shards: std::iter::repeat_with(shard).take(SHARDS).collect(),
            hasher: RandomState::new(),
        }
    }
}

impl LatestWrites {
    /// Remembers that a token was written or deleted at this time, or is known to be written then.
    pub(in crate::tokens) fn remember(&self, tenant: TenantId, key: &Uuid, at: Timestamp) {
        let new = self.slot(tenant, key, at);
        let mut shard = self.shard(new);
        let ways = ways(&mut shard, new);
        let known = ways.iter().position(|slot| is_same_token(*slot, new));
        let oldest = || (0..WAYS).min_by_key(|way| ways[*way][TAGGED_TIME]);
        let way = known.or_else(oldest).unwrap_or_default();
        if known.is_none() || ways[way][TAGGED_TIME] < new[TAGGED_TIME] {
            ways[way] = new;
        }
    }

    /// Whether a later write of the token is known than the one that the row is from.
    pub(in crate::tokens) fn is_stale(
        &self,
        tenant: TenantId,
        key: &Uuid,
        written_at: Timestamp,
    ) -> bool {
        let row = self.slot(tenant, key, written_at);
        let mut shard = self.shard(row);
        ways(&mut shard, row)
            .iter()
            .any(|slot| is_same_token(*slot, row) && slot[TAGGED_TIME] > row[TAGGED_TIME])
    }

    fn slot(&self, tenant: TenantId, key: &Uuid, at: Timestamp) -> Slot {
        let micros = u64::try_from(at.as_microsecond()).unwrap_or_default();
        let (_, random) = key.as_u64_pair();
        let tag = random & ((1 << TAG_BITS) - 1);
        [
            self.hasher.hash_one((tenant.number, key)),
            (micros << TAG_BITS) | tag,
        ]
    }

    fn shard(&self, slot: Slot) -> MutexGuard<'_, Vec<Slot>> {
        let index = usize::try_from(slot[HASH] % SHARDS as u64).unwrap_or_default();
        let shard = &self.shards[index];
        shard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The slots of a shard that a token can occupy.
fn ways(shard: &mut [Slot], slot: Slot) -> &mut [Slot] {
    let sets = SHARD_SLOTS / WAYS;
    let set = usize::try_from((slot[HASH] / SHARDS as u64) % sets as u64).unwrap_or_default();
    &mut shard[set * WAYS..(set + 1) * WAYS]
}

/// Reports a row that is older than a write that this node knows.
pub(in crate::tokens) fn report_stale(tenant: TenantId) {
    catalog::STALE_ROWS.increment(1);
    tracing::error!(
        error.kind = "stale_row",
        tenant.id = %tenant.uuid,
        "a token's row is older than a write or deletion that this node made or read; it was restored by SQL or from a \
         backup, and is rejected"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tenant(number: i32) -> TenantId {
        TenantId {
            number,
            uuid: Uuid::nil(),
        }
    }

    fn at(micros: i64) -> Timestamp {
        Timestamp::from_microsecond(1_700_000_000_000_000 + micros).unwrap()
    }

    #[test]
    fn rows_older_than_the_latest_known_write_are_stale() {
        let latest = LatestWrites::default();
        let (one, two) = (Uuid::from_u128(1), Uuid::from_u128(2));
        latest.remember(tenant(1), &one, at(5));
        latest.remember(tenant(1), &one, at(3));

        let cases = [
            (1, one, 4, true),
            (1, one, 5, false),
            (1, one, 6, false),
            (1, two, 4, false),
            (2, one, 4, false),
        ];
        for (number, key, written_at, stale) in cases {
            let is_stale = latest.is_stale(tenant(number), &key, at(written_at));
            assert_eq!(is_stale, stale, "{number} {key} {written_at}");
        }
    }

    #[test]
    fn memory_is_bounded_and_the_oldest_writes_are_forgotten_first() {
        let latest = LatestWrites::default();
        let count = 2 * SLOTS as u128;
        for number in 0..count {
            let micros = i64::try_from(number).unwrap();
            latest.remember(tenant(1), &Uuid::from_u128(number), at(micros));
        }
        let is_known = |number: u128| latest.is_stale(tenant(1), &Uuid::from_u128(number), at(-1));

        let slots: usize = latest
            .shards
            .iter()
            .map(|shard| shard.lock().unwrap().len())
            .sum();
        assert_eq!(slots, SLOTS);
        let newest = (count - 1_000..count)
            .filter(|number| is_known(*number))
            .count();
        let oldest = (0..1_000).filter(|number| is_known(*number)).count();
        assert!(newest == 1_000 && oldest < 500, "{newest} {oldest}");
    }
}
