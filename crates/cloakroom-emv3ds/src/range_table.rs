//! The card ranges of one directory server.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::fault::{ErrorCode, Fault};
use crate::messages::{CardRangeData, MessageKind, PRes};
use crate::version::{Announced, Span, Version, common_versions};

/// Digits of the longest card number. A number of so many digits fits into 64 bits.
const DIGITS_MAX: usize = 19;

/// A range of card numbers, and what can be done with them.
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
    /// Where browsers of this range's cards go first, if anywhere, in the newest version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method_url: Option<String>,
    /// What differs by version. Only directory servers that speak 2.3.1 tell that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub acs_versions: Vec<AcsVersion>,
}

/// What an access control server can do in one version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AcsVersion {
    pub version: Announced,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub acs_information: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method_url: Option<String>,
}

impl CardRange {
    /// What we, the directory server and the access control server all speak, ascending.
    pub fn common_versions(&self, ours: &[Version]) -> Vec<Version> {
        let mut common = common_versions(ours, &self.directory_server, &self.acs);
        if !self.acs_versions.is_empty() {
            common.retain(|version| self.in_version(*version).is_some());
        }
        common
    }

    pub fn method_url_in(&self, version: Version) -> Option<&str> {
        let told = self.in_version(version);
        told.map_or(self.method_url.as_deref(), |told| {
            told.method_url.as_deref()
        })
    }

    pub fn acs_information_in(&self, version: Version) -> &[String] {
        let told = self.in_version(version);
        told.map_or(&self.acs_information, |told| &told.acs_information)
    }

    fn in_version(&self, version: Version) -> Option<&AcsVersion> {
        self.acs_versions
            .iter()
            .find(|told| told.version == version.into())
    }

    fn key(&self) -> u64 {
        aligned(&self.start, '0').unwrap_or_default()
    }

    fn last(&self) -> u64 {
        aligned(&self.end, '9').unwrap_or_default()
    }
}

/// All card ranges of one directory server, none of which overlap.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "Kept", from = "Kept")]
pub struct RangeTable {
    serial: Option<String>,
    /// By their first number.
    ranges: BTreeMap<u64, CardRange>,
}

/// A table as it is kept.
#[derive(Serialize, Deserialize)]
struct Kept {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    serial: Option<String>,
    ranges: Vec<CardRange>,
}

impl From<Kept> for RangeTable {
    fn from(kept: Kept) -> Self {
        let ranges = kept.ranges.into_iter().map(|range| (range.key(), range));
        Self {
            serial: kept.serial,
            ranges: ranges.collect(),
        }
    }
}

impl From<RangeTable> for Kept {
    fn from(table: RangeTable) -> Self {
        Self {
            serial: table.serial,
            ranges: table.ranges.into_values().collect(),
        }
    }
}

impl RangeTable {
    /// Takes over what a directory server answered: everything (`is_full`, if no serial number was
    /// sent) or the changes. If it does not fit, the table stays as it is, and the next request
    /// should ask for everything.
    pub fn apply(&mut self, answer: &PRes, is_full: bool) -> Result<(), Fault> {
        let mut ranges = if is_full {
            BTreeMap::new()
        } else {
            self.ranges.clone()
        };
        for element in answer.card_range_data.iter().flatten() {
            let change = |misfit: Misfit| misfit.fault(answer);
            for range in ranges_of(element, answer).map_err(change)? {
                act(&mut ranges, element.action_ind.as_deref(), range).map_err(change)?;
            }
        }
        self.ranges = ranges;
        if is_full || answer.serial_num.is_some() {
            self.serial.clone_from(&answer.serial_num);
        }
        Ok(())
    }

    /// What to send with the next request, to get only the changes.
    pub fn serial(&self) -> Option<&str> {
        self.serial.as_deref()
    }

    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Ascending.
    pub fn iter(&self) -> impl Iterator<Item = &CardRange> {
        self.ranges.values()
    }

    /// The range of a card number. Ranges and number are aligned to the left.
    pub fn find(&self, card_number: &str) -> Option<&CardRange> {
        let number = aligned(card_number, '0')?;
        let (_, nearest) = self.ranges.range(..=number).next_back()?;
        (number <= nearest.last()).then_some(nearest)
    }
}

