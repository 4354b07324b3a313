//! Verifies the audit log: no entry was altered, moved, added or removed.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::RangeInclusive;
use std::pin::pin;

use cloakroom_platform::storage::{self, Connection, connect_once};
use futures_util::TryStreamExt as _;
use serde::{Deserialize, Serialize};

use super::Audit;
use super::chain::{ChainEntry, ChainId, Mac, SLOTS, initial_macs, is_genuine_head, slot_of};
use super::store::{self, ChainRow, StoredEntry};
use crate::keys::AuditKey;

/// Findings beyond this are only counted.
const FINDINGS_MAX: usize = 100;
/// Entries between two calls of `progress`.
const PROGRESS: u64 = 100_000;

/// An inconsistency of the audit log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// The entries of a range of sequence numbers do not exist.
    Missing { chain: ChainId, from: i32, to: i32 },
    /// The entry or its predecessor is not the one that was signed.
    Altered { chain: ChainId, seq: i32 },
    /// The entry belongs to no chain.
    Stray { chain: ChainId, seq: i32 },
    /// The chain's own row was altered.
    AlteredChain { chain: ChainId },
    /// Chains are numbered without gaps, and this one does not exist.
    MissingChain { chain: ChainId },
    /// A day of the anchor that is not old enough to be removed.
    MissingDay { day: i32 },
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = |chain: &ChainId| format!("{}, chain {}", date(chain.day), chain.number);
        match self {
            Self::Missing { chain, from, to } if from == to => {
                write!(f, "{}: record {from} is missing", at(chain))
            }
            Self::Missing { chain, from, to } => {
                write!(f, "{}: records {from} to {to} are missing", at(chain))
            }
            Self::Altered { chain, seq } => {
                let previous = seq - 1;
                write!(
                    f,
                    "{}: record {seq} does not follow from record {previous}",
                    at(chain)
                )
            }
            Self::Stray { chain, seq } => {
                write!(f, "{}: record {seq} was not written by a node", at(chain))
            }
            Self::AlteredChain { chain } => {
                write!(f, "{}: the chain's own row was changed", at(chain))
            }
            Self::MissingChain { chain } => write!(f, "{}: the chain is missing", at(chain)),
            Self::MissingDay { day } => write!(f, "{}: the whole day is missing", date(*day)),
        }
    }
}

fn date(day: i32) -> String {
    let at = jiff::Timestamp::from_second(i64::from(day) * 24 * 60 * 60);
    at.map_or_else(
        |_| format!("day {day}"),
        |at| at.strftime("%Y-%m-%d").to_string(),
    )
}

/// The heads of all chains at one time. Stored outside of the database, it detects entries that
/// were later removed from the ends of chains.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Anchor {
    pub heads: Vec<Head>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    pub day: i32,
    pub chain: i32,
    pub seq: i32,
    /// Signature of the last entry, hexadecimal.
    pub mac: String,
}

/// Result of a verification.
#[derive(Debug, Default)]
pub struct VerificationReport {
    pub records: u64,
    pub chains: usize,
    pub days: usize,
    /// The first hundred.
    pub findings: Vec<Finding>,
    pub finding_count: u64,
    /// For the next verification.
    pub anchor: Anchor,
}

/// Verifies all entries of all chains in one snapshot.
pub async fn verify(
    audit: &Audit,
    anchor: Option<&Anchor>,
    mut progress: impl FnMut(u64),
) -> Result<VerificationReport, storage::Error> {
    let mut records = 0_u64;
    let every_day = i32::MIN..=i32::MAX;
    verify_days(audit, every_day, anchor, |_| {
        records += 1;
        if records.is_multiple_of(PROGRESS) {
            progress(records);
        }
    })
    .await
}

/// Verifies the chains of some days in one snapshot, and passes each of their entries to `observe`.
///
/// The observed entries are proven only if the result has no findings.
pub(super) async fn verify_days(
    audit: &Audit,
    days: RangeInclusive<i32>,
    anchor: Option<&Anchor>,
    mut observe: impl FnMut(&ChainEntry),
) -> Result<VerificationReport, storage::Error> {
    let connection = connect_once(&audit.database).await?;
    store::begin_snapshot(&connection).await?;
    let mut verifier = Verifier {
        key: &audit.writers.key,
        days,
        chains: BTreeMap::new(),
        verified: VerificationReport::default(),
    };
    verifier.load_chains(&connection).await?;
    verifier.add_anchor(anchor, oldest_retained_day(audit).await?);
    for slot in verifier.slots() {
        let rows = store::stream_slot(&connection, slot).await?;
        let mut rows = pin!(rows);
        while let Some(row) = rows.try_next().await? {
            if verifier.days.contains(&row.0.day) {
                observe(&row.0);
                verifier.check_entry(slot, row);
            }
        }
    }
    Ok(verifier.finish())
}

/// The oldest day that retention has not removed.
async fn oldest_retained_day(audit: &Audit) -> Result<i32, storage::Error> {
    let now = audit.writers.clock.synchronize().await?;
    let days = i32::try_from(audit.keep_days).unwrap_or(i32::MAX);
    Ok(super::chain::day_of(now).saturating_sub(days))
}

/// A chain under verification.
struct Chain {
    row: ChainRow,
    seq: i32,
    /// Values that the next entry may be signed over: one, or one per version of the key at the
    /// start of the chain.
    predecessors: Vec<Mac>,
    /// Entries that must exist, with their signatures.
    expected: Vec<(i32, Vec<u8>)>,
}

