//! The simulated card networks: number prefixes and ECI values.

/// The names in `/ds/{network}`.
pub const NETWORKS: &[&str] = &[
    "visa",
    "mastercard",
    "american-express",
    "discover",
    "jcb",
    "unionpay",
    "cartes-bancaires",
];

/// Number prefixes of the networks, as first and last prefix of a range. They cover more than the test
/// cards, so that any number of a network can be used.
const PREFIXES: &[(&str, &str, &str)] = &[
    ("visa", "4", "4"),
    ("visa", "900010", "900010"),
    ("visa", "122000", "122000"),
    ("mastercard", "2221", "2720"),
    ("mastercard", "50", "59"),
    ("mastercard", "67", "67"),
    ("american-express", "34", "34"),
    ("american-express", "37", "37"),
    ("discover", "6011", "6011"),
    ("discover", "644", "659"),
    ("discover", "36", "36"),
    ("discover", "38", "39"),
    ("jcb", "3528", "3589"),
    ("unionpay", "62", "62"),
];

/// Finds a network by its name.
pub(crate) fn find(name: &str) -> Option<&'static str> {
    NETWORKS.iter().find(|network| **network == name).copied()
}

/// The first and last prefixes of a network.
pub(crate) fn prefixes(
    network: &str,
) -> impl Iterator<Item = (&'static str, &'static str)> + use<'_> {
    PREFIXES
        .iter()
        .filter(move |(owner, ..)| *owner == network)
        .map(|(_, first, last)| (*first, *last))
}

/// The network of a card number; the primary one if the card is co-badged.
pub(crate) fn for_number(number: &str) -> Option<&'static str> {
    let within = |first: &str, last: &str| {
        let head = number.get(..first.len()).unwrap_or("");
        head >= first && head <= last
    };
    PREFIXES
        .iter()
        .find(|(_, first, last)| within(first, last))
        .and_then(|(network, ..)| find(network))
}

/// The electronic commerce indicator (ECI) of a network for a status.
pub(crate) fn eci(network: &str, status: &str) -> Option<&'static str> {
    match (network, status) {
        (_, "C" | "D") => None,
        ("mastercard", "Y") => Some("02"),
        ("mastercard", "A") => Some("01"),
        ("mastercard", "I") => Some("06"),
        ("mastercard", _) => Some("00"),
        (_, "Y") => Some("05"),
        (_, "A") => Some("06"),
        _ => Some("07"),
    }
}
