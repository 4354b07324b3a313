//! The card ranges of one DS.

mod element;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::fault::{ErrorCode, Fault};
use crate::messages::{MessageKind, PRes};
use crate::version::{Announced, Span, Version, common_versions};
use element::ranges_of;

/// Digits of the longest card number. 19 digits fit into 64 bits.
const DIGITS_MAX: usize = 19;

/// A range of card numbers, and the capabilities of its ACS.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CardRange {
    /// The first number.
    pub start: String,
    /// The last number.
    pub end: String,
    pub acs: Span,
    pub directory_server: Span,
    /// Codes of [`crate::codes::AcsInformation`] or of the network, for the newest version.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub acs_information: Vec<String>,
    /// 3DS Method URL in the newest version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method_url: Option<String>,
    /// Capabilities by version. Only present in a 2.3.1 `PRes`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub acs_versions: Vec<AcsVersion>,
}

/// Capabilities of an ACS in one version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AcsVersion {
    pub version: Announced,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub acs_information: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method_url: Option<String>,
}

impl CardRange {
    /// The versions that the 3DS Server (`ours`), the DS and the ACS support, ascending.
    pub fn common_versions(&self, ours: &[Version]) -> Vec<Version> {
        let mut common = common_versions(ours, &self.directory_server, &self.acs);
        if !self.acs_versions.is_empty() {
            common.retain(|version| self.in_version(*version).is_some());
        }
        common
    }

    pub fn method_url_in(&self, version: Version) -> Option<&str> {
        let entry = self.in_version(version);
        entry.map_or(self.method_url.as_deref(), |entry| {
            entry.method_url.as_deref()
        })
    }

    pub fn acs_information_in(&self, version: Version) -> &[String] {
        let entry = self.in_version(version);
        entry.map_or(&self.acs_information, |entry| &entry.acs_information)
    }

    fn in_version(&self, version: Version) -> Option<&AcsVersion> {
        self.acs_versions
            .iter()
            .find(|entry| entry.version == version.into())
    }

    fn key(&self) -> u64 {
        padded(&self.start, '0').unwrap_or_default()
    }

    fn last(&self) -> u64 {
        padded(&self.end, '9').unwrap_or_default()
    }
}

/// The card ranges of one DS. Ranges do not overlap.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "StoredTable", from = "StoredTable")]
pub struct RangeTable {
    serial: Option<String>,
    /// Keyed by the first number.
    ranges: BTreeMap<u64, CardRange>,
}

/// The serialized form of a table.
#[derive(Serialize, Deserialize)]
struct StoredTable {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    serial: Option<String>,
    ranges: Vec<CardRange>,
}

impl From<StoredTable> for RangeTable {
    fn from(stored: StoredTable) -> Self {
        let ranges = stored.ranges.into_iter().map(|range| (range.key(), range));
        Self {
            serial: stored.serial,
            ranges: ranges.collect(),
        }
    }
}

impl From<RangeTable> for StoredTable {
    fn from(table: RangeTable) -> Self {
        Self {
            serial: table.serial,
            ranges: table.ranges.into_values().collect(),
        }
    }
}

impl RangeTable {
    /// Applies a `PRes`: all ranges (`is_full`, if the `PReq` had no serial number) or the changes.
    /// On an error the table is unchanged, and the next `PReq` should request all ranges.
    pub fn apply(&mut self, pres: &PRes, is_full: bool) -> Result<(), Fault> {
        let mut ranges = if is_full {
            BTreeMap::new()
        } else {
            self.ranges.clone()
        };
        for element in pres.card_range_data.iter().flatten() {
            let fault = |error: RangeError| error.fault(pres);
            for range in ranges_of(element, pres).map_err(fault)? {
                apply_action(&mut ranges, element.action_ind.as_deref(), range).map_err(fault)?;
            }
        }
        self.ranges = ranges;
        if is_full || pres.serial_num.is_some() {
            self.serial.clone_from(&pres.serial_num);
        }
        Ok(())
    }

    /// The serial number for the next `PReq`, to get only the changes.
    pub fn serial(&self) -> Option<&str> {
        self.serial.as_deref()
    }

    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Ranges in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = &CardRange> {
        self.ranges.values()
    }

    /// The range of a card number. Numbers of different lengths are compared left-aligned.
    pub fn find(&self, card_number: &str) -> Option<&CardRange> {
        let number = padded(card_number, '0')?;
        let (_, nearest) = self.ranges.range(..=number).next_back()?;
        (number <= nearest.last()).then_some(nearest)
    }
}

/// Why a `PRes` cannot be applied.
enum RangeError {
    /// A range is malformed.
    Format(&'static str),
    Overlap,
    Action,
}

impl RangeError {
    /// Versions before 2.3.1 have no error codes for card ranges.
    fn fault(self, pres: &PRes) -> Fault {
        let has_range_codes = pres.message_version >= Version::V2_3_1;
        let (code, detail) = match self {
            Self::Format(detail) => (ErrorCode::FormatInvalid, detail),
            Self::Overlap if has_range_codes => (ErrorCode::RangesOverlap, "cardRangeData"),
            Self::Action if has_range_codes => {
                (ErrorCode::ActionNotPossible, "cardRangeData.actionInd")
            }
            Self::Overlap => (ErrorCode::FormatInvalid, "cardRangeData"),
            Self::Action => (ErrorCode::FormatInvalid, "cardRangeData.actionInd"),
        };
        Fault::new(code, detail).about(MessageKind::PRes, pres.ids())
    }
}

fn apply_action(
    ranges: &mut BTreeMap<u64, CardRange>,
    action: Option<&str>,
    range: CardRange,
) -> Result<(), RangeError> {
    let key = range.key();
    let same = |known: &CardRange| known.start == range.start && known.end == range.end;
    let exists = ranges.get(&key).is_some_and(same);
    match action {
        None | Some("A") => {
            let before = ranges.range(..=range.last()).next_back();
            if before.is_some_and(|(_, before)| before.last() >= key) {
                return Err(RangeError::Overlap);
            }
            ranges.insert(key, range);
        }
        Some("M") if exists => {
            ranges.insert(key, range);
        }
        Some("D") if exists => {
            ranges.remove(&key);
        }
        _ => return Err(RangeError::Action),
    }
    Ok(())
}

/// The number padded to 19 digits with `fill`.
fn padded(digits: &str, fill: char) -> Option<u64> {
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    if digits.is_empty() || digits.len() > DIGITS_MAX || !is_number {
        return None;
    }
    let filled = digits.chars().chain(std::iter::repeat(fill));
    filled.take(DIGITS_MAX).collect::<String>().parse().ok()
}