struct Verifier<'a> {
    key: &'a AuditKey,
    /// Chains and entries of other days are ignored.
    days: RangeInclusive<i32>,
    chains: BTreeMap<ChainId, Chain>,
    verified: VerificationReport,
}

impl Verifier<'_> {
    /// The partitions of the verified days.
    fn slots(&self) -> BTreeSet<i16> {
        let (first, last) = (*self.days.start(), *self.days.end());
        let last = last.min(first.saturating_add(SLOTS - 1));
        (first..=last).map(slot_of).collect()
    }

    async fn load_chains(&mut self, connection: &Connection) -> Result<(), storage::Error> {
        let (mut day, mut number) = (0, 0);
        for (row, row_mac) in store::list_all_chains(connection).await? {
            if !self.days.contains(&row.day) {
                continue;
            }
            let id = ChainId {
                day: row.day,
                number: row.number,
            };
            if row.day != day {
                self.verified.days += 1;
                (day, number) = (row.day, 0);
            }
            for missing in number + 1..row.number {
                self.report(Finding::MissingChain {
                    chain: ChainId {
                        day,
                        number: missing,
                    },
                });
            }
            number = row.number;
            if !is_genuine_head(self.key, &row, &row_mac) {
                self.report(Finding::AlteredChain { chain: id });
            }
            let expected = vec![(row.head_seq, row.head_mac.clone())];
            let predecessors = initial_macs(self.key, id, row.node);
            let chain = Chain {
                row,
                seq: 0,
                predecessors,
                expected,
            };
            self.chains.insert(id, chain);
        }
        self.verified.chains = self.chains.len();
        Ok(())
    }

    /// Adds the heads of an earlier verification to the expected entries.
    fn add_anchor(&mut self, anchor: Option<&Anchor>, oldest_retained: i32) {
        let heads = anchor.map_or(&[][..], |anchor| &anchor.heads);
        let mut missing_days = Vec::new();
        let days: BTreeSet<i32> = self.chains.keys().map(|chain| chain.day).collect();
        let examined = self.days.clone();
        for head in heads.iter().filter(|head| examined.contains(&head.day)) {
            let id = ChainId {
                day: head.day,
                number: head.chain,
            };
            match self.chains.get_mut(&id) {
                Some(chain) => {
                    let mac = hex::decode(&head.mac).unwrap_or_default();
                    chain.expected.push((head.seq, mac));
                }
                None if days.contains(&head.day) => {
                    self.report(Finding::MissingChain { chain: id });
                }
                None if head.day >= oldest_retained => missing_days.push(head.day),
                None => {}
            }
        }
        missing_days.dedup();
        for day in missing_days {
            self.report(Finding::MissingDay { day });
        }
    }

    fn check_entry(&mut self, slot: i16, (record, mac): StoredEntry) {
        self.verified.records += 1;
        let seq = record.seq;
        let id = ChainId {
            day: record.day,
            number: record.chain,
        };
        let chain = self.chains.get_mut(&id);
        let (Some(chain), Some(mac)) = (chain, mac) else {
            return self.report(Finding::Stray { chain: id, seq });
        };
        if slot_of(record.day) != slot || seq <= chain.seq {
            return self.report(Finding::Stray { chain: id, seq });
        }
        let (from, to) = (chain.seq + 1, seq - 1);
        let is_next = to < from;
        let follows = |previous: &Mac| record.follows(self.key, previous, &mac);
        let is_genuine = chain.predecessors.iter().any(follows);
        let expected = &chain.expected;
        let is_expected = is_as_expected(expected, &record, &mac);
        (chain.seq, chain.predecessors) = (seq, vec![mac]);
        if !is_next {
            // The signature that this entry was signed over is in the missing range.
            self.report(Finding::Missing {
                chain: id,
                from,
                to,
            });
        } else if !is_genuine || !is_expected {
            self.report(Finding::Altered { chain: id, seq });
        }
    }

    fn finish(mut self) -> VerificationReport {
        let mut cut_off = Vec::new();
        for (id, chain) in &self.chains {
            let last = chain.expected.iter().map(|(seq, _)| *seq).max();
            let last = last.unwrap_or_default();
            if chain.seq < last {
                cut_off.push(Finding::Missing {
                    chain: *id,
                    from: chain.seq + 1,
                    to: last,
                });
            }
            if let [mac] = &chain.predecessors[..]
                && chain.seq > 0
            {
                self.verified.anchor.heads.push(Head {
                    day: id.day,
                    chain: id.number,
                    seq: chain.seq,
                    mac: hex::encode(mac),
                });
            }
        }
        for finding in cut_off {
            self.report(finding);
        }
        // A closed chain does not grow.
        let overgrown = |chain: &Chain| chain.row.is_closed && chain.seq > chain.row.head_seq;
        let overgrown: Vec<Finding> = self
            .chains
            .iter()
            .filter(|(_, chain)| overgrown(chain))
            .map(|(id, chain)| Finding::Stray {
                chain: *id,
                seq: chain.seq,
            })
            .collect();
        for finding in overgrown {
            self.report(finding);
        }
        self.verified
    }

    fn report(&mut self, finding: Finding) {
        self.verified.finding_count += 1;
        if self.verified.findings.len() < FINDINGS_MAX {
            self.verified.findings.push(finding);
        }
    }
}

/// Whether the entry still has the signature that is known for it.
fn is_as_expected(expected: &[(i32, Vec<u8>)], record: &ChainEntry, mac: &Mac) -> bool {
    expected
        .iter()
        .filter(|(seq, _)| *seq == record.seq)
        .all(|(_, known)| known == mac)
}
