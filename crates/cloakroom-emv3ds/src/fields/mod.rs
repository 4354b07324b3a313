//! One field table per message type: the fields, the versions and device channels they exist in,
//! their formats, and when they are required.

mod areq;
mod areq_channels;
mod areq_parties;
mod areq_purchase;
mod ares;
mod condition;
mod field;
mod format;
mod others;
mod ranges;
mod validate;

use crate::codes::DeviceChannel;
use crate::messages::MessageKind;
use crate::version::Version;

pub(crate) use condition::Context;
pub use condition::{Condition, Rule};
pub(crate) use field::Constraint;
pub use field::{Channels, Field, Inclusion};
pub use format::Format;
pub(crate) use format::is_uuid;
pub(crate) use validate::{FieldErrors, UnknownFields, known_path, validate};

/// The rows of a message type, in table order. A path has several rows if its format or inclusion
/// depends on the version or device channel; a version and channel has at most one row per path.
pub fn fields(kind: MessageKind) -> impl Iterator<Item = &'static Field> {
    tables(kind).iter().copied().flatten()
}

/// The row of a path. If there are several, returns the one for 2.2.0, the most common version;
/// [`field_for`] returns the row for a given version and channel.
pub fn field(kind: MessageKind, path: &str) -> Option<&'static Field> {
    let rows = || fields(kind).filter(|row| row.path == path);
    let common = |row: &&Field| row.since <= Version::V2_2_0 && Version::V2_2_0 <= row.until;
    rows().find(common).or_else(|| rows().next())
}

/// The row of a path in a version and, for an `AReq`, on a device channel.
pub fn field_for(
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
            areq_parties::MERCHANT,
            areq_parties::CARDHOLDER,
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

/// Restrictions of a value that depend on other fields.
pub(crate) fn constraints(kind: MessageKind) -> &'static [Constraint] {
    match kind {
        MessageKind::AReq => areq::CONSTRAINTS,
        MessageKind::ARes => ares::CONSTRAINTS,
        _ => &[],
    }
}
