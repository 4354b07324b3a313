//! A compiled table as bytes, in chunks that can be kept, sent and checked one by one.

use super::Error;
use super::record::AdditionalCard;
use super::table::{NO_RECORD, Record, SPACES, Space, Table, Texts};
use crate::keys::ControlKey;

/// Large enough to be few, small enough for the deadline of one statement.
const CHUNK_BYTES: usize = 1024 * 1024;
/// The first chunk says how the others are written; a node refuses what it cannot read.
const FORMAT: u8 = 1;

// What a chunk holds is its first byte; from `BOUNDARIES` on it is the number of the space, too.
const HEAD: u8 = 0;
const TEXTS: u8 = 1;
const ADDITIONAL: u8 = 2;
const RECORDS: u8 = 3;
const BOUNDARIES: u8 = 4;

const RECORD_BYTES: usize = 22;
const BOUNDARY_BYTES: usize = 12;

/// The table's chunks, in the order in which they must be read again.
pub(super) fn encode(table: &Table) -> impl Iterator<Item = Vec<u8>> {
    let mut head = vec![HEAD, FORMAT];
    head.extend(table.rows.to_le_bytes());
    let texts = pack(TEXTS, table.texts.iter(), |chunk, text| {
        write_text(chunk, text.as_bytes());
    });
    let additional = pack(ADDITIONAL, table.additional.iter(), |chunk, entries| {
        // Plain texts in a list: there is nothing in it that could not be written as JSON.
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

/// Writes items into chunks of one kind; no chunk when there are no items.
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
    let places = [
        record.segment,
        record.issuer_name,
        record.product_code,
        record.additional,
    ];
    chunk.extend(places.into_iter().flat_map(u32::to_le_bytes));
    chunk.extend(record.country);
    chunk.extend([record.bin_length, record.brand, record.funding]);
    chunk.push(u8::from(record.needs_sca));
}

/// A table that is being put together from its chunks.
#[derive(Default)]
pub(super) struct Decoder {
    texts: Texts,
    additional: Vec<Vec<AdditionalCard>>,
    records: Vec<Record>,
    spaces: [Space; SPACES],
    /// Known once the first chunk was read.
    rows: Option<u64>,
}

impl Decoder {
    pub(super) fn take(&mut self, chunk: &[u8]) -> Result<(), Error> {
        let (kind, rest) = chunk.split_first().ok_or(Error::Damaged)?;
        match *kind {
            HEAD => self.take_head(rest),
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
            kind => self.take_boundaries(usize::from(kind - BOUNDARIES), rest),
        }
    }

    fn take_head(&mut self, rest: &[u8]) -> Result<(), Error> {
        let (format, rows) = rest.split_first().ok_or(Error::Damaged)?;
        let rows = rows.try_into().map_err(|_| Error::Damaged)?;
        if *format != FORMAT || self.rows.is_some() {
            return Err(Error::Damaged);
        }
        self.rows = Some(u64::from_le_bytes(rows));
        Ok(())
    }

    fn take_boundaries(&mut self, space: usize, rest: &[u8]) -> Result<(), Error> {
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

    /// The table, if every part that it points at is there.
    pub(super) fn finish(self) -> Result<Table, Error> {
        let text_max = self.texts.len();
        let is_sound = |record: &Record| {
            let texts = [record.segment, record.issuer_name, record.product_code];
            texts.iter().all(|place| *place as usize <= text_max)
                && record.additional as usize <= self.additional.len()
        };
        let mut boundaries = self.spaces.iter().flat_map(Space::iter);
        let leads = |record| record == NO_RECORD || (record as usize) < self.records.len();
        if !self.records.iter().all(is_sound) || !boundaries.all(|(_, record)| leads(record)) {
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

/// Gives out each text of a chunk.
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
    let (places, [c1, c2, bin_length, brand, funding, sca]) = bytes.split_at(16) else {
        return Record::default();
    };
    let place = |index: usize| {
        let bytes = places.as_chunks::<4>().0.get(index);
        bytes.map_or(0, |bytes| u32::from_le_bytes(*bytes))
    };
    Record {
        segment: place(0),
        issuer_name: place(1),
        product_code: place(2),
        additional: place(3),
        country: [*c1, *c2],
        bin_length: *bin_length,
        brand: *brand,
        funding: *funding,
        needs_sca: *sca != 0,
    }
}

/// Where a chunk belongs; its digest covers this, so that none can be moved or left out.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) version: i32,
    pub(super) position: i32,
}

impl Place {
    /// A digest under the control key: what nodes show about cards cannot be changed by SQL.
    pub(super) fn digest(self, control: &ControlKey, content: &[u8]) -> [u8; 32] {
        let [version, position] = self.parts();
        control.authenticate(CHUNK, &[&version, &position, content])
    }

    pub(super) fn verifies(self, control: &ControlKey, content: &[u8], digest: &[u8]) -> bool {
        let [version, position] = self.parts();
        control.verifies(CHUNK, &[&version, &position, content], digest)
    }

    fn parts(self) -> [[u8; 4]; 2] {
        [self.version.to_be_bytes(), self.position.to_be_bytes()]
    }
}

const CHUNK: &str = "bins.chunk.v1";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bins::read::tests::{SAMPLE, table_of_csv};

    fn decode(chunks: &[Vec<u8>]) -> Result<Table, Error> {
        let mut decoder = Decoder::default();
        for chunk in chunks {
            decoder.take(chunk)?;
        }
        decoder.finish()
    }

    #[test]
    fn a_table_comes_back_from_its_chunks() {
        let mut csv = "low,high,issuer_name\n".to_owned();
        for n in 0..60_000_u64 {
            csv.push_str(&format!("{0},{0},Bank {1}\n", 400_000_000 + n * 2, n / 3));
        }
        for text in [SAMPLE, csv.as_str()] {
            let table = table_of_csv(text);

            let chunks: Vec<_> = encode(&table).collect();

            assert!(chunks.iter().all(|chunk| chunk.len() < CHUNK_BYTES + 1024));
            assert_eq!(decode(&chunks).unwrap(), table);
        }
    }

    #[test]
    fn damaged_chunks_are_noticed_and_never_panic() {
        let table = table_of_csv(SAMPLE);
        let chunks: Vec<_> = encode(&table).collect();

        let without = |index: usize| {
            let mut chunks = chunks.clone();
            chunks.remove(index);
            chunks
        };
        // Without its boundaries a table is smaller but sound: its digests tell.
        for index in 0..4 {
            assert!(
                matches!(decode(&without(index)), Err(Error::Damaged)),
                "{index}"
            );
        }
        let planted: [&[u8]; 7] = [
            &[],
            &[200],
            &[HEAD, FORMAT, 0, 0, 0, 0, 0, 0, 0, 0],
            &[TEXTS, 255, 0, 0, 0, 1],
            &[ADDITIONAL, 1, 0, 0, 0, b'{'],
            &[RECORDS, 1, 2, 3],
            &[BOUNDARIES, 1],
        ];
        for chunk in planted {
            let mut chunks = chunks.clone();
            chunks.push(chunk.to_vec());
            assert!(matches!(decode(&chunks), Err(Error::Damaged)), "{chunk:?}");
        }
        for head in [
            &[HEAD, FORMAT][..],
            &[HEAD, FORMAT + 1, 0, 0, 0, 0, 0, 0, 0, 0],
        ] {
            let mut chunks = chunks.clone();
            chunks[0] = head.to_vec();
            assert!(matches!(decode(&chunks), Err(Error::Damaged)), "{head:?}");
        }
        for (number, chunk) in chunks.iter().enumerate() {
            for length in 0..chunk.len() {
                let mut chunks = chunks.clone();
                chunks[number].truncate(length);
                let _ = decode(&chunks);
            }
        }
    }
}
