//! Verifies the audit log: no entry was altered, moved, added or removed.
//!
//! A [`Verifier`] takes the records of the log as a stream, from the database or from an export. It holds what
//! checkpoints say about the days that it has not seen yet, and one chain at a time, so that its memory does not depend
//! on the number of entries.

mod authorities;
mod checkpoints;
pub(in crate::audit) mod export;
pub(in crate::audit) mod finding;
pub(in crate::audit) mod received;
pub(in crate::audit) mod synthetic;
mod trusted;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::RangeInclusive;

use cloakroom_crypto::Hash;
use cloakroom_platform::storage::{self, connect_once};

use self::authorities::StatedAuthorities;
use self::checkpoints::CheckpointWalk;
use self::export::Record;
use self::finding::Finding;
pub use self::trusted::{TrustedCheckpoints, checkpoint_line};
use super::Audit;
use super::access_summary::access_summary;
use super::chain_entry::ChainEntry;
use super::day::{ChainId, day_of, slot_of};
use super::link::CertifiedKey;
use super::state::{KeyId, StatedKey};
use super::store::{self, StoredEntry};
use super::walk::{ChainWalk, WalkError};
use crate::keys::AuthorityKey;

/// Findings beyond this are only counted.
const FINDINGS_MAX: usize = 100;
/// Entries between two calls of `progress`.
const PROGRESS: u64 = 50_000;

/// Every day.
pub const ALL_DAYS: RangeInclusive<i32> = i32::MIN..=i32::MAX;

/// Result of a verification.
#[derive(Debug, Default)]
pub struct VerificationReport {
    pub records: u64,
    pub chains: u64,
    pub days: usize,
    pub checkpoints: u64,
    /// The first hundred.
    pub findings: Vec<Finding>,
    pub finding_count: u64,
    /// The newest checkpoint as a line of a sink file, to compare a later state with.
    pub newest: Option<String>,
    /// The number of checkpoints that were compared with those of a sink.
    pub compared: u64,
}

impl VerificationReport {
    /// Whether the only finding is that the sink has newer checkpoints, which a restored backup explains.
    pub fn is_rollback(&self) -> bool {
        self.finding_count == 1 && matches!(self.findings[..], [Finding::RolledBack { .. }])
    }

    fn report(&mut self, finding: Finding) {
        self.finding_count += 1;
        if self.findings.len() < FINDINGS_MAX {
            self.findings.push(finding);
        }
    }
}

/// Verifies the whole log in one snapshot of the database.
pub async fn verify(
    audit: &Audit,
    trusted: Option<TrustedCheckpoints>,
    mut progress: impl FnMut(u64),
) -> Result<VerificationReport, storage::Error> {
    let mut entries = 0_u64;
    verify_days(audit, ALL_DAYS, trusted, |_| {
        entries += 1;
        if entries.is_multiple_of(PROGRESS) {
            progress(entries);
        }
    })
    .await
}

/// Verifies some days in one snapshot, and passes each of their entries to `observe`.
///
/// The observed entries are proven only if the result has no findings.
pub(super) async fn verify_days(
    audit: &Audit,
    days: RangeInclusive<i32>,
    trusted: Option<TrustedCheckpoints>,
    mut observe: impl FnMut(&ChainEntry),
) -> Result<VerificationReport, storage::Error> {
    let connection = connect_once(&audit.database).await?;
    store::begin_snapshot(&connection).await?;
    let today = day_of(audit.writers.clock.synchronize().await?);
    let mut verifier = Verifier::new(audit.authorities(), days.clone(), trusted);
    export::stream(&connection, days, today, |record| {
        if let Record::Entry(_, (entry, _)) = &record {
            observe(entry);
        }
        verifier.push(record);
        Ok(())
    })
    .await?;
    verifier.check_current_access(access_summary(&connection).await?);
    Ok(verifier.finish())
}

/// Verifies an export with nothing but the public keys of the vault's audit authority. An export names former ones in a
/// statement that the active one signs, so the active one suffices.
pub fn verify_export(
    records: impl Iterator<Item = Result<Record, export::Error>>,
    authorities: Vec<AuthorityKey>,
    days: RangeInclusive<i32>,
    trusted: Option<TrustedCheckpoints>,
    mut progress: impl FnMut(u64),
) -> Result<VerificationReport, export::Error> {
    let mut verifier = Verifier::new(authorities, days, trusted);
    for record in records {
        verifier.push(record?);
        let entries = verifier.report.records;
        if entries > 0 && entries.is_multiple_of(PROGRESS) {
            progress(entries);
        }
    }
    Ok(verifier.finish())
}

