//! The messages as structs: one field per EMV field, those that are always there plain.
//!
//! None of them shows its values by `Debug`: most carry names, addresses or device data, and any
//! may carry extensions of which nothing is known.

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

/// A struct with the names of the wire, first what is always there, then the rest. Its `Debug` shows
/// only its name.
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
            /// The names of the wire, to compare with the table of fields.
            #[cfg(test)]
            pub(crate) const WIRE_NAMES: &[&str] = &[$($always_wire,)* $($sometimes_wire),*];
        }
    };
}

/// As `part!`, for what only shows its name by `Debug`.
macro_rules! quiet_part {
    ($(#[$about:meta])* $name:ident $fields:tt) => {
        $crate::messages::part! { $(#[$about])* $name $fields }

        impl std::fmt::Debug for $name {
            fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                out.write_str(concat!(stringify!($name), "(..)"))
            }
        }
    };
}

/// As `part!`, for a message: `Debug` shows kind, version and ids, and `from_object` checks.
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
            /// The message that has these fields, if it has all it must have and nothing it must
            /// not have. `messageType` may be left out.
            pub fn from_object(
                fields: serde_json::Map<String, serde_json::Value>,
            ) -> Result<Self, $crate::Fault> {
                $crate::exchange::from_object($crate::MessageKind::$name, fields)
            }

            /// The ids that it tells, as far as they are ids: anything may be in a public field.
            pub fn ids(&self) -> $crate::Ids {
                let mut ids = $crate::Ids::default();
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

/// What answers and results tell under other names from 2.3.1 on.
macro_rules! outcome {
    ($name:ident) => {
        impl $name {
            /// How the cardholder is or was challenged, if the message tells it in a code we know.
            pub fn challenge_type(&self) -> Option<$crate::codes::ChallengeType> {
                use $crate::codes::ChallengeType;
                let method = self.authentication_method.iter().flatten().next();
                let by_type = self
                    .authentication_type
                    .as_deref()
                    .and_then(ChallengeType::from_code);
                by_type.or_else(|| method.and_then(|code| ChallengeType::from_method(code)))
            }

            /// Whether the cardholder trusts the merchant: a code of
            /// [`ListStatus`](crate::codes::ListStatus).
            pub fn list_status(&self) -> Option<&str> {
                self.white_list_status
                    .as_deref()
                    .or(self.trust_list_status.as_deref())
            }

            /// Who says so: a code of [`ListStatusSource`](crate::codes::ListStatusSource).
            pub fn list_status_source(&self) -> Option<&str> {
                let source = self.white_list_status_source.as_deref();
                source.or(self.trust_list_status_source.as_deref())
            }
        }
    };
}

pub(crate) use {message, outcome, part, quiet_part};

/// An id of a transaction, which is plain in one message and optional in another.
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
    fn structs_have_the_fields_of_their_tables_and_no_others() {
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
