//! Card brands, and how they are inferred from a number's prefix.

use cloakroom_platform::card_numbers::{PREFIXES, Scheme};

use super::number::CardNumber;

/// The values of a card's `brand`.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Brand {
    AmericanExpress = 1,
    DinersClub,
    Discover,
    Ebt,
    Elo,
    Hipercard,
    Jcb,
    Mastercard,
    Mir,
    PrivateLabel,
    Proprietary,
    Unionpay,
    Visa,
}

use Brand::{
    AmericanExpress, DinersClub, Discover, Elo, Hipercard, Jcb, Mastercard, Mir, Unionpay, Visa,
};

impl Brand {
    pub const ALL: [Self; 13] = [
        AmericanExpress,
        DinersClub,
        Discover,
        Self::Ebt,
        Elo,
        Hipercard,
        Jcb,
        Mastercard,
        Mir,
        Self::PrivateLabel,
        Self::Proprietary,
        Unionpay,
        Visa,
    ];

    pub fn name(self) -> &'static str {
        match self {
            AmericanExpress => "american-express",
            DinersClub => "diners-club",
            Discover => "discover",
            Self::Ebt => "ebt",
            Elo => "elo",
            Hipercard => "hipercard",
            Jcb => "jcb",
            Mastercard => "mastercard",
            Mir => "mir",
            Self::PrivateLabel => "private-label",
            Self::Proprietary => "proprietary",
            Unionpay => "unionpay",
            Visa => "visa",
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|brand| brand.name() == name)
    }

    /// The brand with this number in a compiled table; 0 is none.
    pub(super) fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number).checked_sub(1)?).copied()
    }

    /// Infers the brand from the leading digits. The longest prefix wins.
    pub(super) fn infer(number: CardNumber) -> Option<Self> {
        PREFIXES.iter().find_map(|prefixes| {
            let prefix = number.first(prefixes.digits);
            let brand = brand_of(prefixes.scheme)?;
            prefixes.range.contains(&prefix).then_some(brand)
        })
    }
}

/// The API's brand for cards of a scheme.
///
/// Maestro cards map to `mastercard` and Hiper cards to `hipercard`: the API has no brands for them.
fn brand_of(scheme: Scheme) -> Option<Brand> {
    Some(match scheme {
        Scheme::AmericanExpress => AmericanExpress,
        Scheme::DinersClub => DinersClub,
        Scheme::Discover => Discover,
        Scheme::Elo => Elo,
        Scheme::Hipercard => Hipercard,
        Scheme::Jcb | Scheme::JcbShort => Jcb,
        Scheme::Maestro | Scheme::Mastercard => Mastercard,
        Scheme::Mir => Mir,
        Scheme::Unionpay => Unionpay,
        Scheme::Visa => Visa,
        Scheme::Borica
        | Scheme::ChinaTUnion
        | Scheme::Dankort
        | Scheme::Humo
        | Scheme::Napas
        | Scheme::Rupay
        | Scheme::Troy
        | Scheme::Uatp
        | Scheme::Uzcard
        | Scheme::Verve => return None,
    })
}

#[cfg(test)]
mod tests;
