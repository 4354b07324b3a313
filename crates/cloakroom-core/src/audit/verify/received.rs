//! Reads what a sink has received: the records of an export, in the order of their arrival and some of them more than once.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::FileExt as _;

use super::export::{Error, Record, parse_record};
use crate::audit::chains::day::{day_of, slot_of};
use crate::audit::checkpoints::note::time_of;

const BUFFER_BYTES: usize = 1024 * 1024;

/// The kinds of records of a day, in the order of an export.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Checkpoint,
    Key,
    Entry,
}

/// Where a record is in the file, and in an export.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    day: i32,
    part: Part,
    /// A checkpoint, a key or a chain.
    number: i64,
    seq: i32,
    offset: u64,
    length: usize,
}

/// Sorts the records of a file like an export. Memory is needed for the place of each record, not for its text.
///
/// A line is what follows the first brace, so that the prefix of a syslog server does no harm. Lines that are no records, such
/// as one that a crash cut off, and records after the last checkpoint are ignored: what they were is missing, or follows.
pub fn read_received(file: &File) -> Result<impl Iterator<Item = Result<Record, Error>>, Error> {
    let places = find_places(file)?;
    let mut places = places.into_iter().peekable();
    let mut last = String::new();
    // The day whose entries were announced.
    let mut announced = None;
    Ok(std::iter::from_fn(move || {
        loop {
            let place = places.peek()?;
            if place.part == Part::Entry && announced != Some(place.day) {
                announced = Some(place.day);
                return Some(Ok(Record::Slot(slot_of(place.day))));
            }
            let place = places.next()?;
            let text = match read_line(file, &place) {
                Ok(text) => text,
                Err(error) => return Some(Err(error)),
            };
            if text == last {
                continue;
            }
            let record = parse_record(&text).ok_or(Error::Malformed(place.offset));
            last = text;
            return Some(record);
        }
    }))
}

fn read_line(file: &File, place: &Place) -> Result<String, Error> {
    let mut bytes = vec![0; place.length];
    file.read_exact_at(&mut bytes, place.offset)?;
    String::from_utf8(bytes).map_err(|_| Error::Malformed(place.offset))
}

/// The places of all records up to the last checkpoint, sorted.
fn find_places(file: &File) -> Result<Vec<Place>, Error> {
    let mut places = Vec::new();
    let mut input = BufReader::with_capacity(BUFFER_BYTES, file);
    let (mut offset, mut line, mut end) = (0, Vec::new(), 0);
    loop {
        line.clear();
        let length = input.read_until(b'\n', &mut line)?;
        if length == 0 {
            break;
        }
        let start = line.iter().position(|byte| *byte == b'{').unwrap_or(0);
        let text = std::str::from_utf8(&line[start..]).unwrap_or_default();
        let text = text.trim_end();
        if let Some(place) = place(text, offset + start as u64) {
            let is_checkpoint = place.part == Part::Checkpoint;
            places.push(place);
            end = if is_checkpoint { places.len() } else { end };
        }
        offset += length as u64;
    }
    places.truncate(end);
    order_checkpoints(&mut places);
    places.sort_unstable();
    Ok(places)
}

fn place(text: &str, offset: u64) -> Option<Place> {
    let (day, part, number, seq) = match parse_record(text)? {
        // It belongs before the entries of the preceding day, some of which it states.
        Record::Checkpoint(row) => {
            let day = day_of(time_of(&row.note)?) - 1;
            (day, Part::Checkpoint, row.number, 0)
        }
        Record::Key(key) => (key.day, Part::Key, i64::from(key.number), 0),
        Record::Entry(_, (entry, _)) => (entry.day, Part::Entry, i64::from(entry.chain), entry.seq),
        Record::Slot(_) | Record::Authorities(_) => return None,
    };
    Some(Place {
        day,
        part,
        number,
        seq,
        offset,
        length: text.len(),
    })
}

/// Around midnight a checkpoint can be from the day before that of its predecessor. Their numbers decide.
fn order_checkpoints(places: &mut [Place]) {
    let mut checkpoints: Vec<&mut Place> = places
        .iter_mut()
        .filter(|place| place.part == Part::Checkpoint)
        .collect();
    checkpoints.sort_unstable_by_key(|place| place.number);
    let mut day = i32::MAX;
    for place in checkpoints.into_iter().rev() {
        day = day.min(place.day);
        place.day = day;
    }
}
