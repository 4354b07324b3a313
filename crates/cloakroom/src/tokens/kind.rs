//! Token types: what each is called and what it brings along.

use std::sync::LazyLock;

use cloakroom_expressions::Mask;
use serde_json::{Value, json};

use crate::access::Container;

/// The type of a token. The numbers are in the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TokenKind {
    Token = 1,
    Card = 2,
}

/// A mask as it is shown and as it is applied.
pub(super) struct DefaultMask {
    pub shown: Value,
    pub mask: Mask,
}

/// Shows the last four digits and the expiry of a card.
static CARD_MASK: LazyLock<Option<DefaultMask>> = LazyLock::new(|| {
    let shown = json!({
        "number": "{{ data.number | reveal_last: 4 }}",
        "expiration_month": "{{ data.expiration_month }}",
        "expiration_year": "{{ data.expiration_year }}",
    });
    let mask = Mask::parse(&shown).ok()?;
    Some(DefaultMask { shown, mask })
});

impl TokenKind {
    pub const ALL: [Self; 2] = [Self::Token, Self::Card];

    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    pub fn from_number(number: i16) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as i16 == number)
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Token => "token",
            Self::Card => "card",
        }
    }

    pub fn default_container(self) -> Container {
        Container::known(match self {
            Self::Token => "/general/high/",
            Self::Card => "/pci/high/",
        })
    }

    pub(super) fn default_mask(self) -> Option<&'static DefaultMask> {
        match self {
            Self::Token => None,
            Self::Card => CARD_MASK.as_ref(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_is_found_by_name_and_number() {
        for kind in TokenKind::ALL {
            assert_eq!(TokenKind::parse(kind.name()), Some(kind));
            assert_eq!(TokenKind::from_number(kind as i16), Some(kind));
        }
        assert_eq!(TokenKind::parse("Card"), None);
    }

    #[test]
    fn the_default_card_mask_keeps_number_types_and_hides_the_number() {
        let data = json!({"number": "4242424242424242", "expiration_month": 4, "cvc": "123"});

        let masked = TokenKind::Card.default_mask().unwrap().mask.apply(&data);

        let expected = json!({
            "number": "XXXXXXXXXXXX4242",
            "expiration_month": 4,
            "expiration_year": null,
        });
        assert_eq!(masked, expected);
    }
}
