//! Reads the log for a sink: every entry once it is durable, with the keys and checkpoints that verify it.
//!
//! The position of a sink is a checkpoint. The state of that checkpoint has the last entry of every chain, so what follows
//! it is known without a position for each chain. Entries that no checkpoint states yet are included: those of a killed
//! node would otherwise wait until their day is closed.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use cloakroom_platform::storage;
use jiff::{SignedDuration, Timestamp};

use super::Audit;
use super::chains::day::{ChainId, day_of, slot_of, start_of_day};
use super::checkpoints::note::{retained_from_of, time_of};
use super::checkpoints::state::ChainState;
use super::store::{self, CheckpointRow, EntryWindow, StoredEntry};
use super::verify::export::{Record, line};

/// Checkpoints that are read at once.
const CHECKPOINTS_MAX: i64 = 100;
/// Entries of a page, unless one checkpoint alone states more.
const ENTRIES_MAX: i64 = 10_000;
/// How long before a checkpoint an entry was created that the checkpoint does not state. Older entries are found by their
/// absence, in a slower way.
const LATENESS: SignedDuration = SignedDuration::from_secs(15);
/// Differences between the clocks of nodes.
const SKEW: SignedDuration = SignedDuration::from_secs(1);
/// Days before that of a checkpoint whose chains can still grow.
const DAYS_OPEN: i32 = 2;

/// What a sink has received.
#[derive(Clone, Debug, Default)]
pub struct StreamPosition {
    /// The last checkpoint.
    pub checkpoint: i64,
    /// Entries that were sent before a checkpoint stated them, by chain. Without them, they are sent again.
    sent: BTreeMap<ChainId, i32>,
}

/// Records for a sink, as lines of an export.
pub struct StreamPage {
    pub lines: Vec<String>,
    pub entries: usize,
    /// Entries that checkpoints state and that the database does not have.
    pub missing: i64,
    /// The position of a sink that has received the page.
    pub next: StreamPosition,
}

impl StreamPosition {
    /// The position of a sink whose last checkpoint is known, 0 if it has received none.
    pub fn at(checkpoint: i64) -> Self {
        Self {
            checkpoint,
            sent: BTreeMap::new(),
        }
    }
}

/// The checkpoints of a page.
struct Step {
    checkpoints: Vec<CheckpointRow>,
    /// Heads and keys that the sink knows.
    before: ChainState,
    /// Those of the last checkpoint.
    after: ChainState,
    /// When entries of the page were created.
    from: Timestamp,
    to: Timestamp,
}

/// Reads what follows a position; `None` if no checkpoint does.
pub async fn read_stream_page(
    audit: &Audit,
    position: &StreamPosition,
) -> Result<Option<StreamPage>, storage::Error> {
    let Some(step) = next_step(audit, position.checkpoint).await? else {
        return Ok(None);
    };
    let mut received = position.sent.clone();
    for (chain, head) in &step.before.heads {
        let seq = received.entry(*chain).or_default();
        *seq = head.seq.max(*seq);
    }
    let mut lines = new_keys(audit, &step).await?;
    let mut entries = 0;
    for day in days_of(&step).into_iter().flatten() {
        for (entry, commit) in read_day(audit, &step, &received, day).await? {
            received.insert(entry.chain_id(), entry.seq);
            lines.extend(line(&Record::Entry(slot_of(day), (entry, commit))));
            entries += 1;
        }
    }
    let missing = count_missing(audit, &step.after, &received).await?;
    let checkpoint = step.checkpoints.last().map_or(0, |row| row.number);
    let oldest = day_of(step.to) - DAYS_OPEN;
    received.retain(|chain, _| oldest <= chain.day);
    let checkpoints = step.checkpoints.into_iter().map(Record::Checkpoint);
    lines.extend(checkpoints.filter_map(|record| line(&record)));
    Ok(Some(StreamPage {
        lines,
        entries,
        missing,
        next: StreamPosition {
            checkpoint,
            sent: received,
        },
    }))
}

/// The checkpoints after a position, until they state enough entries for a page.
async fn next_step(audit: &Audit, position: i64) -> Result<Option<Step>, storage::Error> {
    let db = &audit.writers.db;
    let last = position + CHECKPOINTS_MAX;
    let rows = store::list_checkpoints(db, position.max(1), last).await?;
    let is_last_page = rows.last().is_none_or(|row| row.number < last);
    let (known, mut checkpoints): (Vec<_>, Vec<_>) =
        rows.into_iter().partition(|row| row.number <= position);
    let before = known.last();
    let from = before.and_then(|row| time_of(&row.note));
    let from = from.map_or(Timestamp::MIN, |at| at - LATENESS);
    let before = before.and_then(state).unwrap_or_default();
    let mut after = before.clone();
    let mut length = 0;
    let has_more = loop {
        let Some(row) = checkpoints.get(length) else {
            break !is_last_page;
        };
        if let Some(state) = state(row) {
            if length > 0 && ENTRIES_MAX < growth(&before, &state) {
                break true;
            }
            after = state;
        }
        length += 1;
    };
    checkpoints.truncate(length);
    let Some(newest) = checkpoints.last() else {
        return Ok(None);
    };
    let at = time_of(&newest.note).unwrap_or(Timestamp::MAX);
    Ok(Some(Step {
        from,
        to: match has_more {
            true => at + SKEW,
            // Also what no checkpoint states yet.
            false => at + LATENESS,
        },
        checkpoints,
        before,
        after,
    }))
}

