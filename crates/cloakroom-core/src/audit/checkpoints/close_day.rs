//! Determines the last entries of chains whose nodes did not close them, when their day is closed.

use std::ops::RangeInclusive;
use std::pin::pin;

use cloakroom_platform::storage::{self, connect_once};
use futures_util::TryStreamExt as _;

use crate::audit::Audit;
use crate::audit::day::{ChainId, SLOTS, slot_of};
use crate::audit::link::CertifiedKey;
use crate::audit::state::{ChainState, Head};
use crate::audit::store;
use crate::audit::walk::ChainWalk;

/// The heads and keys to add to `state` so that every chain of these days is closed; `None` if their entries do not verify.
///
/// Entries before `retained_from` may have been removed, so the heads of such days are closed as they were stated.
///
/// A node that was killed leaves its chains open, and their last entries are stated nowhere. They are read only if such a
/// chain exists, because that reads all entries of the day.
pub(in crate::audit) async fn final_state(
    audit: &Audit,
    state: &ChainState,
    days: RangeInclusive<i32>,
    retained_from: i32,
) -> Result<Option<ChainState>, storage::Error> {
    let (first, last) = (*days.start(), *days.end());
    let first = first.max(last.saturating_sub(SLOTS - 2)).max(retained_from);
    let connection = connect_once(&audit.database).await?;
    let mut added = ChainState::default();
    for day in first..=last {
        let keys = store::list_keys(&connection, day, day).await?;
        let unclosed: Vec<CertifiedKey> = keys
            .into_iter()
            .filter(|key| !is_closed(state, key))
            .collect();
        if unclosed.is_empty() {
            continue;
        }
        if !walk_day(&connection, day, &unclosed, &mut added).await? {
            return Ok(None);
        }
    }
    // A head that a node stated and that the entries do not reach is not closed: entries are missing.
    let is_reached = |(chain, head): (&ChainId, &Head)| {
        let found = added.heads.get(chain);
        let is_read = (first..=last).contains(&chain.day);
        head.is_closed || !is_read || found.is_some_and(|it| head.seq <= it.seq)
    };
    if !state.heads.iter().all(is_reached) {
        return Ok(None);
    }
    // Chains that their nodes closed stay as they are.
    added
        .heads
        .retain(|chain, _| state.heads.get(chain).is_none_or(|head| !head.is_closed));
    let removed = state
        .heads
        .iter()
        .filter(|(chain, head)| days.contains(&chain.day) && chain.day < first && !head.is_closed);
    for (chain, head) in removed {
        let closed = Head {
            is_closed: true,
            ..*head
        };
        added.heads.insert(*chain, closed);
    }
    Ok(Some(added))
}

/// Whether checkpoints state the last entries of all chains of a key. A node that was killed before it stated any chain is
/// not known to have none, unless it lived to use the key of a later day.
fn is_closed(state: &ChainState, key: &CertifiedKey) -> bool {
    let id = (key.day, key.number);
    let mut own = state
        .heads
        .iter()
        .filter(|(chain, _)| (chain.day, chain.key_number()) == id)
        .peekable();
    let has_later_key = || {
        let mut keys = state.keys.iter();
        keys.any(|((day, _), it)| key.day < *day && it.node == key.node)
    };
    let has_heads = own.peek().is_some();
    state.keys.contains_key(&id)
        && own.all(|(_, head)| head.is_closed)
        && (has_heads || has_later_key())
}

/// Walks the chains of these keys and adds their heads; false if one does not verify.
async fn walk_day(
    connection: &storage::Connection,
    day: i32,
    keys: &[CertifiedKey],
    added: &mut ChainState,
) -> Result<bool, storage::Error> {
    let entries = store::stream_slot(connection, slot_of(day)).await?;
    let mut entries = pin!(entries);
    let mut walk: Option<ChainWalk> = None;
    for key in keys {
        added.add_key(key);
    }
    while let Some((entry, commit)) = entries.try_next().await? {
        let chain = entry.chain_id();
        let key = keys.iter().find(|key| key.number == chain.key_number());
        let Some(key) = key.filter(|_| chain.day == day) else {
            continue;
        };
        if walk.as_ref().is_none_or(|walk| walk.id != chain) {
            if !close(walk.take(), added) {
                return Ok(false);
            }
            walk = Some(ChainWalk::new(chain, key));
        }
        if let Some(walk) = &mut walk
            && walk.push(&entry, commit.as_deref(), None).is_err()
        {
            return Ok(false);
        }
    }
    Ok(close(walk, added))
}

fn close(walk: Option<ChainWalk>, added: &mut ChainState) -> bool {
    let Some(walk) = walk else {
        return true;
    };
    let head = Head {
        seq: walk.head.0,
        link: walk.head.1,
        is_closed: true,
    };
    added.heads.insert(walk.id, head);
    !walk.is_incomplete()
}
