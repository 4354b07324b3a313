//! EMV 3-D Secure messages for a 3DS Server, a directory server (DS) and an access control server
//! (ACS): parsing, validation and serialization for protocol versions 2.1.0, 2.2.0 and 2.3.1.
//!
//! One table per message type ([`fields`]) defines the fields, the versions and device channels they
//! exist in, their formats, and when they are required. [`read`], [`write()`] and the `from_object`
//! of every message use the same table, so every message that is written can be read. An invalid
//! message is a [`Fault`], which contains field names and never values, and converts to an `Erro`
//! message with [`Fault::erro`].
//!
//! The crate also contains version negotiation ([`common_versions`]), the card ranges of a DS
//! ([`RangeTable`]) and the API names of EMV codes ([`codes`]).
//!
//! It does no I/O and no logging, and contains no certificates, timers, sessions, challenge pages or
//! encryption between the 3DS SDK and the ACS.

pub mod base64url;
mod codec;
pub mod codes;
mod confidential;
mod correlate;
mod fault;
mod fields;
mod messages;
mod parse;
mod range_table;
mod version;

pub use codec::{MESSAGE_BYTES_MAX, RANGES_BYTES_MAX, read, write};
pub use confidential::Confidential;
pub use fault::{Component, ErrorCode, Fault, TransactionIds};
pub use fields::{Channels, Condition, Field, Format, Inclusion, Rule, field, field_for, fields};
pub use messages::{
    AReq, ARes, AccountInfo, AcsProtocolVersion, AcsRenderingType, AuthenticationInfo, CReq, CRes,
    CardRangeData, CardholderInfo, DeviceRenderOptions, Erro, MerchantRiskIndicator, Message,
    MessageExtension, MessageKind, OneOrMany, PReq, PRes, Phone, PriorAuthenticationInfo, RReq,
    RRes, Range, RecurringInd, RichCardholderInfo,
};
pub use range_table::{AcsVersion, CardRange, RangeTable};
pub use version::{Announced, InvalidVersion, Span, Version, common_versions};