fn state(row: &CheckpointRow) -> Option<ChainState> {
    ChainState::decode(row.state.as_deref()?)
}

/// How many entries a state has more than another.
fn growth(before: &ChainState, after: &ChainState) -> i64 {
    let heads = after.heads.iter();
    let grown = heads.map(|(chain, head)| {
        let before = before.heads.get(chain).map_or(0, |head| head.seq);
        i64::from(head.seq) - i64::from(before)
    });
    grown.sum()
}

/// The certified keys that the sink does not know, as lines.
async fn new_keys(audit: &Audit, step: &Step) -> Result<Vec<String>, storage::Error> {
    let first = step.after.keys.keys().map(|(day, _)| *day).min();
    // The chains of a new node can precede the first checkpoint that states its key.
    let last = step.after.keys.keys().map(|(day, _)| *day).max();
    let (Some(first), Some(last)) = (first, last) else {
        return Ok(Vec::new());
    };
    let keys = store::list_node_keys(&audit.writers.db, first, last).await?;
    let is_new = |id: &(i32, i32)| !step.before.keys.contains_key(id);
    let new = keys
        .into_iter()
        .filter(|key| is_new(&(key.day, key.number)));
    Ok(new.filter_map(|key| line(&Record::Key(key))).collect())
}

/// The days that the page can have entries of.
fn days_of(step: &Step) -> Option<RangeInclusive<i32>> {
    let heads = step.after.heads.keys().map(|chain| chain.day);
    let days = heads.chain(step.after.keys.keys().map(|(day, _)| *day));
    let (first, last) = (days.clone().min()?, days.max()?);
    Some(first..=last)
}

/// The entries of a day that follow those received, by chain and sequence number.
async fn read_day(
    audit: &Audit,
    step: &Step,
    received: &BTreeMap<ChainId, i32>,
    day: i32,
) -> Result<Vec<StoredEntry>, storage::Error> {
    let db = &audit.writers.db;
    let (start, end) = (start_of_day(day), start_of_day(day + 1));
    let mut window = EntryWindow {
        slot: slot_of(day),
        from: step.from.max(start),
        to: step.to.min(end),
        received: received_of(received, day),
    };
    let mut entries = match window.from < window.to {
        true => store::list_entries(db, &window).await?,
        false => Vec::new(),
    };
    let found = without_gaps(&mut entries, step, received);
    if missing_chains(&step.after, &found).any(|(chain, _)| chain.day == day) {
        // Queued reads have the time of the request, which can be long before their commit.
        (window.from, window.to) = (start, end);
        entries = store::list_entries(db, &window).await?;
        without_gaps(&mut entries, step, received);
    }
    Ok(entries)
}

/// Removes entries after a gap in their chain, unless a checkpoint states them: what precedes them was created outside of the
/// window and follows later. Returns the last entry before a gap for each chain.
fn without_gaps(
    entries: &mut Vec<StoredEntry>,
    step: &Step,
    received: &BTreeMap<ChainId, i32>,
) -> BTreeMap<ChainId, i32> {
    let mut found = received.clone();
    entries.retain(|(entry, _)| {
        let chain = entry.chain_id();
        let last = found.entry(chain).or_default();
        if entry.seq == *last + 1 {
            *last = entry.seq;
            return true;
        }
        let stated = step.after.heads.get(&chain);
        stated.is_some_and(|head| entry.seq <= head.seq)
    });
    found
}

fn received_of(received: &BTreeMap<ChainId, i32>, day: i32) -> (Vec<i32>, Vec<i32>) {
    let chains = received.iter().filter(|(chain, _)| chain.day == day);
    chains.map(|(chain, seq)| (chain.number, *seq)).unzip()
}

/// Chains that a state has more entries of, and how many.
fn missing_chains<'a>(
    state: &'a ChainState,
    found: &'a BTreeMap<ChainId, i32>,
) -> impl Iterator<Item = (ChainId, i64)> + 'a {
    let heads = state.heads.iter();
    heads.filter_map(|(chain, head)| {
        let seq = found.get(chain).copied().unwrap_or_default();
        let count = i64::from(head.seq) - i64::from(seq);
        (count > 0).then_some((*chain, count))
    })
}

/// Counts the entries that a state has and the database does not, without those that retention removed.
async fn count_missing(
    audit: &Audit,
    state: &ChainState,
    found: &BTreeMap<ChainId, i32>,
) -> Result<i64, storage::Error> {
    let missing: Vec<_> = missing_chains(state, found).collect();
    if missing.is_empty() {
        return Ok(0);
    }
    let newest = store::find_newest_checkpoint(&audit.writers.db).await?;
    let retained = newest.and_then(|row| retained_from_of(&row.note));
    let retained = retained.unwrap_or_default();
    let missing = missing.into_iter();
    let retained = missing.filter(|(chain, _)| retained <= chain.day);
    Ok(retained.map(|(_, count)| count).sum())
}
