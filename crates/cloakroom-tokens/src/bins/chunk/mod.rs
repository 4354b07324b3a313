//! Serialization of a compiled table into chunks that are stored, sent and verified one by one.

use cloakroom_core::keys::{ControlKey, Renewal, StoredMac};

use super::Error;
use super::record::AdditionalCard;
use super::table::{NO_RECORD, Record, SPACES, Space, Table, Texts};

/// Large enough to have few chunks, small enough for the statement timeout.
const CHUNK_BYTES: usize = 1024 * 1024;
/// Version of the encoding, in the first chunk; nodes reject unknown versions.
const FORMAT: u8 = 1;

// The first byte of a chunk is its kind; from `BOUNDARIES` on it also encodes the number of the space.
const HEAD: u8 = 0;
const TEXTS: u8 = 1;
const ADDITIONAL: u8 = 2;
const RECORDS: u8 = 3;
const BOUNDARIES: u8 = 4;

const RECORD_BYTES: usize = 22;
const BOUNDARY_BYTES: usize = 12;

/// Encodes a table into chunks, in the order in which they must be decoded.
pub(super) fn encode(table: &Table) -> impl Iterator<Item = Vec<u8>> {
    let mut head = vec![HEAD, FORMAT];
    head.extend(table.rows.to_le_bytes());
    let texts = pack(TEXTS, table.texts.iter(), |chunk, text| {
        write_text(chunk, text.as_bytes());
    });
    let additional = pack(ADDITIONAL, table.additional.iter(), |chunk, entries| {
        // Serializing a list of plain strings as JSON cannot fail.
        write_text(chunk, &serde_json::to_vec(entries).unwrap_or_default());
    });
    let records = pack(RECORDS, table.records.iter(), write_record);
    let boundaries = (BOUNDARIES..).zip(&table.spaces).flat_map(|(kind, space)| {
        pack(kind, space.iter(), |chunk, (start, record)| {
            chunk.extend(start.to_le_bytes());
            chunk.extend(record.to_le_bytes());
        })
    });
    std::iter::once(head)
        .chain(texts)
        .chain(additional)
        .chain(records)
        .chain(boundaries)
}

/// Packs items into chunks of one kind; no chunk if there are no items.
fn pack<T>(
    kind: u8,
    items: impl Iterator<Item = T>,
    write: impl Fn(&mut Vec<u8>, T),
) -> impl Iterator<Item = Vec<u8>> {
    let mut items = items.peekable();
    std::iter::from_fn(move || {
        items.peek()?;
        let mut chunk = vec![kind];
        while chunk.len() < CHUNK_BYTES
            && let Some(item) = items.next()
        {
            write(&mut chunk, item);
        }
        Some(chunk)
    })
}

fn write_text(chunk: &mut Vec<u8>, text: &[u8]) {
    let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
    chunk.extend(length.to_le_bytes());
    chunk.extend(text);
}

fn write_record(chunk: &mut Vec<u8>, record: &Record) {
    let references = [
        record.segment,
        record.issuer_name,
        record.product_code,
        record.additional,
    ];
    chunk.extend(references.into_iter().flat_map(u32::to_le_bytes));
    chunk.extend(record.country);
    chunk.extend([record.bin_length, record.brand, record.funding]);
    chunk.push(u8::from(record.needs_sca));
}

/// Decodes a table from its chunks.
#[derive(Default)]
pub(super) struct Decoder {
    texts: Texts,
    additional: Vec<Vec<AdditionalCard>>,
    records: Vec<Record>,
    spaces: [Space; SPACES],
    /// Set by the first chunk.
    rows: Option<u64>,
}

impl Decoder {
    pub(super) fn take(&mut self, chunk: &[u8]) -> Result<(), Error> {
        let (kind, rest) = chunk.split_first().ok_or(Error::Damaged)?;
        match *kind {
            HEAD => self.decode_head(rest),
            _ if self.rows.is_none() => Err(Error::Damaged),
            TEXTS => read_texts(rest, |text| {
                let text = std::str::from_utf8(text).map_err(|_| Error::Damaged)?;
                self.texts.push(text).map(|_| ()).ok_or(Error::Damaged)
            }),
            ADDITIONAL => read_texts(rest, |text| {
                let entries = serde_json::from_slice(text).map_err(|_| Error::Damaged)?;
                self.additional.push(entries);
                Ok(())
            }),
            RECORDS => {
                let (records, []) = rest.as_chunks::<RECORD_BYTES>() else {
                    return Err(Error::Damaged);
                };
                self.records.extend(records.iter().map(read_record));
                Ok(())
            }
            kind => self.decode_boundaries(usize::from(kind - BOUNDARIES), rest),
        }
    }

