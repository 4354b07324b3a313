//! Generated tokens: skewed as in real vaults, and deterministic.

/// A container, its share of tokens, and the type of most of them.
pub(super) struct Place {
    pub(super) path: &'static str,
    pub(super) permille: u64,
    pub(super) kind: i16,
}

pub(super) const TENANT: i32 = 1;
pub(super) const TOKEN: i16 = 1;
pub(super) const CARD: i16 = 2;
const CARD_NUMBER: i16 = 3;
/// Rare, and only in the largest container.
pub(super) const RARE: i16 = 4;
const BANK: i16 = 5;
const SSN: i16 = 8;
pub(super) const KINDS: &str = "'{1,2,3,4,5,6,7,8,9}'";

/// Numbered from 1, in this order.
pub(super) const PLACES: [Place; 12] = [
    place("/bank/high/", 40, BANK),
    place("/bank/low/", 5, BANK),
    place("/general/", 20, TOKEN),
    place("/general/high/", 250, TOKEN),
    place("/general/low/", 8, TOKEN),
    place("/merchants/alpha/", 30, TOKEN),
    place("/merchants/beta/", 20, TOKEN),
    place("/merchants/gamma/cards/", 102, CARD),
    place("/pci/high/", 440, CARD),
    place("/pci/low/", 10, CARD),
    place("/pii/high/", 60, SSN),
    place("/zeta/", 15, TOKEN),
];
pub(super) const LARGEST: &str = "/pci/high/";

const fn place(path: &'static str, permille: u64, kind: i16) -> Place {
    Place {
        path,
        permille,
        kind,
    }
}

/// Digests of frequent values: the metadata of every second token, the fingerprint of every fourth, and the value of a
/// search index of three in ten.
pub(super) const COMMON_METADATA: u64 = 1;
pub(super) const COMMON_FINGERPRINT: u64 = 2;
pub(super) const COMMON_DATA: u64 = 3;

/// One token, without its random parts.
pub(super) struct Shape {
    pub(super) container: i32,
    pub(super) path: &'static str,
    pub(super) kind: i16,
    pub(super) created_at_s: u64,
    /// Seconds from the start, for the few that expire.
    pub(super) expires_at_s: Option<u64>,
    pub(super) metadata: String,
    pub(super) fingerprint: [u8; 32],
    pub(super) terms: [[u8; 16]; 3],
    pub(super) sealed_bytes: usize,
}

impl Shape {
    /// The `n`th token.
    pub(super) fn of(n: u64) -> Self {
        let chance = mix(n);
        let (index, place) = place_at(chance % 1000);
        let kind = match place.kind {
            CARD if place.path == LARGEST && n.is_multiple_of(1000) => RARE,
            CARD if n.is_multiple_of(7) => CARD_NUMBER,
            kind => kind,
        };
        let shared = |every: u64, of: u64, common: u64, own: u64| {
            let own = (own << 48) + n;
            let is_common = mix(own) % of < every;
            if is_common { common } else { own }
        };
        let fingerprint = shared(1, 4, COMMON_FINGERPRINT, 1);
        let metadata = shared(1, 2, COMMON_METADATA, 2);
        let data = shared(3, 10, COMMON_DATA, 3);
        Self {
            container: i32::try_from(index + 1).unwrap_or(i32::MAX),
            path: place.path,
            kind,
            // Three tokens share each creation time.
            created_at_s: n / 3,
            expires_at_s: n.is_multiple_of(50).then_some(n),
            metadata: match metadata {
                COMMON_METADATA => r#"{"plan":"gold"}"#.to_owned(),
                _ => format!(r#"{{"customer":"customer {n}"}}"#),
            },
            fingerprint: digest(fingerprint),
            terms: [term(fingerprint), term(metadata), term(data)],
            sealed_bytes: 120 + usize::try_from(chance >> 32).unwrap_or_default() % 60,
        }
    }
}

fn place_at(permille: u64) -> (usize, &'static Place) {
    let mut rest = permille;
    for (index, place) in PLACES.iter().enumerate() {
        if rest < place.permille {
            return (index, place);
        }
        rest -= place.permille;
    }
    (0, &PLACES[0])
}

/// A substitute for a keyed digest.
pub(super) fn digest(of: u64) -> [u8; 32] {
    let mut bytes = [0; 32];
    for (part, at) in (0_u64..).zip((0..32).step_by(8)) {
        bytes[at..at + 8].copy_from_slice(&mix(of ^ (part << 60)).to_be_bytes());
    }
    bytes
}

/// The first bytes of a digest, as in terms.
pub(super) fn term(of: u64) -> [u8; 16] {
    let mut term = [0; 16];
    term.copy_from_slice(&digest(of)[..16]);
    term
}

/// SplitMix64.
pub(super) fn mix(n: u64) -> u64 {
    let mut z = n.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_have_the_configured_distribution() {
        let tokens: Vec<Shape> = (0..100_000).map(Shape::of).collect();
        let share =
            |is: &dyn Fn(&Shape) -> bool| tokens.iter().filter(|token| is(token)).count() / 1000;
        let common = |which: usize, of: u64| share(&|token| token.terms[which] == term(of));

        assert_eq!(PLACES.iter().map(|place| place.permille).sum::<u64>(), 1000);
        assert_eq!(share(&|token| token.path == LARGEST), 44);
        assert!((49..=50).contains(&common(1, COMMON_METADATA)));
        assert!((24..=25).contains(&common(0, COMMON_FINGERPRINT)));
        assert!((29..=30).contains(&common(2, COMMON_DATA)));
        let rare = tokens.iter().filter(|token| token.kind == RARE).count();
        assert!((20..100).contains(&rare), "{rare}");
        let paths: std::collections::BTreeSet<&str> =
            tokens.iter().map(|token| token.path).collect();
        assert_eq!(paths.len(), PLACES.len());
    }
}
