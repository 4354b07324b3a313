//! The card networks whose directory servers are simulated, and what differs between them.

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

/// What the networks' numbers begin with, as the first and the last number of a range. Whatever a
/// test card does not need is covered too, so that any number of a network can be tried.
const BEGINNINGS: &[(&str, &str, &str)] = &[
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

/// A network of the list, by the name of a path.
pub(crate) fn known(name: &str) -> Option<&'static str> {
    NETWORKS.iter().find(|network| **network == name).copied()
}

/// The first and last beginnings of the network's numbers.
pub(crate) fn beginnings(
    network: &str,
) -> impl Iterator<Item = (&'static str, &'static str)> + use<'_> {
    BEGINNINGS
        .iter()
        .filter(move |(owner, ..)| *owner == network)
        .map(|(_, first, last)| (*first, *last))
}

/// The network that issued a number; co-badged numbers have their second one in `ranges.rs`.
pub(crate) fn of_number(number: &str) -> Option<&'static str> {
    let within = |first: &str, last: &str| {
        let head = number.get(..first.len()).unwrap_or("");
        head >= first && head <= last
    };
    BEGINNINGS
        .iter()
        .find(|(_, first, last)| within(first, last))
        .and_then(|(network, ..)| known(network))
}

/// The electronic commerce indicator that a network gives to a status.
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
