//! EMV codes and their names in the API.

mod requests;
mod results;

pub use requests::{
    AccountAge, AccountChange, AccountType, AddressUse, AuthenticationCategory,
    AuthenticationMethod, AuthenticationType, ChallengePreference, DeliveryTime, DeviceChannel,
    PasswordChange, PriorMethod, ShippingMethod, TransactionType, pre_order_code, reorder_code,
    ship_name_match_code, suspicious_activity_code,
};
pub use results::{
    AcsInformation, ChallengeCancel, ChallengeType, ListStatus, ListStatusSource, StatusReason,
    TransStatus, reason_name,
};

/// Defines an enum whose values have a code on the wire and a name in the API. If several codes share
/// a name, the name maps to the first. Names after `|` are accepted as input only.
macro_rules! codes {
    ($(
        $(#[$about:meta])*
        $kind:ident { $($value:ident = $code:literal $name:literal $(| $alias:literal)*),* $(,)? }
    )*) => {$(
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $kind {
            $($value),*
        }

        impl $kind {
            pub const ALL: &[Self] = &[$(Self::$value),*];

            /// The code on the wire.
            pub const fn code(self) -> &'static str {
                match self { $(Self::$value => $code),* }
            }

            /// The name in the API.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$value => $name),* }
            }

            pub fn from_code(code: &str) -> Option<Self> {
                match code { $($code => Some(Self::$value),)* _ => None }
            }

            pub fn from_name(name: &str) -> Option<Self> {
                let same = |value: &Self| match value {
                    $(Self::$value => name == $name $(|| name == $alias)*),*
                };
                Self::ALL.iter().copied().find(same)
            }
        }
    )*};
}

pub(crate) use codes;

#[cfg(test)]
mod tests {
    use super::*;

    macro_rules! round_trips {
        ($($kind:ident)*) => {$(
            for value in $kind::ALL {
                assert_eq!($kind::from_code(value.code()), Some(*value));
                let by_name = $kind::from_name(value.name()).unwrap();
                assert_eq!(by_name.name(), value.name());
                if by_name != *value {
                    // Only codes that the specification maps to another value's name.
                    assert!(SHARED_NAMES.contains(&(stringify!($kind), value.code())), "{value:?}");
                }
            }
            assert_eq!($kind::from_code(""), None);
            assert_eq!($kind::from_name(""), None);
            assert_eq!($kind::from_code("0"), None);
        )*};
    }

    const SHARED_NAMES: &[(&str, &str)] = &[
        ("TransStatus", "S"),
        ("ChallengeCancel", "08"),
        ("ChallengeCancel", "09"),
        ("ChallengeCancel", "10"),
    ];

    #[test]
    fn codes_and_names_round_trip() {
        round_trips! {
            TransStatus StatusReason ChallengePreference ChallengeCancel ListStatus ListStatusSource
            ChallengeType AuthenticationCategory DeviceChannel TransactionType AccountType AccountAge
            AccountChange PasswordChange AddressUse AuthenticationMethod PriorMethod DeliveryTime
            ShippingMethod AcsInformation
        }
    }
}
