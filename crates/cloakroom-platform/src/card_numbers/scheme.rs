//! Card schemes with their prefixes (IIN ranges) and PAN lengths.
//!
//! Detection and brand inference both use this table, so a scheme that is added here is detected.

use std::ops::RangeInclusive;
use std::sync::LazyLock;

/// A scheme that issues primary account numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    AmericanExpress,
    Borica,
    ChinaTUnion,
    Dankort,
    DinersClub,
    Discover,
    Elo,
    Hipercard,
    Humo,
    Jcb,
    /// JCB numbers of 15 digits.
    JcbShort,
    Maestro,
    Mastercard,
    Mir,
    Napas,
    Rupay,
    Troy,
    Uatp,
    Unionpay,
    Uzcard,
    Verve,
    Visa,
}

use Scheme::{
    AmericanExpress, Borica, ChinaTUnion, Dankort, DinersClub, Discover, Elo, Hipercard, Humo, Jcb,
    JcbShort, Maestro, Mastercard, Mir, Napas, Rupay, Troy, Uatp, Unionpay, Uzcard, Verve, Visa,
};

impl Scheme {
    /// PAN lengths of the scheme, the usual length first.
    pub(super) fn lengths(self) -> &'static [usize] {
        match self {
            AmericanExpress | JcbShort | Uatp => &[15],
            Borica | Dankort | Elo | Humo | Mastercard | Rupay | Troy | Uzcard => &[16],
            DinersClub => &[14, 16, 17, 18, 19],
            Hipercard => &[16, 13, 19],
            ChinaTUnion => &[19],
            Discover | Jcb | Mir | Unionpay => &[16, 17, 18, 19],
            Maestro => &[16, 13, 18, 19],
            Napas => &[16, 19],
            Verve => &[16, 18, 19],
            Visa => &[16, 13, 18, 19],
        }
    }

    pub(super) fn usual_length(self) -> usize {
        self.lengths()[0]
    }

    /// Whether the prefix is a single digit that is too common to identify the scheme: one number in ten has it.
    pub(super) fn has_weak_prefix(self) -> bool {
        self == Uatp
    }
}

/// A range of prefixes of one scheme.
pub struct Prefixes {
    pub scheme: Scheme,
    /// Number of digits of the prefixes.
    pub digits: u32,
    pub range: RangeInclusive<u64>,
}

const fn row(scheme: Scheme, digits: u32, first: u64, last: u64) -> Prefixes {
    Prefixes {
        scheme,
        digits,
        range: first..=last,
    }
}

/// Published issuer identification number ranges, longest prefixes first.
#[rustfmt::skip]
pub static PREFIXES: [Prefixes; 72] = [
    row(Hipercard, 8, 63_737_423, 63_737_423),
    row(Hipercard, 8, 63_743_358, 63_743_358),
    row(Elo, 6, 401_178, 401_179),
    row(Elo, 6, 431_274, 431_274),
    row(Elo, 6, 438_935, 438_935),
    row(Elo, 6, 451_416, 451_416),
    row(Elo, 6, 457_393, 457_393),
    row(Elo, 6, 457_631, 457_632),
    row(Maestro, 6, 493_698, 493_698),
    row(Maestro, 6, 500_000, 504_174),
    row(Elo, 6, 504_175, 504_175),
    row(Maestro, 6, 504_176, 506_698),
    row(Verve, 6, 506_099, 506_198),
    row(Elo, 6, 506_699, 506_778),
    row(Maestro, 6, 506_779, 508_999),
    row(Verve, 6, 507_865, 507_964),
    row(Elo, 6, 509_000, 509_999),
    row(Hipercard, 6, 606_282, 606_282),
    row(Elo, 6, 627_780, 627_780),
    row(Elo, 6, 636_297, 636_297),
    row(Elo, 6, 636_368, 636_368),
    row(Hipercard, 6, 637_095, 637_095),
    row(Hipercard, 6, 637_568, 637_568),
    row(Hipercard, 6, 637_599, 637_599),
    row(Hipercard, 6, 637_609, 637_609),
    row(Hipercard, 6, 637_612, 637_612),
    row(Verve, 6, 650_002, 650_027),
    row(Elo, 6, 650_031, 650_033),
    row(Elo, 6, 650_035, 650_051),
    row(Elo, 6, 650_405, 650_439),
    row(Elo, 6, 650_485, 650_538),
    row(Elo, 6, 650_541, 650_598),
    row(Elo, 6, 650_700, 650_718),
    row(Elo, 6, 650_720, 650_727),
    row(Elo, 6, 650_901, 650_978),
    row(Elo, 6, 651_652, 651_679),
    row(Elo, 6, 655_000, 655_019),
    row(Elo, 6, 655_021, 655_058),
    row(JcbShort, 4, 1800, 1800),
    row(JcbShort, 4, 2131, 2131),
    row(Mir, 4, 2200, 2204),
    row(Borica, 4, 2205, 2205),
    row(Mastercard, 4, 2221, 2720),
    row(Jcb, 4, 3528, 3589),
    row(Dankort, 4, 5019, 5019),
    row(Discover, 4, 6011, 6011),
    row(Uzcard, 4, 8600, 8600),
    row(Napas, 4, 9704, 9704),
    row(Troy, 4, 9792, 9792),
    row(Humo, 4, 9860, 9860),
    row(DinersClub, 3, 300, 305),
    row(Rupay, 3, 353, 353),
    row(Rupay, 3, 356, 356),
    row(Rupay, 3, 508, 508),
    row(Discover, 3, 644, 649),
    row(ChinaTUnion, 2, 31, 31),
    row(AmericanExpress, 2, 34, 34),
    row(DinersClub, 2, 36, 36),
    row(AmericanExpress, 2, 37, 37),
    row(DinersClub, 2, 38, 39),
    row(Mastercard, 2, 51, 55),
    row(Maestro, 2, 56, 59),
    row(Rupay, 2, 60, 60),
    row(Unionpay, 2, 62, 62),
    row(Maestro, 2, 63, 63),
    row(Discover, 2, 65, 65),
    row(Maestro, 2, 67, 67),
    row(Rupay, 2, 81, 81),
    row(Unionpay, 2, 81, 81),
    row(Rupay, 2, 82, 82),
    row(Uatp, 1, 1, 1),
    row(Visa, 1, 4, 4),
];

