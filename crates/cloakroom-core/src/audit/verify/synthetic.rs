//! Writes an export of any size without a database, to measure and test the verification.

use std::io::Write;

use cloakroom_crypto::{Hash, LogKey, LogPublicKey, MerkleTree};
use jiff::Timestamp;
use uuid::Uuid;

use crate::audit::access_summary::AccessSummary;
use crate::audit::chain_entry::ChainEntry;
use crate::audit::day::{ChainId, day_of, slot_of};
use crate::audit::export::{Error, Record, write_record};
use crate::audit::link::{Batch, CertifiedKey, Commit, certificate_message};
use crate::audit::note::{Checkpoint, note_hash};
use crate::audit::state::{ChainState, Head};
use crate::audit::store::CheckpointRow;

/// Entries of each day.
const ENTRIES_PER_DAY: u64 = 1_000_000;
const CHAINS: i32 = 16;
const CHECKPOINTS_PER_DAY: u64 = 8_640;

/// The size of a synthetic export.
#[derive(Clone, Copy, Debug)]
pub struct SyntheticLog {
    pub entries: u64,
    /// Entries in each batch.
    pub batch: u64,
}

/// A node of the synthetic log.
struct Writer<W> {
    output: W,
    authority: LogKey,
    pair: LogKey,
    key: CertifiedKey,
    /// Chains and their batches of the day, in the order of the export.
    entries: Vec<Record>,
    state: ChainState,
    number: i64,
    previous: Hash,
    buffer: Vec<u8>,
}

/// Writes entries of one node, a million each day, in batches, with a checkpoint for every ten seconds. Returns the public
/// key of its authority.
pub fn write_synthetic(output: impl Write, size: SyntheticLog) -> Result<LogPublicKey, Error> {
    let first_day = 20_000;
    let failed = |_| Error::Io(std::io::Error::other("no key could be generated"));
    let authority = LogKey::generate().map_err(failed)?;
    let pair = LogKey::generate().map_err(failed)?;
    let mut writer = Writer::new(output, authority, pair, first_day);
    let mut written = 0;
    for day in first_day.. {
        let entries = (size.entries - written).min(ENTRIES_PER_DAY);
        if entries == 0 {
            break;
        }
        writer.pair = LogKey::generate().map_err(failed)?;
        writer.write_day(day, entries, size.batch.max(1))?;
        written += entries;
    }
    writer.output.flush()?;
    Ok(*writer.authority.public_key())
}

fn certify(authority: &LogKey, pair: &LogKey, day: i32) -> CertifiedKey {
    let node = Uuid::from_bytes([7; 16]);
    let message = certificate_message(day, 1, node, pair.public_key());
    CertifiedKey {
        day,
        number: 1,
        node,
        public_key: *pair.public_key(),
        certificate: authority.sign(&message),
    }
}

impl<W: Write> Writer<W> {
    fn new(output: W, authority: LogKey, pair: LogKey, day: i32) -> Self {
        Self {
            output,
            key: certify(&authority, &pair, day),
            authority,
            pair,
            entries: Vec::new(),
            state: ChainState::default(),
            number: 0,
            previous: [0; 32],
            buffer: Vec::new(),
        }
    }

    /// Writes the checkpoints of a day, and then its entries.
    fn write_day(&mut self, day: i32, entries: u64, batch: u64) -> Result<(), Error> {
        self.key = certify(&self.authority, &self.pair, day);
        self.state.add_key(&self.key);
        let per_chain = entries.div_ceil(CHAINS.unsigned_abs().into());
        let mut left = entries;
        for position in 1..=CHAINS {
            let count = per_chain.min(left);
            left -= count;
            self.append_chain(day, 1000 + position, count, batch);
        }
        let checkpoints = CHECKPOINTS_PER_DAY * entries / ENTRIES_PER_DAY;
        for index in 0..=checkpoints {
            self.write_checkpoint(day, index, index == checkpoints)?;
        }
        write_record(&mut self.output, &Record::Key(self.key.clone()))?;
        write_record(&mut self.output, &Record::Slot(slot_of(day)))?;
        for record in std::mem::take(&mut self.entries) {
            write_record(&mut self.output, &record)?;
        }
        self.state = ChainState::default();
        Ok(())
    }

