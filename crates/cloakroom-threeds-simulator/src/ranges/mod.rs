//! The card ranges of one DS, and their changes by serial number.

mod element;
mod initial;

use std::collections::VecDeque;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Deserialize;
use serde_json::Value;

pub(crate) use element::RangeEncoder;

/// Changes to retain; a 3DS Server with an older serial number must download all ranges.
const CHANGES_MAX: usize = 200;
/// Numbers are padded to this many digits for comparison.
const DIGITS: usize = 19;

/// Card numbers with the same ACS versions and 3DS Method.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Range {
    first: u64,
    last: u64,
    pub(crate) acs_start: String,
    pub(crate) acs_end: String,
    pub(crate) method: Method,
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Method {
    #[serde(rename = "answers")]
    Completes,
    Absent,
    /// The page loads and never notifies the 3DS Server.
    Silent,
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Action {
    Add,
    Delete,
    Modify,
}

#[derive(Clone, Debug)]
struct Change {
    action: Action,
    range: Range,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum RangeError {
    #[error(
        "the first and last number must have the same length of 13 to 19 digits and be in ascending order"
    )]
    Numbers,
    #[error("the range overlaps an existing range")]
    Overlap,
    #[error("the range does not exist")]
    Unknown,
}

/// The response to a PReq.
pub(crate) enum Download {
    Elements {
        serial: String,
        elements: Vec<Value>,
    },
    UnknownSerial,
}

pub(crate) struct Ranges {
    current: Vec<Range>,
    /// Prefix of serial numbers, unique per run, because URLs differ between runs.
    epoch: u64,
    serial: u64,
    changes: VecDeque<(u64, Vec<Change>)>,
}

impl Range {
    pub(crate) fn new(first: &str, last: &str) -> Result<Self, RangeError> {
        let is_valid = |text: &str| {
            (13..=DIGITS).contains(&text.len()) && text.bytes().all(|digit| digit.is_ascii_digit())
        };
        if !is_valid(first) || !is_valid(last) || first.len() != last.len() || first > last {
            return Err(RangeError::Numbers);
        }
        Ok(Self {
            first: padded(first, '0').ok_or(RangeError::Numbers)?,
            last: padded(last, '9').ok_or(RangeError::Numbers)?,
            acs_start: "2.1.0".to_owned(),
            acs_end: "2.3.1".to_owned(),
            method: Method::Completes,
        })
    }

    fn overlaps(&self, other: &Self) -> bool {
        self.first <= other.last && other.first <= self.last
    }

    fn is_same(&self, other: &Self) -> bool {
        (self.first, self.last) == (other.first, other.last)
    }

    /// First and last number without trailing digits that are 0 and 9.
    fn numbers(&self) -> (String, String) {
        let mut first = format!("{:0>DIGITS$}", self.first);
        let mut last = format!("{:0>DIGITS$}", self.last);
        while first.len() > 13 && first.ends_with('0') && last.ends_with('9') {
            first.pop();
            last.pop();
        }
        (first, last)
    }

    pub(crate) fn supports(&self, version: &str) -> bool {
        self.acs_start.as_str() <= version && version <= self.acs_end.as_str()
    }
}

impl Ranges {
    pub(crate) fn of(network: &str) -> Self {
        let epoch = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_millis());
        Self {
            current: initial::ranges(network),
            epoch: u64::try_from(epoch).unwrap_or(0),
            serial: 1,
            changes: VecDeque::new(),
        }
    }

    pub(crate) fn serial(&self) -> String {
        format!("{}{:06}", self.epoch, self.serial)
    }

    pub(crate) fn len(&self) -> usize {
        self.current.len()
    }

    pub(crate) fn find(&self, number: &str) -> Option<&Range> {
        let value = padded(number, '0')?;
        let at = self.current.partition_point(|range| range.last < value);
        self.current.get(at).filter(|range| range.first <= value)
    }

    /// All ranges, or the changes since `serial`.
    pub(crate) fn download(&self, serial: Option<&str>, encoder: &RangeEncoder<'_>) -> Download {
        let elements = match serial {
            None => self
                .current
                .iter()
                .flat_map(|range| encoder.elements(Action::Add, range))
                .collect(),
            Some(serial) => match self.changes_since(serial) {
                None => return Download::UnknownSerial,
                Some(changes) => changes
                    .flat_map(|change| encoder.elements(change.action, &change.range))
                    .collect(),
            },
        };
        Download::Elements {
            serial: self.serial(),
            elements,
        }
    }

    fn changes_since(&self, serial: &str) -> Option<impl Iterator<Item = &Change>> {
        let since: u64 = serial.strip_prefix(&self.epoch.to_string())?.parse().ok()?;
        let oldest = self.serial - u64::try_from(self.changes.len()).unwrap_or(self.serial);
        if since < oldest || since > self.serial {
            return None;
        }
        let newer = self.changes.iter().filter(move |(at, _)| *at > since);
        Some(newer.flat_map(|(_, changes)| changes))
    }

    /// Changes a range and increments the serial number.
    pub(crate) fn change(&mut self, action: Action, range: Range) -> Result<(), RangeError> {
        let same = self.current.iter().position(|known| known.is_same(&range));
        match (action, same) {
            (Action::Add, _) => {
                if self.current.iter().any(|known| known.overlaps(&range)) {
                    return Err(RangeError::Overlap);
                }
                self.current.push(range.clone());
                self.current.sort_by_key(|known| known.first);
            }
            (Action::Delete, Some(at)) => {
                self.current.remove(at);
            }
            (Action::Modify, Some(at)) => {
                if let Some(known) = self.current.get_mut(at) {
                    known.clone_from(&range);
                }
            }
            (_, None) => return Err(RangeError::Unknown),
        }
        self.announce(vec![Change { action, range }]);
        Ok(())
    }

    /// Announces an invalid change without applying it.
    pub(crate) fn announce_invalid(&mut self, action: Action, range: Range) {
        self.announce(vec![Change { action, range }]);
    }

    /// Increments the serial number without a change.
    pub(crate) fn bump(&mut self) {
        self.announce(Vec::new());
    }

    /// Makes all earlier serial numbers invalid.
    pub(crate) fn invalidate_serials(&mut self) {
        self.changes.clear();
        self.serial += 1;
    }

    fn announce(&mut self, changes: Vec<Change>) {
        self.serial += 1;
        self.changes.push_back((self.serial, changes));
        if self.changes.len() > CHANGES_MAX {
            self.changes.pop_front();
        }
    }
}

fn padded(number: &str, with: char) -> Option<u64> {
    if number.len() > DIGITS || !number.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let mut text = number.to_owned();
    while text.len() < DIGITS {
        text.push(with);
    }
    text.parse().ok()
}

#[cfg(test)]
mod tests;