/// What checkpoints say about a chain that was not walked yet.
#[derive(Default)]
struct Stated {
    /// Sequence numbers and links, in order.
    heads: VecDeque<(i32, Hash)>,
    /// Sequence number of the last entry of a closed chain.
    closed_at: Option<i32>,
}

/// Verifies a stream of records: for each day, the checkpoints up to the following day, the keys, and then the entries
/// by chain and sequence number.
struct Verifier {
    authorities: Vec<AuthorityKey>,
    /// Entries of other days are ignored.
    days: RangeInclusive<i32>,
    report: VerificationReport,
    checkpoints: CheckpointWalk,
    stated: BTreeMap<ChainId, Stated>,
    stated_keys: BTreeMap<KeyId, StatedKey>,
    keys: BTreeMap<KeyId, CertifiedKey>,
    /// Heads of the chains that were walked, of days that are not closed.
    walked: BTreeMap<ChainId, (i32, Hash)>,
    walk: Option<ChainWalk>,
    slot: Option<i16>,
    /// Days that have entries.
    days_seen: BTreeSet<i32>,
    /// Days whose entries were read.
    days_done: BTreeSet<i32>,
    /// Findings unless retention removed their day.
    deferred: Vec<(i32, Finding)>,
}

impl Verifier {
    fn new(
        authorities: Vec<AuthorityKey>,
        days: RangeInclusive<i32>,
        trusted: Option<TrustedCheckpoints>,
    ) -> Self {
        Self {
            authorities,
            checkpoints: CheckpointWalk::new(days != ALL_DAYS, trusted),
            days,
            report: VerificationReport::default(),
            stated: BTreeMap::new(),
            stated_keys: BTreeMap::new(),
            keys: BTreeMap::new(),
            walked: BTreeMap::new(),
            walk: None,
            slot: None,
            days_seen: BTreeSet::new(),
            days_done: BTreeSet::new(),
            deferred: Vec::new(),
        }
    }

    fn push(&mut self, record: Record) {
        match record {
            Record::Authorities(stated) => stated.extend(&mut self.authorities),
            Record::Checkpoint(row) => self.check_checkpoint(row),
            Record::Key(key) => self.check_key(key),
            Record::Slot(slot) => {
                self.finish_slot();
                self.slot = Some(slot);
            }
            Record::Entry(slot, entry) => self.check_entry(slot, &entry),
        }
    }

    fn check_key(&mut self, key: CertifiedKey) {
        let id = (key.day, key.number);
        let stated = self.stated_keys.get(&id);
        let is_stated = stated
            .is_none_or(|stated| (stated.node, stated.public_key) == (key.node, key.public_key));
        if !key.is_certified(&self.authorities) || !is_stated {
            let (day, number) = id;
            return self.report.report(Finding::UnknownKey { day, number });
        }
        self.keys.insert(id, key);
    }

    fn check_entry(&mut self, slot: i16, (entry, commit): &StoredEntry) {
        let (chain, seq) = (entry.chain_id(), entry.seq);
        if !self.days.contains(&chain.day) {
            return;
        }
        self.report.records += 1;
        if slot_of(chain.day) != slot || Some(slot) != self.slot {
            return self.report.report(Finding::Stray { chain, seq });
        }
        self.days_seen.insert(chain.day);
        if self.walk.as_ref().is_none_or(|walk| walk.id != chain) {
            self.finish_chain();
            self.walk = self.start_chain(chain);
        }
        let Some(walk) = &mut self.walk else {
            return self.report.report(Finding::Stray { chain, seq });
        };
        let stated = self.stated.entry(chain).or_default();
        if stated.closed_at.is_some_and(|last| last < seq) {
            return self.report.report(Finding::Stray { chain, seq });
        }
        let known = stated.heads.front().filter(|(known, _)| *known == seq);
        let known = known.map(|(_, link)| *link);
        match walk.push(entry, commit.as_deref(), known) {
            Ok(false) => {}
            Ok(true) => self.compare_head(),
            Err(error) => {
                self.report.report(finding(chain, error));
                if commit.is_some() {
                    self.compare_head();
                }
            }
        }
    }

