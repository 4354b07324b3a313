//! Card brands: the names that cards show, and what a number's first digits tell of them.

use super::number::CardNumber;

/// The brands that a card's own `brand` may name.
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

    /// The brand behind the number that a compiled table holds; 0 stands for none.
    pub(super) fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number).checked_sub(1)?).copied()
    }

    /// The brand that the first digits tell. The longest prefix decides.
    pub(super) fn infer(number: CardNumber) -> Option<Self> {
        PREFIXES.iter().find_map(|(digits, rows)| {
            let prefix = number.first(*digits);
            rows.iter()
                .find(|(low, high, _)| (*low..=*high).contains(&prefix))
                .map(|(.., brand)| *brand)
        })
    }
}

/// Prefixes of one length: first, last, brand.
type Prefixes = (u32, &'static [(u64, u64, Brand)]);

/// What networks publish, longest prefixes first.
///
/// Maestro cards count as `mastercard` and Hiper cards as `hipercard`: neither has a name of its own
/// among the brands.
const PREFIXES: [Prefixes; 6] = [
    (
        8,
        &[
            (63_737_423, 63_737_423, Hipercard),
            (63_743_358, 63_743_358, Hipercard),
        ],
    ),
    (
        6,
        &[
            (401_178, 401_179, Elo),
            (431_274, 431_274, Elo),
            (438_935, 438_935, Elo),
            (451_416, 451_416, Elo),
            (457_393, 457_393, Elo),
            (457_631, 457_632, Elo),
            (493_698, 493_698, Mastercard),
            (500_000, 504_174, Mastercard),
            (504_175, 504_175, Elo),
            (504_176, 506_698, Mastercard),
            (506_699, 506_778, Elo),
            (506_779, 508_999, Mastercard),
            (509_000, 509_999, Elo),
            (606_282, 606_282, Hipercard),
            (627_780, 627_780, Elo),
            (636_297, 636_297, Elo),
            (636_368, 636_368, Elo),
            (637_095, 637_095, Hipercard),
            (637_568, 637_568, Hipercard),
            (637_599, 637_599, Hipercard),
            (637_609, 637_609, Hipercard),
            (637_612, 637_612, Hipercard),
            (650_031, 650_033, Elo),
            (650_035, 650_051, Elo),
            (650_405, 650_439, Elo),
            (650_485, 650_538, Elo),
            (650_541, 650_598, Elo),
            (650_700, 650_718, Elo),
            (650_720, 650_727, Elo),
            (650_901, 650_978, Elo),
            (651_652, 651_679, Elo),
            (655_000, 655_019, Elo),
            (655_021, 655_058, Elo),
        ],
    ),
    (
        4,
        &[
            (1800, 1800, Jcb),
            (2131, 2131, Jcb),
            (2200, 2204, Mir),
            (2221, 2720, Mastercard),
            (3528, 3589, Jcb),
            (6011, 6011, Discover),
        ],
    ),
    (3, &[(300, 305, DinersClub), (644, 649, Discover)]),
    (
        2,
        &[
            (34, 34, AmericanExpress),
            (36, 36, DinersClub),
            (37, 37, AmericanExpress),
            (38, 39, DinersClub),
            (51, 55, Mastercard),
            (56, 59, Mastercard),
            (62, 62, Unionpay),
            (63, 63, Mastercard),
            (65, 65, Discover),
            (67, 67, Mastercard),
            (81, 81, Unionpay),
        ],
    ),
    (1, &[(4, 4, Visa)]),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn inferred(prefix: &str) -> Option<&'static str> {
        let number = format!("{prefix:0<16}");
        Brand::infer(CardNumber::parse(&number).unwrap()).map(Brand::name)
    }

    /// The documented table: brand, then its prefixes.
    const DOCUMENTED: [(&str, &str); 10] = [
        ("american-express", "34, 37"),
        ("diners-club", "300-305, 36, 38, 39"),
        ("jcb", "2131, 1800, 3528-3589"),
        ("mir", "2200-2204"),
        (
            "mastercard",
            "51-55, 2221-2720, 493698, 500000-504174, 504176-506698, 506779-508999, 56-59, 63, 67",
        ),
        ("discover", "6011, 644-649, 65"),
        (
            "elo",
            "401178, 401179, 431274, 438935, 451416, 457393, 457631, 457632, 504175, \
             506699-506778, 509000-509999, 627780, 636297, 636368, 650031-650033, 650035-650051, \
             650405-650439, 650485-650538, 650541-650598, 650700-650718, 650720-650727, \
             650901-650978, 651652-651679, 655000-655019, 655021-655058",
        ),
        (
            "hipercard",
            "606282, 637095, 637568, 637599, 637609, 637612, 63737423, 63743358",
        ),
        ("unionpay", "62, 81"),
        ("visa", "4"),
    ];

    fn documented() -> Vec<(&'static str, u64, u64, usize)> {
        let rows = DOCUMENTED.iter().flat_map(|(brand, prefixes)| {
            prefixes.split(", ").map(|range| {
                let (low, high) = range.split_once('-').unwrap_or((range, range));
                let value = |text: &str| text.trim().parse::<u64>().unwrap();
                (*brand, value(low), value(high), low.trim().len())
            })
        });
        rows.collect()
    }

    /// What the documented table says of a prefix, read in the slowest and plainest way.
    fn expected(number: &str) -> Option<&'static str> {
        let holds = |(_, low, high, digits): &&(&str, u64, u64, usize)| {
            (*low..=*high).contains(&number[..*digits].parse().unwrap())
        };
        let rows = documented();
        let longest = rows.iter().filter(holds).max_by_key(|row| row.3);
        longest.map(|(brand, ..)| *brand)
    }

    #[test]
    fn every_documented_prefix_is_inferred_inside_at_and_beside_its_edges() {
        let mut tried = 0;
        for (brand, low, high, digits) in documented() {
            let inside = [low, u64::midpoint(low, high), high];
            for prefix in inside {
                let text = format!("{prefix}");
                let number = format!("{text:0<16}");
                assert_eq!(inferred(&text), expected(&number), "{prefix}");
                // A shorter prefix may hold a longer one of another brand; six digits never do.
                if digits >= 6 {
                    assert_eq!(inferred(&text), Some(brand), "{prefix}");
                }
            }
            let last = format!("{high}{:9<1$}", "", 16 - digits);
            assert_eq!(inferred(&last), expected(&last), "{last}");
            for outside in [low.checked_sub(1), high.checked_add(1)] {
                let text = format!("{:0>digits$}", outside.unwrap());
                if text.len() == digits {
                    let number = format!("{text:0<16}");
                    assert_eq!(inferred(&text), expected(&number), "{text}");
                    tried += 1;
                }
            }
        }
        assert!(tried > 100, "{tried}");
    }

    #[test]
    fn the_longest_prefix_decides() {
        let cases = [
            ("650031", Some("elo")),
            ("650034", Some("discover")),
            ("627780", Some("elo")),
            ("627781", Some("unionpay")),
            ("401178", Some("elo")),
            ("401177", Some("visa")),
            ("493698", Some("mastercard")),
            ("504175", Some("elo")),
            ("637095", Some("hipercard")),
            ("637096", Some("mastercard")),
            ("63737423", Some("hipercard")),
            ("63737424", Some("mastercard")),
            ("655020", Some("discover")),
            ("306", None),
            ("2720", Some("mastercard")),
            ("2721", None),
            ("2205", None),
            ("35", None),
            ("3527", None),
            ("3590", None),
            ("9", None),
            ("0034", None),
        ];
        for (prefix, expected) in cases {
            assert_eq!(inferred(prefix), expected, "{prefix}");
        }
    }

    #[test]
    fn names_and_numbers_lead_back_to_the_brand() {
        for brand in Brand::ALL {
            assert_eq!(Brand::parse(brand.name()), Some(brand));
            assert_eq!(Brand::from_number(brand as u8), Some(brand));
        }
        assert_eq!(Brand::from_number(0), None);
        assert_eq!(Brand::from_number(14), None);
        assert_eq!(Brand::parse("maestro"), None);
    }
}