/// PAN lengths by the first four digits.
///
/// Longer prefixes are truncated to four digits; shorter ones are expanded to all that start with them.
pub(super) struct LengthsByPrefix(Vec<Lengths>);

/// Sets of lengths, as bit masks.
#[derive(Clone, Copy, Default)]
pub(super) struct Lengths {
    /// All lengths of the schemes with this prefix, except schemes with a weak prefix.
    all: u32,
    /// The usual lengths of those schemes.
    usual: u32,
    /// All lengths of schemes with a weak prefix.
    weak: u32,
}

impl Lengths {
    pub(super) fn has(self, length: usize) -> bool {
        self.all & (1 << length) != 0
    }

    pub(super) fn has_usual(self, length: usize) -> bool {
        self.usual & (1 << length) != 0
    }

    pub(super) fn has_weak(self, length: usize) -> bool {
        self.weak & (1 << length) != 0
    }

    fn add(&mut self, scheme: Scheme) {
        for length in scheme.lengths() {
            match scheme.has_weak_prefix() {
                true => self.weak |= 1 << length,
                false => self.all |= 1 << length,
            }
        }
        if !scheme.has_weak_prefix() {
            self.usual |= 1 << scheme.usual_length();
        }
    }
}

const KEY_DIGITS: u32 = 4;

static LENGTHS: LazyLock<LengthsByPrefix> = LazyLock::new(|| {
    let mut lengths = vec![Lengths::default(); 10_usize.pow(KEY_DIGITS)];
    for prefixes in &PREFIXES {
        let (first, last) = (*prefixes.range.start(), *prefixes.range.end());
        let (first, last) = match prefixes.digits.checked_sub(KEY_DIGITS) {
            Some(more) => (first / 10_u64.pow(more), last / 10_u64.pow(more)),
            None => {
                let scale = 10_u64.pow(KEY_DIGITS - prefixes.digits);
                (first * scale, last * scale + (scale - 1))
            }
        };
        let entries = lengths.iter_mut().zip(0_u64..);
        for (entry, prefix) in entries {
            if (first..=last).contains(&prefix) {
                entry.add(prefixes.scheme);
            }
        }
    }
    LengthsByPrefix(lengths)
});

/// Returns the lengths of card numbers with the prefix of these ASCII digits.
pub(super) fn lengths_of(digits: &[u8]) -> Lengths {
    let key = digits
        .iter()
        .take(KEY_DIGITS as usize)
        .fold(0, |key, digit| key * 10 + usize::from(digit - b'0'));
    match digits.len() < KEY_DIGITS as usize {
        true => Lengths::default(),
        false => LENGTHS.0.get(key).copied().unwrap_or_default(),
    }
}