    /// Compares the end of a batch with the heads that checkpoints state.
    fn compare_head(&mut self) {
        let Some(walk) = &self.walk else {
            return;
        };
        let Some(stated) = self.stated.get_mut(&walk.id) else {
            return;
        };
        while let Some((seq, link)) = stated.heads.front().copied()
            && seq <= walk.seq
        {
            stated.heads.pop_front();
            // After an error nothing is known about the link, and the error is reported already.
            if !walk.is_broken() && walk.head != (seq, link) {
                let chain = walk.id;
                self.report.report(Finding::Forked { chain, seq });
            }
        }
    }

    /// Starts to walk a chain; `None` if no certified key signed it, or if its day was closed without it.
    fn start_chain(&self, chain: ChainId) -> Option<ChainWalk> {
        let is_stated = self.stated.contains_key(&chain);
        if chain.day <= self.checkpoints.closed_through && !is_stated {
            return None;
        }
        let key = self.keys.get(&(chain.day, chain.key_number()))?;
        Some(ChainWalk::new(chain, key))
    }

    fn finish_chain(&mut self) {
        let Some(walk) = self.walk.take() else {
            return;
        };
        let chain = walk.id;
        self.report.chains += 1;
        let last = self
            .stated
            .remove(&chain)
            .and_then(|mut it| it.heads.pop_back());
        if let Some((last, _)) = last.filter(|(last, _)| walk.seq < *last) {
            let from = walk.seq + 1;
            self.report.report(Finding::Missing {
                chain,
                from,
                to: last,
            });
        } else if walk.is_incomplete() && !walk.is_broken() {
            let seq = walk.seq;
            self.report.report(Finding::Truncated { chain, seq });
        }
        if chain.day > self.checkpoints.closed_through {
            self.walked.insert(chain, walk.head);
        }
    }

    /// Ends the entries of a partition: chains of its days that checkpoints list and that had no entries are missing.
    fn finish_slot(&mut self) {
        self.finish_chain();
        let Some(slot) = self.slot.take() else {
            return;
        };
        let missing: Vec<ChainId> = self
            .stated
            .keys()
            .filter(|chain| slot_of(chain.day) == slot)
            .copied()
            .collect();
        for chain in missing {
            self.stated.remove(&chain);
            self.defer_missing(chain);
        }
        let lost_keys = self.stated_keys.keys().filter(|id| slot_of(id.0) == slot);
        let lost_keys: Vec<KeyId> = lost_keys.copied().collect();
        for id @ (day, number) in lost_keys {
            self.stated_keys.remove(&id);
            self.days_done.insert(day);
            if !self.keys.contains_key(&id) {
                self.deferred
                    .push((day, Finding::UnknownKey { day, number }));
            }
        }
        self.keys.retain(|(day, _), _| slot_of(*day) != slot);
    }

    fn defer_missing(&mut self, chain: ChainId) {
        let day = chain.day;
        let finding = match self.days_seen.contains(&day) {
            true => Finding::MissingChain { chain },
            false => Finding::MissingDay { day },
        };
        let finding = (day, finding);
        if !self.deferred.contains(&finding) && self.deferred.len() < FINDINGS_MAX {
            self.deferred.push(finding);
        }
    }

    fn finish(mut self) -> VerificationReport {
        self.finish_slot();
        let unread: Vec<ChainId> = self.stated.keys().copied().collect();
        for chain in unread {
            self.defer_missing(chain);
        }
        let retained_from = self.checkpoints.retained_from;
        let days = self.days.clone();
        for (day, finding) in std::mem::take(&mut self.deferred) {
            if retained_from <= day && days.contains(&day) {
                self.report.report(finding);
            }
        }
        self.finish_checkpoints();
        self.report.days = self.days_seen.len();
        self.report
    }
}

fn finding(chain: ChainId, error: WalkError) -> Finding {
    match error {
        WalkError::Missing { from, to } => Finding::Missing { chain, from, to },
        WalkError::Forked { seq } => Finding::Forked { chain, seq },
        WalkError::Altered { from, to } => Finding::Altered { chain, from, to },
    }
}
