//! Exports the audit log as lines of JSON, and reads such an export.

use std::io::{BufRead, Write};
use std::ops::RangeInclusive;
use std::pin::pin;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use cloakroom_platform::storage::{self, Connection, connect_once};
use futures_util::TryStreamExt as _;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::audit::Audit;
use crate::audit::chain_entry::ChainEntry;
use crate::audit::day::{SLOTS, day_of, slot_of};
use crate::audit::link::CertifiedKey;
use crate::audit::store::{self, CheckpointRow, StoredEntry};
use crate::audit::verify::StatedAuthorities;
use crate::keys;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("line {0} is not a line of an export")]
    Malformed(u64),
    #[error(transparent)]
    Io(#[from] std::io::Error),
    #[error(transparent)]
    Keys(#[from] keys::Error),
    #[error(transparent)]
    Storage(#[from] storage::Error),
}

/// A record of an export.
pub enum Record {
    Authorities(StatedAuthorities),
    Checkpoint(CheckpointRow),
    Key(CertifiedKey),
    /// The entries of this partition follow.
    Slot(i16),
    /// An entry and its partition.
    Entry(i16, StoredEntry),
}

/// Passes the log of some days to `each`: for each day, the checkpoints up to the following day, the keys, and then the
/// entries by chain and sequence number. Holds one record at a time.
pub(in crate::audit) async fn stream<E: From<storage::Error>>(
    connection: &Connection,
    days: RangeInclusive<i32>,
    today: i32,
    mut each: impl FnMut(Record) -> Result<(), E>,
) -> Result<(), E> {
    // The ring ends with tomorrow: clocks of nodes may be ahead.
    let first = today + 2 - SLOTS;
    let is_partial = *days.start() > first;
    let first = first.max(*days.start());
    let last = (today + 1).min(*days.end());
    let mut position = match is_partial {
        // Checkpoints of the day before lead to the first of this day.
        true => store::last_checkpoint_of_day(connection, first.saturating_sub(2)).await?,
        false => 0,
    };
    for day in first..=last {
        let through = store::last_checkpoint_of_day(connection, day + 1).await?;
        stream_checkpoints(connection, position + 1, through, &mut each).await?;
        position = position.max(through);
        for key in store::list_keys(connection, day, day).await? {
            each(Record::Key(key))?;
        }
        let slot = slot_of(day);
        each(Record::Slot(slot))?;
        let entries = store::stream_slot(connection, slot).await?;
        let mut entries = pin!(entries);
        while let Some(entry) = entries.try_next().await? {
            each(Record::Entry(slot, entry))?;
        }
    }
    stream_checkpoints(connection, position + 1, i64::MAX, &mut each).await
}

async fn stream_checkpoints<E: From<storage::Error>>(
    connection: &Connection,
    first: i64,
    last: i64,
    each: &mut impl FnMut(Record) -> Result<(), E>,
) -> Result<(), E> {
    if last < first {
        return Ok(());
    }
    let rows = store::stream_checkpoints(connection, first, last).await?;
    let mut rows = pin!(rows);
    while let Some(row) = rows.try_next().await? {
        each(Record::Checkpoint(row))?;
    }
    Ok(())
}

/// Writes the log of some days in one snapshot; returns the number of entries.
pub async fn export(
    audit: &Audit,
    days: RangeInclusive<i32>,
    mut output: impl Write,
    mut progress: impl FnMut(u64),
) -> Result<u64, Error> {
    // Entries that this process has queued belong to the export.
    let _ = audit.flush().await;
    let connection = connect_once(&audit.database).await?;
    store::begin_snapshot(&connection).await?;
    let today = day_of(audit.writers.clock.synchronize().await?);
    let mut entries = 0;
    if let Some(stated) = StatedAuthorities::of(audit).await? {
        write_record(&mut output, &Record::Authorities(stated))?;
    }
    stream(&connection, days.clone(), today, |record| {
        if let Record::Entry(_, (entry, _)) = &record {
            if !days.contains(&entry.day) {
                return Ok(());
            }
            entries += 1;
            if entries % 50_000 == 0 {
                progress(entries);
            }
        }
        write_record(&mut output, &record)
    })
    .await?;
    output.flush()?;
    Ok(entries)
}

/// A line of an export.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Line<'a> {
    /// Statement, and signature in base64.
    Authorities(std::borrow::Cow<'a, str>, String),
    /// Number, note, and state in base64.
    Checkpoint(i64, std::borrow::Cow<'a, str>, Option<String>),
    /// Day, number, node, public key and certificate in base64.
    Key(i32, i32, Uuid, String, String),
    Slot(i16),
    Entry(EntryLine<'a>),
}

/// Partition, microseconds since 1970, tenant, kind and id of the actor, key, kind and id of the entity, operation, outcome,
/// origin, trace id, chain, sequence number, commit in base64.
#[derive(Serialize, Deserialize)]
struct EntryLine<'a>(
    i16,
    i64,
    i32,
    i16,
    Uuid,
    Uuid,
    i16,
    std::borrow::Cow<'a, str>,
    i16,
    i16,
    Option<std::borrow::Cow<'a, str>>,
    std::borrow::Cow<'a, str>,
    i32,
    i32,
    Option<String>,
);

/// Writes one record as a line.
pub(in crate::audit) fn write_record(
    output: &mut impl Write,
    record: &Record,
) -> Result<(), Error> {
    serde_json::to_writer(&mut *output, &encode(record)).map_err(std::io::Error::from)?;
    output.write_all(b"\n")?;
    Ok(())
}

/// A record as a line, without its end. Records can always be serialized.
pub(in crate::audit) fn line(record: &Record) -> Option<String> {
    serde_json::to_string(&encode(record)).ok()
}

fn encode(record: &Record) -> Line<'_> {
    match record {
        Record::Authorities(stated) => {
            Line::Authorities((&stated.statement).into(), BASE64.encode(stated.signature))
        }
        Record::Checkpoint(row) => Line::Checkpoint(
            row.number,
            (&row.note).into(),
            row.state.as_ref().map(|state| BASE64.encode(state)),
        ),
        Record::Key(key) => Line::Key(
            key.day,
            key.number,
            key.node,
            BASE64.encode(key.public_key),
            BASE64.encode(key.certificate),
        ),
        Record::Slot(slot) => Line::Slot(*slot),
        Record::Entry(slot, (entry, commit)) => Line::Entry(EntryLine(
            *slot,
            entry.created_at.as_microsecond(),
            entry.tenant_number,
            entry.actor_kind,
            entry.actor,
            entry.key,
            entry.entity,
            (&entry.entity_id).into(),
            entry.operation,
            entry.outcome,
            entry.origin.as_ref().map(Into::into),
            (&entry.trace_id).into(),
            entry.chain,
            entry.seq,
            commit.as_ref().map(|commit| BASE64.encode(commit)),
        )),
    }
}

/// Reads the records of an export.
pub fn read_records(input: impl BufRead) -> impl Iterator<Item = Result<Record, Error>> {
    let mut number = 0;
    let mut input = input;
    let mut line = String::new();
    std::iter::from_fn(move || {
        number += 1;
        line.clear();
        match input.read_line(&mut line) {
            Ok(0) => None,
            Ok(_) => Some(parse_record(&line).ok_or(Error::Malformed(number))),
            Err(error) => Some(Err(error.into())),
        }
    })
}

pub(super) fn parse_record(line: &str) -> Option<Record> {
    Some(match serde_json::from_str(line).ok()? {
        Line::Authorities(statement, signature) => Record::Authorities(StatedAuthorities {
            statement: statement.into_owned(),
            signature: BASE64.decode(signature).ok()?.try_into().ok()?,
        }),
        Line::Checkpoint(number, note, state) => Record::Checkpoint(CheckpointRow {
            number,
            note: note.into_owned(),
            state: match state {
                Some(state) => Some(BASE64.decode(state).ok()?),
                None => None,
            },
        }),
        Line::Key(day, number, node, public_key, certificate) => Record::Key(CertifiedKey {
            day,
            number,
            node,
            public_key: BASE64.decode(public_key).ok()?.try_into().ok()?,
            certificate: BASE64.decode(certificate).ok()?.try_into().ok()?,
        }),
        Line::Slot(slot) => Record::Slot(slot),
        Line::Entry(line) => parse_entry(line)?,
    })
}

fn parse_entry(line: EntryLine<'_>) -> Option<Record> {
    let created_at = Timestamp::from_microsecond(line.1).ok()?;
    let entry = ChainEntry {
        day: day_of(created_at),
        chain: line.12,
        seq: line.13,
        created_at,
        tenant_number: line.2,
        actor_kind: line.3,
        actor: line.4,
        key: line.5,
        entity: line.6,
        entity_id: line.7.into_owned(),
        operation: line.8,
        outcome: line.9,
        origin: line.10.map(std::borrow::Cow::into_owned),
        trace_id: line.11.into_owned(),
    };
    let commit = match line.14 {
        Some(commit) => Some(BASE64.decode(commit).ok()?),
        None => None,
    };
    Some(Record::Entry(line.0, (entry, commit)))
}
