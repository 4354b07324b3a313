//! EMV 3-D Secure messages, as a 3DS server, a directory server and an access control server see
//! them: reading, checking and writing, for versions 2.1.0, 2.2.0 and 2.3.1.
//!
//! One table per message ([`fields`]) says which field exists in which version and on which device
//! channel, what its value looks like and when it must be there. [`read`], [`write()`] and
//! `from_object` of every message go by that table, so what one side writes is what the other side
//! accepts. What is wrong with a message is a [`Fault`], which names fields and never values, and
//! becomes an `Erro` message with [`Fault::erro`].
//!
//! Besides messages: version negotiation ([`common_versions`]), the card ranges of a directory
//! server ([`RangeTable`]) and the names that our API gives to EMV codes ([`codes`]).
//!
//! What is not here: connections, certificates, timers, sessions, the pages of a challenge, the
//! encryption between an app and its access control server, and anything that logs.

pub mod base64url;
pub mod codes;
mod confidential;
mod exchange;
mod fault;
mod fields;
mod messages;
mod parse;
mod range_table;
mod version;

pub use confidential::Confidential;
pub use exchange::{MESSAGE_BYTES_MAX, RANGES_BYTES_MAX, read, write};
pub use fault::{Component, ErrorCode, Fault, Ids};
pub use fields::{Channels, Condition, Field, Format, Inclusion, Rule, field, field_of, fields};
pub use messages::{
    AReq, ARes, AccountInfo, AcsProtocolVersion, AcsRenderingType, AuthenticationInfo, CReq, CRes,
    CardRangeData, CardholderInfo, DeviceRenderOptions, Erro, MerchantRiskIndicator, Message,
    MessageExtension, MessageKind, OneOrMany, PReq, PRes, Phone, PriorAuthenticationInfo, RReq,
    RRes, Range, RecurringInd, RichCardholderInfo,
};
pub use range_table::{AcsVersion, CardRange, RangeTable};
pub use version::{Announced, NotAVersion, Span, Version, common_versions};