/// Why an answer does not fit the table.
enum Misfit {
    /// A range is not one.
    Format(&'static str),
    Overlap,
    Action,
}

impl Misfit {
    /// Versions before 2.3.1 have no codes of their own for ranges.
    fn fault(self, answer: &PRes) -> Fault {
        let own = answer.message_version >= Version::V2_3_1;
        let (code, detail) = match self {
            Self::Format(detail) => (ErrorCode::FormatInvalid, detail),
            Self::Overlap if own => (ErrorCode::RangesOverlap, "cardRangeData"),
            Self::Action if own => (ErrorCode::ActionNotPossible, "cardRangeData.actionInd"),
            Self::Overlap => (ErrorCode::FormatInvalid, "cardRangeData"),
            Self::Action => (ErrorCode::FormatInvalid, "cardRangeData.actionInd"),
        };
        Fault::new(code, detail).about(MessageKind::PRes, answer.ids())
    }
}

fn act(
    ranges: &mut BTreeMap<u64, CardRange>,
    action: Option<&str>,
    range: CardRange,
) -> Result<(), Misfit> {
    let key = range.key();
    let same = |known: &CardRange| known.start == range.start && known.end == range.end;
    let is_there = ranges.get(&key).is_some_and(same);
    match action {
        None | Some("A") => {
            let before = ranges.range(..=range.last()).next_back();
            if before.is_some_and(|(_, before)| before.last() >= key) {
                return Err(Misfit::Overlap);
            }
            ranges.insert(key, range);
        }
        Some("M") if is_there => {
            ranges.insert(key, range);
        }
        Some("D") if is_there => {
            ranges.remove(&key);
        }
        _ => return Err(Misfit::Action),
    }
    Ok(())
}

/// The number with nineteen digits, the missing ones filled.
fn aligned(digits: &str, filling: char) -> Option<u64> {
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    if digits.is_empty() || digits.len() > DIGITS_MAX || !is_number {
        return None;
    }
    let filled = digits.chars().chain(std::iter::repeat(filling));
    filled.take(DIGITS_MAX).collect::<String>().parse().ok()
}

/// The ranges of an element: one until 2.2.0, several from 2.3.1.
fn ranges_of(element: &CardRangeData, answer: &PRes) -> Result<Vec<CardRange>, Misfit> {
    let one = element.start_range.as_ref().zip(element.end_range.as_ref());
    let several = element.ranges.iter().flatten();
    let bounds = several
        .map(|range| (&range.start_range, &range.end_range))
        .chain(one);
    let acs_versions = acs_versions(element);
    let acs = acs_span(element, &acs_versions)?;
    let directory_server = directory_server_span(element, answer)?;
    let newest = acs_versions.iter().max_by_key(|told| told.version);
    let (acs_information, method_url) = match newest {
        Some(newest) => (newest.acs_information.clone(), newest.method_url.clone()),
        None => (
            element.acs_info_ind.clone().unwrap_or_default(),
            element.threeds_method_url.clone(),
        ),
    };
    let range = |(start, end): (&String, &String)| {
        if !is_range(start, end) {
            return Err(Misfit::Format("cardRangeData.endRange"));
        }
        Ok(CardRange {
            start: start.clone(),
            end: end.clone(),
            acs,
            directory_server,
            acs_information: acs_information.clone(),
            method_url: method_url.clone(),
            acs_versions: acs_versions.clone(),
        })
    };
    bounds.map(range).collect()
}

fn is_range(start: &str, end: &str) -> bool {
    let numbers = aligned(start, '0').zip(aligned(end, '9'));
    start.len() == end.len() && numbers.is_some_and(|(start, end)| start <= end)
}

fn acs_versions(element: &CardRangeData) -> Vec<AcsVersion> {
    let told = element.acs_protocol_versions.iter().flatten();
    let version = told.map(|told| AcsVersion {
        version: told.version,
        acs_information: told.acs_info_ind.clone().unwrap_or_default(),
        method_url: told.threeds_method_url.clone(),
    });
    version.collect()
}

fn acs_span(element: &CardRangeData, versions: &[AcsVersion]) -> Result<Span, Misfit> {
    let told = element
        .acs_start_protocol_version
        .zip(element.acs_end_protocol_version);
    let listed = around(versions.iter().map(|told| told.version));
    let span = told.map(|(start, end)| Span { start, end }).or(listed);
    span.ok_or(Misfit::Format("cardRangeData.acsStartProtocolVersion"))
}

/// That of the range, else that of the whole answer.
fn directory_server_span(element: &CardRangeData, answer: &PRes) -> Result<Span, Misfit> {
    let start = element
        .ds_start_protocol_version
        .or(answer.ds_start_protocol_version);
    let end = element
        .ds_end_protocol_version
        .or(answer.ds_end_protocol_version);
    let listed = element
        .ds_protocol_versions
        .as_ref()
        .or(answer.ds_protocol_versions.as_ref());
    let listed = || around(listed?.iter().copied());
    let span = start
        .zip(end)
        .map(|(start, end)| Span { start, end })
        .or_else(listed);
    span.ok_or(Misfit::Format("dsStartProtocolVersion"))
}

fn around(versions: impl Iterator<Item = Announced> + Clone) -> Option<Span> {
    let (start, end) = versions.clone().min().zip(versions.max())?;
    Some(Span { start, end })
}