    fn append_chain(&mut self, day: i32, number: i32, count: u64, batch: u64) {
        let chain = ChainId { day, number };
        let mut head = Head {
            seq: 0,
            link: self.key.first_link(chain),
            is_closed: true,
        };
        let mut left = count;
        while left > 0 {
            let size = batch.min(left);
            left -= size;
            let first = head.seq + 1;
            let mut tree = MerkleTree::default();
            for _ in 0..size {
                head.seq += 1;
                let entry = entry(chain, head.seq);
                tree.push(entry.leaf(&mut self.buffer));
                self.entries
                    .push(Record::Entry(slot_of(day), (entry, None)));
            }
            let batch = Batch {
                chain,
                first,
                last: head.seq,
                root: tree.root(),
            };
            head.link = batch.link(&head.link);
            let commit = Commit::sign(&self.pair, first, &head.link);
            if let Some(Record::Entry(_, (_, last))) = self.entries.last_mut() {
                *last = Some(commit.to_bytes().to_vec());
            }
        }
        if head.seq > 0 {
            self.state.heads.insert(chain, head);
        }
    }

    fn write_checkpoint(&mut self, day: i32, index: u64, is_last: bool) -> Result<(), Error> {
        self.number += 1;
        let second = i64::from(day) * 86_400 + i64::try_from(index).unwrap_or_default() * 10;
        let checkpoint = Checkpoint {
            environment: "synthetic".to_owned(),
            number: self.number,
            root: self.state.root(),
            previous: self.previous,
            at: Timestamp::from_second(second).unwrap_or_default(),
            access: AccessSummary {
                generations: 0,
                digest: [0; 32],
            },
            retained_from: 0,
            closed_through: if is_last { day } else { day - 1 },
            key: self.key.clone(),
        };
        let note = checkpoint.sign(&self.pair);
        self.previous = note_hash(&note);
        let row = CheckpointRow {
            number: self.number,
            note,
            state: Some(self.state.encode()),
        };
        write_record(&mut self.output, &Record::Checkpoint(row))
    }
}

