//! Converts elements of `cardRangeData` to card ranges.

use super::{AcsVersion, CardRange, RangeError, padded};
use crate::messages::{CardRangeData, PRes};
use crate::version::{Announced, Span};

/// The ranges of an element: one until 2.2.0, several from 2.3.1.
pub(super) fn ranges_of(
    element: &CardRangeData,
    pres: &PRes,
) -> Result<Vec<CardRange>, RangeError> {
    let one = element.start_range.as_ref().zip(element.end_range.as_ref());
    let several = element.ranges.iter().flatten();
    let bounds = several
        .map(|range| (&range.start_range, &range.end_range))
        .chain(one);
    let acs_versions = acs_versions(element);
    let acs = acs_span(element, &acs_versions)?;
    let directory_server = directory_server_span(element, pres)?;
    let newest = acs_versions.iter().max_by_key(|entry| entry.version);
    let (acs_information, method_url) = match newest {
        Some(newest) => (newest.acs_information.clone(), newest.method_url.clone()),
        None => (
            element.acs_info_ind.clone().unwrap_or_default(),
            element.threeds_method_url.clone(),
        ),
    };
    let range = |(start, end): (&String, &String)| {
        if !is_range(start, end) {
            return Err(RangeError::Format("cardRangeData.endRange"));
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
    let numbers = padded(start, '0').zip(padded(end, '9'));
    start.len() == end.len() && numbers.is_some_and(|(start, end)| start <= end)
}

fn acs_versions(element: &CardRangeData) -> Vec<AcsVersion> {
    let entries = element.acs_protocol_versions.iter().flatten();
    let versions = entries.map(|entry| AcsVersion {
        version: entry.version,
        acs_information: entry.acs_info_ind.clone().unwrap_or_default(),
        method_url: entry.threeds_method_url.clone(),
    });
    versions.collect()
}

fn acs_span(element: &CardRangeData, versions: &[AcsVersion]) -> Result<Span, RangeError> {
    let bounds = element
        .acs_start_protocol_version
        .zip(element.acs_end_protocol_version);
    let listed = enclosing_span(versions.iter().map(|entry| entry.version));
    let span = bounds.map(|(start, end)| Span { start, end }).or(listed);
    span.ok_or(RangeError::Format("cardRangeData.acsStartProtocolVersion"))
}

/// The DS versions of the range, or else those of the whole `PRes`.
fn directory_server_span(element: &CardRangeData, pres: &PRes) -> Result<Span, RangeError> {
    let start = element
        .ds_start_protocol_version
        .or(pres.ds_start_protocol_version);
    let end = element
        .ds_end_protocol_version
        .or(pres.ds_end_protocol_version);
    let listed = element
        .ds_protocol_versions
        .as_ref()
        .or(pres.ds_protocol_versions.as_ref());
    let listed = || enclosing_span(listed?.iter().copied());
    let span = start
        .zip(end)
        .map(|(start, end)| Span { start, end })
        .or_else(listed);
    span.ok_or(RangeError::Format("dsStartProtocolVersion"))
}

fn enclosing_span(versions: impl Iterator<Item = Announced> + Clone) -> Option<Span> {
    let (start, end) = versions.clone().min().zip(versions.max())?;
    Some(Span { start, end })
}
