//! The card networks that offer 3-D Secure.

use serde::{Deserialize, Serialize};

/// Lists every network once: variant, name in settings and rules, brand, directory server ID,
/// and the ECI of an authenticated and of an attempted payment.
macro_rules! networks {
    ($($variant:ident $name:literal $brand:literal $rid:literal $full:literal $attempt:literal;)+) => {
        /// A card network.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum Network {
            $(#[serde(rename = $name)] $variant),+
        }

        impl Network {
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }

            /// Brand as shown in sessions.
            pub fn brand(self) -> &'static str {
                match self { $(Self::$variant => $brand),+ }
            }

            /// The registered application provider identifier (RID) of the directory server.
            pub fn directory_server_id(self) -> &'static str {
                match self { $(Self::$variant => $rid),+ }
            }

            /// Whether an ECI of this network means that the payment was authenticated or attempted.
            pub fn shifts_liability(self, eci: &str) -> bool {
                match self { $(Self::$variant => [$full, $attempt].contains(&eci)),+ }
            }
        }
    };
}

networks! {
    Visa "visa" "Visa" "A000000003" "05" "06";
    Mastercard "mastercard" "Mastercard" "A000000004" "02" "01";
    AmericanExpress "american-express" "American Express" "A000000025" "05" "06";
    Discover "discover" "Discover" "A000000152" "05" "06";
    Jcb "jcb" "JCB" "A000000065" "05" "06";
    UnionPay "unionpay" "UnionPay" "A000000333" "05" "06";
    CartesBancaires "cartes-bancaires" "Cartes Bancaires" "A000000042" "05" "06";
}

impl Network {
    /// The network of a brand in card details. Some brands use the network of another one.
    pub fn of_card_brand(brand: &str) -> Option<Self> {
        let name = match brand {
            "maestro" => "mastercard",
            "diners-club" | "diners" => "discover",
            "amex" | "americanexpress" => "american-express",
            "cb" | "cartesbancaires" => "cartes-bancaires",
            brand => brand,
        };
        Self::ALL.iter().copied().find(|one| one.name() == name)
    }

    /// The network of a brand as shown in sessions.
    pub fn of_brand(brand: &str) -> Option<Self> {
        match brand {
            "Diners Club" => Some(Self::Discover),
            _ => Self::ALL.iter().copied().find(|one| one.brand() == brand),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_found_by_name_and_brand() {
        for network in Network::ALL.iter().copied() {
            assert_eq!(Network::of_card_brand(network.name()), Some(network));
            assert_eq!(Network::of_brand(network.brand()), Some(network));
        }
        let others = [
            ("maestro", Some(Network::Mastercard)),
            ("diners-club", Some(Network::Discover)),
            ("private-label", None),
        ];
        for (brand, network) in others {
            assert_eq!(Network::of_card_brand(brand), network, "{brand}");
        }
        assert_eq!(Network::of_brand("Diners Club"), Some(Network::Discover));
        assert_eq!(Network::of_brand("visa"), None);
    }

    #[test]
    fn only_the_ecis_of_a_network_shift_liability() {
        assert!(Network::Visa.shifts_liability("05"));
        assert!(Network::Visa.shifts_liability("06"));
        assert!(!Network::Visa.shifts_liability("07"));
        assert!(!Network::Visa.shifts_liability("02"));
        assert!(Network::Mastercard.shifts_liability("02"));
        assert!(!Network::Mastercard.shifts_liability("05"));
    }
}
