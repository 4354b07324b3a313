//! Tests of documented prefixes.

use super::*;

fn inferred(prefix: &str) -> Option<&'static str> {
    let number = format!("{prefix:0<16}");
    Brand::infer(CardNumber::parse(&number).unwrap()).map(Brand::name)
}

/// The documented table: brands and their prefixes.
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

/// Looks up a number in the documented table by linear search.
fn expected(number: &str) -> Option<&'static str> {
    let holds = |(_, low, high, digits): &&(&str, u64, u64, usize)| {
        (*low..=*high).contains(&number[..*digits].parse().unwrap())
    };
    let rows = documented();
    let longest = rows.iter().filter(holds).max_by_key(|row| row.3);
    longest.map(|(brand, ..)| *brand)
}

#[test]
fn every_documented_prefix_is_inferred_up_to_its_bounds() {
    let mut tried = 0;
    for (brand, low, high, digits) in documented() {
        let inside = [low, u64::midpoint(low, high), high];
        for prefix in inside {
            let text = format!("{prefix}");
            let number = format!("{text:0<16}");
            assert_eq!(inferred(&text), expected(&number), "{prefix}");
            // A shorter prefix may contain a longer one of another brand; six digits never do.
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
fn the_longest_prefix_wins() {
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
fn brands_round_trip_through_names_and_numbers() {
    for brand in Brand::ALL {
        assert_eq!(Brand::parse(brand.name()), Some(brand));
        assert_eq!(Brand::from_number(brand as u8), Some(brand));
    }
    assert_eq!(Brand::from_number(0), None);
    assert_eq!(Brand::from_number(14), None);
    assert_eq!(Brand::parse("maestro"), None);
}