    fn decode_head(&mut self, rest: &[u8]) -> Result<(), Error> {
        let (format, rows) = rest.split_first().ok_or(Error::Damaged)?;
        let rows = rows.try_into().map_err(|_| Error::Damaged)?;
        if *format != FORMAT || self.rows.is_some() {
            return Err(Error::Damaged);
        }
        self.rows = Some(u64::from_le_bytes(rows));
        Ok(())
    }

    fn decode_boundaries(&mut self, space: usize, rest: &[u8]) -> Result<(), Error> {
        let (boundaries, []) = rest.as_chunks::<BOUNDARY_BYTES>() else {
            return Err(Error::Damaged);
        };
        let space = self.spaces.get_mut(space).ok_or(Error::Damaged)?;
        for [a, b, c, d, e, f, g, h, record @ ..] in boundaries {
            let start = u64::from_le_bytes([*a, *b, *c, *d, *e, *f, *g, *h]);
            if space.last().is_some_and(|(before, _)| start <= before) {
                return Err(Error::Damaged);
            }
            space.push(start, u32::from_le_bytes(*record));
        }
        Ok(())
    }

    /// Returns the table if all references in it are valid.
    pub(super) fn finish(self) -> Result<Table, Error> {
        let text_max = self.texts.len();
        let is_consistent = |record: &Record| {
            let texts = [record.segment, record.issuer_name, record.product_code];
            texts
                .iter()
                .all(|reference| *reference as usize <= text_max)
                && record.additional as usize <= self.additional.len()
        };
        let mut boundaries = self.spaces.iter().flat_map(Space::iter);
        let is_valid = |record| record == NO_RECORD || (record as usize) < self.records.len();
        if !self.records.iter().all(is_consistent)
            || !boundaries.all(|(_, record)| is_valid(record))
        {
            return Err(Error::Damaged);
        }
        drop(boundaries);
        let mut spaces = self.spaces;
        spaces.iter_mut().for_each(Space::index);
        Ok(Table {
            texts: self.texts,
            additional: self.additional,
            records: self.records,
            spaces,
            rows: self.rows.ok_or(Error::Damaged)?,
        })
    }
}

/// Calls `take` with each text of a chunk.
fn read_texts(
    mut rest: &[u8],
    mut take: impl FnMut(&[u8]) -> Result<(), Error>,
) -> Result<(), Error> {
    while !rest.is_empty() {
        let (length, after) = rest.split_first_chunk::<4>().ok_or(Error::Damaged)?;
        let length = u32::from_le_bytes(*length) as usize;
        let (text, after) = after.split_at_checked(length).ok_or(Error::Damaged)?;
        take(text)?;
        rest = after;
    }
    Ok(())
}

fn read_record(bytes: &[u8; RECORD_BYTES]) -> Record {
    let (references, [c1, c2, bin_length, brand, funding, sca]) = bytes.split_at(16) else {
        return Record::default();
    };
    let reference = |index: usize| {
        let bytes = references.as_chunks::<4>().0.get(index);
        bytes.map_or(0, |bytes| u32::from_le_bytes(*bytes))
    };
    Record {
        segment: reference(0),
        issuer_name: reference(1),
        product_code: reference(2),
        additional: reference(3),
        country: [*c1, *c2],
        bin_length: *bin_length,
        brand: *brand,
        funding: *funding,
        needs_sca: *sca != 0,
    }
}

/// Position of a chunk. The chunk's MAC covers it, so that chunks cannot be moved or omitted.
#[derive(Clone, Copy)]
pub(super) struct ChunkPosition {
    pub(super) version: i32,
    pub(super) position: i32,
}

impl ChunkPosition {
    /// Computes a MAC under the control key: SQL cannot change what nodes show about cards.
    pub(super) fn digest(self, control: &ControlKey, content: &[u8]) -> StoredMac {
        let [version, position] = self.parts();
        control.authenticate(CHUNK_MAC_DOMAIN, &[&version, &position, content])
    }

    pub(super) fn verifies(self, control: &ControlKey, content: &[u8], digest: &[u8]) -> bool {
        let [version, position] = self.parts();
        control.verifies(CHUNK_MAC_DOMAIN, &[&version, &position, content], digest)
    }

    /// Verifies a chunk, and computes its MAC again if a former version of the key made it.
    pub(super) fn renew(self, control: &ControlKey, content: &[u8], digest: &[u8]) -> Renewal {
        let [version, position] = self.parts();
        control.renew(CHUNK_MAC_DOMAIN, &[&version, &position, content], digest)
    }

    fn parts(self) -> [[u8; 4]; 2] {
        [self.version.to_be_bytes(), self.position.to_be_bytes()]
    }
}

const CHUNK_MAC_DOMAIN: &str = "bins.chunk.v1";

#[cfg(test)]
mod tests;