fn entry(chain: ChainId, seq: i32) -> ChainEntry {
    let at = i64::from(chain.day) * 86_400_000_000 + i64::from(seq) * 1_000;
    let created_at = Timestamp::from_microsecond(at).unwrap_or_default();
    let random = u128::from(seq.unsigned_abs()) << 64 | u128::from(chain.number.unsigned_abs());
    let id = Uuid::from_u128(random.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835));
    ChainEntry {
        day: day_of(created_at),
        chain: chain.number,
        seq,
        created_at,
        tenant_number: 1,
        actor_kind: 1,
        actor: Uuid::from_bytes([1; 16]),
        key: Uuid::from_bytes([2; 16]),
        entity: 2,
        entity_id: id.to_string(),
        operation: 2,
        outcome: 3,
        origin: Some("192.0.2.77".to_owned()),
        trace_id: id.simple().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::{ALL_DAYS, Finding, read_records, verify_export};

    fn export(entries: u64) -> (Vec<u8>, LogPublicKey) {
        let mut text = Vec::new();
        let key = write_synthetic(&mut text, SyntheticLog { entries, batch: 7 }).unwrap();
        (text, key)
    }

    fn findings(text: &str, key: LogPublicKey) -> Vec<Finding> {
        let records = read_records(text.as_bytes());
        verify_export(records, vec![key.into()], ALL_DAYS, None, |_| {})
            .unwrap()
            .findings
    }

    #[test]
    fn a_synthetic_export_verifies_and_every_line_of_it_matters() {
        let (text, key) = export(400);
        let text = String::from_utf8(text).unwrap();
        assert_eq!(findings(&text, key), []);

        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        for index in 0..lines.len() {
            let without = [&lines[..index], &lines[index + 1..]].concat().concat();
            let last_checkpoint = lines
                .iter()
                .rposition(|line| line.starts_with("{\"checkpoint\""));
            let found = findings(&without, key);
            // Without the last checkpoint the day is not closed, and its heads are the same.
            assert!(
                !found.is_empty() || Some(index) == last_checkpoint,
                "{}",
                lines[index]
            );
        }
    }

    #[test]
    fn an_open_chain_of_a_closed_day_is_a_finding() {
        let mut writer = Writer {
            output: Vec::new(),
            authority: LogKey::generate().unwrap(),
            pair: LogKey::generate().unwrap(),
            key: certify(
                &LogKey::generate().unwrap(),
                &LogKey::generate().unwrap(),
                1,
            ),
            entries: Vec::new(),
            state: ChainState::default(),
            number: 0,
            previous: [0; 32],
            buffer: Vec::new(),
        };
        writer.key = certify(&writer.authority, &writer.pair, 20_000);
        writer.state.add_key(&writer.key);
        writer.append_chain(20_000, 1001, 5, 2);
        for head in writer.state.heads.values_mut() {
            head.is_closed = false;
        }
        writer.write_checkpoint(20_000, 0, true).unwrap();
        write_record(&mut writer.output, &Record::Key(writer.key.clone())).unwrap();
        write_record(&mut writer.output, &Record::Slot(slot_of(20_000))).unwrap();
        for record in std::mem::take(&mut writer.entries) {
            write_record(&mut writer.output, &record).unwrap();
        }

        let text = String::from_utf8(writer.output).unwrap();
        let found = findings(&text, *writer.authority.public_key());

        assert!(
            matches!(found[..], [Finding::OpenChain { .. }]),
            "{found:?}"
        );
    }

    /// Checkpoints of two histories are genuine one by one, but do not follow from each other.
    #[test]
    fn checkpoints_of_another_history_are_findings() {
        let (authority, pair) = (LogKey::generate().unwrap(), LogKey::generate().unwrap());
        let mut writer = Writer::new(Vec::new(), authority, pair, 20_000);
        writer.write_checkpoint(20_000, 0, false).unwrap();
        writer.previous = [9; 32];
        writer.write_checkpoint(20_000, 1, false).unwrap();

        let text = String::from_utf8(writer.output).unwrap();
        let found = findings(&text, *writer.authority.public_key());

        assert_eq!(found, [Finding::ForkedCheckpoint { number: 2 }]);
    }

    /// A node that was taken over cannot rewrite the heads of others, nor its own.
    #[test]
    fn rewritten_heads_are_findings() {
        type Rewrite = fn(&mut ChainState);
        let rewrites: [Rewrite; 4] = [
            |state| state.heads.values_mut().for_each(|head| head.seq -= 1),
            |state| {
                state
                    .heads
                    .values_mut()
                    .for_each(|head| head.link = [9; 32])
            },
            |state| state.heads.clear(),
            |state| state.heads.values_mut().for_each(|head| head.seq += 1),
        ];
        for rewrite in rewrites {
            let authority = LogKey::generate().unwrap();
            let pair = LogKey::generate().unwrap();
            let key = certify(&authority, &pair, 20_000);
            let mut writer = Writer {
                output: Vec::new(),
                authority,
                pair,
                key,
                entries: Vec::new(),
                state: ChainState::default(),
                number: 0,
                previous: [0; 32],
                buffer: Vec::new(),
            };
            writer.state.add_key(&writer.key);
            writer.append_chain(20_000, 1001, 5, 2);
            writer.write_checkpoint(20_000, 0, false).unwrap();
            rewrite(&mut writer.state);
            writer.write_checkpoint(20_000, 1, false).unwrap();

            let text = String::from_utf8(writer.output).unwrap();
            let found = findings(&text, *writer.authority.public_key());

            let is_rewritten =
                |it: &Finding| matches!(it, Finding::RewrittenHead { number: 2, .. });
            assert!(found.iter().any(is_rewritten), "{found:?}");
        }
    }
}
