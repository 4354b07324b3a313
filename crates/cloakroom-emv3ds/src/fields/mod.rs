//! One table per message: which fields there are, in which versions and channels, what their values
//! look like, and when they must be there.

mod areq;
mod areq_channels;
mod areq_purchase;
mod ares;
mod check;
mod condition;
mod field;
mod format;
mod others;
mod ranges;

use crate::codes::DeviceChannel;
use crate::messages::MessageKind;
use crate::version::Version;

pub(crate) use check::{Findings, Strictness, check, known_path};
pub(crate) use condition::Facts;
pub use condition::{Condition, Rule};
pub(crate) use field::Constraint;
pub use field::{Channels, Field, Inclusion};
pub use format::Format;
pub(crate) use format::is_uuid;

/// The rows of a message, in the order of the tables. A path has several rows if its format or
/// inclusion depends on the version or channel; for one version and channel there is at most one.
pub fn fields(kind: MessageKind) -> impl Iterator<Item = &'static Field> {
    tables(kind).iter().copied().flatten()
}

/// The row of a path. Of several, the one of 2.2.0, which is what is mostly spoken; [`field_of`]
/// finds the one of a version and channel.
pub fn field(kind: MessageKind, path: &str) -> Option<&'static Field> {
    let rows = || fields(kind).filter(|row| row.path == path);
    let common = |row: &&Field| row.since <= Version::V2_2_0 && Version::V2_2_0 <= row.until;
    rows().find(common).or_else(|| rows().next())
}

/// The row of a path in a version and, for an `AReq`, on a channel.
pub fn field_of(
    kind: MessageKind,
    path: &str,
    version: Version,
    channel: Option<DeviceChannel>,
) -> Option<&'static Field> {
    fields(kind).find(|row| row.path == path && row.applies(version, channel))
}

fn tables(kind: MessageKind) -> &'static [&'static [Field]] {
    match kind {
        MessageKind::PReq => &[ranges::PREQ, others::EXTENSION],
        MessageKind::PRes => &[ranges::PRES, others::EXTENSION],
        MessageKind::AReq => &[
            areq::ENVELOPE,
            areq::MERCHANT,
            areq::CARDHOLDER,
            areq_channels::BROWSER,
            areq_channels::APP,
            areq_purchase::PURCHASE,
            areq_purchase::RISK,
            others::EXTENSION,
        ],
        MessageKind::ARes => &[ares::ARES, others::EXTENSION],
        MessageKind::CReq => &[others::CREQ, others::EXTENSION],
        MessageKind::CRes => &[others::CRES, others::EXTENSION],
        MessageKind::RReq => &[ares::RREQ, others::EXTENSION],
        MessageKind::RRes => &[others::RRES, others::EXTENSION],
        MessageKind::Erro => &[others::ERRO],
    }
}

/// What a value must be, given others.
pub(crate) fn constraints(kind: MessageKind) -> &'static [Constraint] {
    match kind {
        MessageKind::AReq => areq::CONSTRAINTS,
        MessageKind::ARes => ares::CONSTRAINTS,
        _ => &[],
    }
}
