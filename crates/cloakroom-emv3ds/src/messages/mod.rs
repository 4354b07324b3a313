//! The messages as structs, with one field per EMV data element. Optional elements are `Option`s.
//!
//! `Debug` never shows values: most messages contain names, addresses or device data, and any
//! message may contain unknown extensions.

mod areq;
mod ares;
mod challenge;
mod erro;
mod kind;
mod parts;
mod ranges;
mod results;

use crate::fields::is_uuid;

pub use areq::AReq;
pub use ares::ARes;
pub use challenge::{CReq, CRes};
pub use erro::Erro;
pub use kind::{Message, MessageKind};
pub use parts::{
    AccountInfo, AcsRenderingType, AuthenticationInfo, CardholderInfo, DeviceRenderOptions,
    MerchantRiskIndicator, MessageExtension, OneOrMany, Phone, PriorAuthenticationInfo,
    RecurringInd, RichCardholderInfo,
};
pub use ranges::{AcsProtocolVersion, CardRangeData, PReq, PRes, Range};
pub use results::{RReq, RRes};

/// Defines a struct with its field names on the wire: required fields first, then optional ones.
macro_rules! part {
    (
        $(#[$about:meta])*
        $name:ident {
            $($always:ident : $plain:ty = $always_wire:literal,)*
            ;
            $($sometimes:ident : $inner:ty = $sometimes_wire:literal,)*
        }
    ) => {
        $(#[$about])*
        #[derive(Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            $(
                #[serde(rename = $always_wire)]
                pub $always: $plain,
            )*
            $(
                #[serde(rename = $sometimes_wire, default, skip_serializing_if = "Option::is_none")]
                pub $sometimes: Option<$inner>,
            )*
        }

        impl $name {
            /// Field names on the wire, to compare with the field table.
            #[cfg(test)]
            pub(crate) const WIRE_NAMES: &[&str] = &[$($always_wire,)* $($sometimes_wire),*];
        }
    };
}

/// As `part!`, with a `Debug` that shows only the name of the struct.
macro_rules! redacted_part {
    ($(#[$about:meta])* $name:ident $fields:tt) => {
        $crate::messages::part! { $(#[$about])* $name $fields }

        impl std::fmt::Debug for $name {
            fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                out.write_str(concat!(stringify!($name), "(..)"))
            }
        }
    };
}

/// As `part!`, for a message: `Debug` shows type, version and ids, and `from_object` validates.
macro_rules! message {
    ($(#[$about:meta])* $name:ident { $($fields:tt)* } ids { $($id:ident),* } wrapped $wrap:expr) => {
        $crate::messages::part! { $(#[$about])* $name { $($fields)* } }

        impl std::fmt::Debug for $name {
            fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let mut shown = out.debug_struct(stringify!($name));
                shown.field("message_version", &self.message_version);
                $(shown.field(stringify!($id), &$crate::messages::Id::id(&self.$id));)*
                shown.finish_non_exhaustive()
            }
        }

        impl $name {
            /// Builds and validates a message; unknown fields are errors. `messageType` is optional.
            pub fn from_object(
                fields: serde_json::Map<String, serde_json::Value>,
            ) -> Result<Self, $crate::Fault> {
                $crate::codec::from_object($crate::MessageKind::$name, fields)
            }

            /// The transaction ids. Leaves out values that are not UUIDs: fields are public and unchecked.
            pub fn ids(&self) -> $crate::TransactionIds {
                let mut ids = $crate::TransactionIds::default();
                $(ids.$id = $crate::messages::Id::id(&self.$id);)*
                ids
            }
        }

        impl From<$name> for $crate::Message {
            fn from(message: $name) -> Self {
                $wrap(message)
            }
        }
    };
}

/// Accessors of `ARes` and `RReq` for fields that were renamed in 2.3.1.
macro_rules! outcome {
    ($name:ident) => {
        impl $name {
            /// How the cardholder is or was challenged, if present and known.
            pub fn challenge_type(&self) -> Option<$crate::codes::ChallengeType> {
                use $crate::codes::ChallengeType;
                let method = self.authentication_method.iter().flatten().next();
                let by_type = self
                    .authentication_type
                    .as_deref()
                    .and_then(ChallengeType::from_code);
                by_type.or_else(|| method.and_then(|code| ChallengeType::from_method(code)))
            }

            /// Trust list status of the merchant: a code of [`ListStatus`](crate::codes::ListStatus).
            pub fn list_status(&self) -> Option<&str> {
                self.white_list_status
                    .as_deref()
                    .or(self.trust_list_status.as_deref())
            }

            /// The component that set the status: a code of
            /// [`ListStatusSource`](crate::codes::ListStatusSource).
            pub fn list_status_source(&self) -> Option<&str> {
                let source = self.white_list_status_source.as_deref();
                source.or(self.trust_list_status_source.as_deref())
            }
        }
    };
}

pub(crate) use {message, outcome, part, redacted_part};

/// A transaction id, required in some messages and optional in others.
pub(crate) trait Id {
    fn id(&self) -> Option<Box<str>>;
}

impl Id for String {
    fn id(&self) -> Option<Box<str>> {
        is_uuid(self).then(|| self.as_str().into())
    }
}

impl Id for Option<String> {
    fn id(&self) -> Option<Box<str>> {
        self.as_ref().and_then(Id::id)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::fields::fields;

    #[test]
    fn structs_match_their_field_tables() {
        let compare = |kind, parent: &str, struct_names: &[&str]| {
            let here = fields(kind).filter(|row| row.parent() == parent);
            let table: BTreeSet<_> = here.map(|row| row.name()).collect();
            let names: BTreeSet<_> = struct_names.iter().copied().collect();
            assert_eq!(names, table, "{kind} {parent}");
        };
        macro_rules! messages {
            ($($kind:ident)*) => {$(
                compare(MessageKind::$kind, "", $kind::WIRE_NAMES);
            )*};
        }
        messages! { PReq PRes AReq ARes CReq CRes RReq RRes Erro }
        macro_rules! parts {
            ($($kind:ident $path:literal $part:ident,)*) => {$(
                compare(MessageKind::$kind, $path, $part::WIRE_NAMES);
            )*};
        }
        parts! {
            AReq "threeDSRequestorAuthenticationInfo" AuthenticationInfo,
            AReq "threeDSRequestorPriorAuthenticationInfo" PriorAuthenticationInfo,
            AReq "acctInfo" AccountInfo,
            AReq "merchantRiskIndicator" MerchantRiskIndicator,
            AReq "homePhone" Phone,
            AReq "mobilePhone" Phone,
            AReq "workPhone" Phone,
            AReq "deviceRenderOptions" DeviceRenderOptions,
            AReq "recurringInd" RecurringInd,
            AReq "messageExtension" MessageExtension,
            ARes "cardholderInfo" RichCardholderInfo,
            ARes "acsRenderingType" AcsRenderingType,
            RReq "acsRenderingType" AcsRenderingType,
            PRes "cardRangeData" CardRangeData,
            PRes "cardRangeData.ranges" Range,
            PRes "cardRangeData.acsProtocolVersions" AcsProtocolVersion,
        }
    }
}
