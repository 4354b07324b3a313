//! Examining the record: was anything changed, moved, added or taken away?

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::pin::pin;

use futures_util::TryStreamExt as _;
use serde::{Deserialize, Serialize};

use super::chain::{Mac, Record, SLOTS, is_genuine_head, slot_of, starts_of};
use super::store::{self, ChainRow, Kept};
use crate::keys::AuditKey;
use crate::storage::{self, Connection, connect_once};
use crate::vault::Vault;

/// Findings beyond this are only counted.
const FINDINGS_MAX: usize = 100;
/// Records between two calls of `progress`.
const PROGRESS: u64 = 100_000;

/// A chain's place: its day and its number on that day.
type Place = (i32, i32);

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// Records from one number to another are not there.
    Missing { place: Place, from: i32, to: i32 },
    /// A record is not the one that was signed there, or the one before it is not.
    Altered { place: Place, seq: i32 },
    /// A record that no chain knows.
    Stray { place: Place, seq: i32 },
    /// The chain's own row was changed.
    AlteredChain { place: Place },
    /// Chains are numbered without gaps, and this one is not there.
    MissingChain { place: Place },
    /// A day that was there when the anchor was written, and is not old enough to be removed.
    MissingDay { day: i32 },
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = |place: &Place| format!("{}, chain {}", date(place.0), place.1);
        match self {
            Self::Missing { place, from, to } if from == to => {
                write!(f, "{}: record {from} is missing", at(place))
            }
            Self::Missing { place, from, to } => {
                write!(f, "{}: records {from} to {to} are missing", at(place))
            }
            Self::Altered { place, seq } => {
                let before = seq - 1;
                write!(
                    f,
                    "{}: record {seq} does not follow from record {before}",
                    at(place)
                )
            }
            Self::Stray { place, seq } => {
                write!(f, "{}: record {seq} was not written by a node", at(place))
            }
            Self::AlteredChain { place } => {
                write!(f, "{}: the chain's own row was changed", at(place))
            }
            Self::MissingChain { place } => write!(f, "{}: the chain is missing", at(place)),
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

/// How far every chain reached at one time. Kept outside the database, it shows what was cut off the
/// ends of chains since then.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Anchor {
    pub heads: Vec<Head>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    pub day: i32,
    pub chain: i32,
    pub seq: i32,
    /// The signature of the last record, in hexadecimal.
    pub mac: String,
}

/// What an examination found.
#[derive(Debug, Default)]
pub struct Verified {
    pub records: u64,
    pub chains: usize,
    pub days: usize,
    /// The first hundred.
    pub findings: Vec<Finding>,
    pub finding_count: u64,
    /// For the next examination.
    pub anchor: Anchor,
}

/// Examines every record of every chain, in one snapshot.
pub async fn verify(
    vault: &Vault,
    anchor: Option<&Anchor>,
    mut progress: impl FnMut(u64),
) -> Result<Verified, storage::Error> {
    let connection = connect_once(&vault.config.database).await?;
    store::begin_snapshot(&connection).await?;
    let key = vault.keys.audit();
    let mut examination = Examination {
        key,
        chains: BTreeMap::new(),
        verified: Verified::default(),
    };
    examination.take_chains(&connection).await?;
    examination.expect(anchor, oldest_kept_day(vault).await?);
    for slot in 0..SLOTS {
        let slot = slot_of(slot);
        let rows = store::stream_slot(&connection, slot).await?;
        let mut rows = pin!(rows);
        while let Some(row) = rows.try_next().await? {
            examination.judge(slot, row);
            if examination.verified.records.is_multiple_of(PROGRESS) {
                progress(examination.verified.records);
            }
        }
    }
    Ok(examination.finish())
}

/// The oldest day that no retention has removed.
async fn oldest_kept_day(vault: &Vault) -> Result<i32, storage::Error> {
    let now = vault.audit.pens.chains.clock.hear(&vault.db).await?;
    let days = i32::try_from(vault.config.audit.keep_days).unwrap_or(i32::MAX);
    Ok(super::chain::day_of(now).saturating_sub(days))
}

/// A chain under examination.
struct Chain {
    row: ChainRow,
    seq: i32,
    /// What the next record may be signed over: one thing, or one for each version of the key at the
    /// start.
    before: Vec<Mac>,
    /// Records that have to be there, with their signatures.
    expected: Vec<(i32, Vec<u8>)>,
}

struct Examination<'a> {
    key: &'a AuditKey,
    chains: BTreeMap<Place, Chain>,
    verified: Verified,
}

impl Examination<'_> {
    async fn take_chains(&mut self, connection: &Connection) -> Result<(), storage::Error> {
        let (mut day, mut number) = (0, 0);
        for (row, row_mac) in store::list_all_chains(connection).await? {
            let place = (row.day, row.number);
            if row.day != day {
                self.verified.days += 1;
                (day, number) = (row.day, 0);
            }
            for missing in number + 1..row.number {
                self.find(Finding::MissingChain {
                    place: (day, missing),
                });
            }
            number = row.number;
            if !is_genuine_head(self.key, &row, &row_mac) {
                self.find(Finding::AlteredChain { place });
            }
            let expected = vec![(row.head_seq, row.head_mac.clone())];
            let before = starts_of(self.key, place, row.node);
            let chain = Chain {
                row,
                seq: 0,
                before,
                expected,
            };
            self.chains.insert(place, chain);
        }
        self.verified.chains = self.chains.len();
        Ok(())
    }

    /// Adds what an earlier examination saw.
    fn expect(&mut self, anchor: Option<&Anchor>, oldest_kept: i32) {
        let heads = anchor.map_or(&[][..], |anchor| &anchor.heads);
        let mut missing_days = Vec::new();
        let days: BTreeSet<i32> = self.chains.keys().map(|(day, _)| *day).collect();
        for head in heads {
            let place = (head.day, head.chain);
            match self.chains.get_mut(&place) {
                Some(chain) => {
                    let mac = hex::decode(&head.mac).unwrap_or_default();
                    chain.expected.push((head.seq, mac));
                }
                None if days.contains(&head.day) => {
                    self.find(Finding::MissingChain { place });
                }
                None if head.day >= oldest_kept => missing_days.push(head.day),
                None => {}
            }
        }
        missing_days.dedup();
        for day in missing_days {
            self.find(Finding::MissingDay { day });
        }
    }

    fn judge(&mut self, slot: i16, (record, mac): Kept) {
        self.verified.records += 1;
        let (place, seq) = ((record.day, record.chain), record.seq);
        let chain = self.chains.get_mut(&place);
        let (Some(chain), Some(mac)) = (chain, mac) else {
            return self.find(Finding::Stray { place, seq });
        };
        if slot_of(record.day) != slot || seq <= chain.seq {
            return self.find(Finding::Stray { place, seq });
        }
        let (from, to) = (chain.seq + 1, seq - 1);
        let is_next = to < from;
        let follows = |before: &Mac| record.follows(self.key, before, &mac);
        let is_genuine = chain.before.iter().any(follows);
        let expected = &chain.expected;
        let is_expected = is_as_expected(expected, &record, &mac);
        (chain.seq, chain.before) = (seq, vec![mac]);
        if !is_next {
            // What the record after a gap was signed over is gone with it.
            self.find(Finding::Missing { place, from, to });
        } else if !is_genuine || !is_expected {
            self.find(Finding::Altered { place, seq });
        }
    }

    fn finish(mut self) -> Verified {
        let mut cut_off = Vec::new();
        for (place, chain) in &self.chains {
            let last = chain.expected.iter().map(|(seq, _)| *seq).max();
            let last = last.unwrap_or_default();
            if chain.seq < last {
                cut_off.push(Finding::Missing {
                    place: *place,
                    from: chain.seq + 1,
                    to: last,
                });
            }
            if let [mac] = &chain.before[..]
                && chain.seq > 0
            {
                self.verified.anchor.heads.push(Head {
                    day: place.0,
                    chain: place.1,
                    seq: chain.seq,
                    mac: hex::encode(mac),
                });
            }
        }
        for finding in cut_off {
            self.find(finding);
        }
        // A chain that was closed grows no more.
        let grown = |chain: &Chain| chain.row.is_closed && chain.seq > chain.row.head_seq;
        let grown: Vec<Finding> = self
            .chains
            .iter()
            .filter(|(_, chain)| grown(chain))
            .map(|(place, chain)| Finding::Stray {
                place: *place,
                seq: chain.seq,
            })
            .collect();
        for finding in grown {
            self.find(finding);
        }
        self.verified
    }

    fn find(&mut self, finding: Finding) {
        self.verified.finding_count += 1;
        if self.verified.findings.len() < FINDINGS_MAX {
            self.verified.findings.push(finding);
        }
    }
}

/// Whether a record that is known to have been there is still the same.
fn is_as_expected(expected: &[(i32, Vec<u8>)], record: &Record, mac: &Mac) -> bool {
    expected
        .iter()
        .filter(|(seq, _)| *seq == record.seq)
        .all(|(_, known)| known == mac)
}
