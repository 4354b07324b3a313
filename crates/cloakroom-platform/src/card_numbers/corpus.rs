//! Measures the error rates of the detector on generated texts with and without card numbers, from fixed seeds.
//!
//! Prints the error rate of each class, and for comparison the error rate of matching every Luhn-valid number. The
//! error rate of each class is bounded.

use std::fmt::Write as _;

use super::scheme::PREFIXES;
use super::{card_numbers_in, contains_card_number, passes_luhn};

const POSITIVES_PER_CLASS: usize = 300;
const NEGATIVES_PER_CLASS: usize = 1_000;

/// SplitMix64, a deterministic generator.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    fn between(&mut self, first: u64, last: u64) -> u64 {
        first + self.below(last - first + 1)
    }

    fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }

    fn text(&mut self, alphabet: &str, length: u64) -> String {
        let alphabet: Vec<char> = alphabet.chars().collect();
        (0..length).map(|_| self.pick(&alphabet)).collect()
    }

    fn digits(&mut self, length: u64) -> String {
        self.text("0123456789", length)
    }

    /// Digits without a leading zero.
    fn number(&mut self, length: u64) -> String {
        let first = self.between(1, 9);
        format!("{first}{}", self.digits(length - 1))
    }
}

/// Generates a number with this prefix and length that passes the Luhn check.
fn complete(prefix: &str, length: usize, random: &mut Random) -> String {
    let middle = random.digits((length - prefix.len() - 1) as u64);
    let digit = (0..10).find(|digit| passes_luhn(format!("{prefix}{middle}{digit}").as_bytes()));
    format!("{prefix}{middle}{}", digit.unwrap_or_default())
}

/// Generates a number of any scheme, with the usual length of the scheme.
fn card(random: &mut Random) -> String {
    loop {
        let row = &PREFIXES[random.below(PREFIXES.len() as u64) as usize];
        if !row.scheme.has_weak_prefix() {
            let prefix = random.between(*row.range.start(), *row.range.end());
            return complete(&prefix.to_string(), row.scheme.usual_length(), random);
        }
    }
}

fn visa(random: &mut Random) -> String {
    complete("4", 16, random)
}

fn in_groups(number: &str, lengths: &[usize], separator: &str) -> String {
    let (mut rest, mut lengths) = (number, lengths.iter().cycle());
    let mut groups = Vec::new();
    while !rest.is_empty() {
        let length = lengths.next().copied().unwrap_or(4).min(rest.len());
        let (group, after) = rest.split_at(length);
        groups.push(group);
        rest = after;
    }
    groups.join(separator)
}

/// A class of texts: name, maximum error rate and generator.
type Class = (&'static str, f64, fn(&mut Random) -> String);

#[rustfmt::skip]
const POSITIVES: [Class; 17] = [
    ("any scheme", 0.0, card),
    ("sentence", 0.0, |r| format!("please charge {} for order {}", card(r), r.digits(5))),
    ("JSON", 0.0, |r| format!("{{\"pan\":\"{}\",\"exp\":\"12/30\"}}", card(r))),
    ("letters around", 0.0, |r| format!("PAN{}x", card(r))),
    ("expiry and code beside", 0.0, |r| format!("{} 12/30 {}", card(r), r.digits(3))),
    ("groups of four", 0.0, |r| { let s = r.pick(&[" ", "-", ".", "_", "\u{a0}", "+", " - ", "\u{2013}"]); in_groups(&visa(r), &[4], s) }),
    ("groups of two", 0.0, |r| in_groups(&visa(r), &[2], " ")),
    ("groups 4-6-5", 0.0, |r| { let p = r.pick(&["34", "37"]); in_groups(&complete(p, 15, r), &[4, 6, 5], "-") }),
    ("line break inside", 0.0, |r| { let at = r.between(3, 15) as usize; in_groups(&visa(r), &[at, 16], "\n") }),
    ("full-width digits", 0.0, |r| visa(r).chars().map(|c| char::from_u32(u32::from(c) - 48 + 0xff10).unwrap_or(c)).collect()),
    ("digits after", 0.0, |r| { let n = r.between(1, 12); format!("{}{}", visa(r), r.digits(n)) }),
    ("digits before", 0.02, |r| { let n = r.between(1, 12); format!("{}{}", r.digits(n), complete("51", 16, r)) }),
    ("digits on both sides", 0.0, |r| { let (n, m) = (r.between(1, 8), r.between(1, 8)); format!("{}{}{}", r.digits(n), complete("37", 15, r), r.digits(m)) }),
    ("groups of four with digits after", 0.0, |r| format!("{}{}", in_groups(&visa(r), &[4], " "), r.digits(4))),
    ("16 digits, any prefix", 0.12, |r| { let p = r.between(1, 9).to_string(); complete(&p, 16, r) }),
    ("17 to 19 digits, any prefix", 0.12, |r| { let (p, n) = (r.between(1, 9).to_string(), r.between(17, 19)); complete(&p, n as usize, r) }),
    ("Visa of 13 digits", 0.15, |r| complete("4", 13, r)),
];

fn timestamp(random: &mut Random) -> String {
    let r = random;
    format!(
        "20{:02}-{:02}-{:02}",
        r.between(15, 35),
        r.between(1, 12),
        r.between(1, 28)
    )
}

fn clock(random: &mut Random, separator: &str) -> String {
    let r = random;
    format!(
        "{:02}{separator}{:02}{separator}{:02}",
        r.below(24),
        r.below(60),
        r.below(60)
    )
}

fn barcode(random: &mut Random, length: u64) -> String {
    let start = random.digits(length - 1);
    let is_right = |digit: &u64| {
        let text = format!("{start}{digit}");
        let values = text.bytes().rev().enumerate();
        values
            .map(|(at, d)| u64::from(d - b'0') * (1 + 2 * (at as u64 % 2)))
            .sum::<u64>()
            % 10
            == 0
    };
    format!("{start}{}", (0..10).find(is_right).unwrap_or_default())
}

fn iban(random: &mut Random) -> String {
    let (country, bban) = match random.below(4) {
        0 => ("DE", random.digits(18)),
        1 => (
            "NL",
            format!(
                "{}{}",
                random.text("ABCDEFGHIKLMNOPRSTUVW", 4),
                random.digits(10)
            ),
        ),
        2 => ("ES", random.digits(20)),
        _ => ("FR", random.digits(23)),
    };
    let value = |text: &str| {
        text.bytes().fold(0_u64, |rest, byte| match byte {
            b'0'..=b'9' => (rest * 10 + u64::from(byte - b'0')) % 97,
            _ => (rest * 100 + u64::from(byte - b'A') + 10) % 97,
        })
    };
    let check = 98 - value(&format!("{bban}{country}00"));
    let iban = format!("{country}{check:02}{bban}");
    match random.below(2) {
        0 => iban,
        _ => in_groups(&iban, &[4], " "),
    }
}

fn uuid(random: &mut Random) -> String {
    let mut text = random.text("0123456789abcdef", 36);
    for (at, mark) in [(8, "-"), (13, "-"), (14, "4"), (18, "-"), (23, "-")] {
        text.replace_range(at..=at, mark);
    }
    text
}

#[rustfmt::skip]
const NEGATIVES: [Class; 28] = [
    ("UUID", 0.001, uuid),
    ("UUID in a path", 0.001, |r| format!("/tenants/{}/tokens/{}", uuid(r), uuid(r))),
    ("UUID without dashes", 0.002, |r| r.text("0123456789abcdef", 32)),
    ("ULID", 0.001, |r| format!("01{}", r.text("0123456789ABCDEFGHJKMNPQRSTVWXYZ", 24))),
    ("hex digest", 0.001, |r| { let n = r.pick(&[32, 40, 64, 128]); r.text("0123456789abcdef", n) }),
    ("KSUID", 0.001, |r| r.text("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", 27)),
    ("ISO 8601 with T", 0.0, |r| format!("{}T{}.{}Z", timestamp(r), clock(r, ":"), r.digits(3))),
    ("ISO 8601 with nanoseconds", 0.0, |r| format!("{} {}.{}+02:00", timestamp(r), clock(r, ":"), r.digits(9))),
    ("ISO 8601, two of them", 0.002, |r| format!("{} {} / {} {}", timestamp(r), clock(r, ":"), timestamp(r), clock(r, ":"))),
    ("date and time in digits", 0.0, |r| { let n = r.pick(&[0, 2, 3, 6]); format!("{}{}{}", timestamp(r).replace('-', ""), clock(r, ""), r.digits(n)) }),
    ("epoch seconds", 0.0, |r| r.between(1_300_000_000, 2_100_000_000).to_string()),
    ("epoch milliseconds", 0.0, |r| r.between(1_300_000_000_000, 2_100_000_000_000).to_string()),
    ("epoch microseconds", 0.0, |r| r.between(1_300_000_000_000_000, 2_100_000_000_000_000).to_string()),
    ("epoch nanoseconds", 0.0, |r| r.between(1_300_000_000_000_000_000, 2_100_000_000_000_000_000).to_string()),
    ("epoch with fraction", 0.0, |r| { let n = r.between(3, 9); format!("{}.{}", r.between(1_300_000_000, 2_100_000_000), r.digits(n)) }),
    ("order number to 12 digits", 0.0, |r| { let n = r.between(5, 12); format!("ORD-{}", r.number(n)) }),
    ("order number 3-7-7", 0.02, |r| format!("{}-{}-{}", r.digits(3), r.digits(7), r.digits(7))),
    ("order number with year", 0.01, |r| format!("{}-{}", r.between(2015, 2035), r.digits(8))),
    ("phone number", 0.0, |r| { let (c, n) = (r.pick(&["1", "33", "44", "49", "55", "81", "886"]), r.between(8, 10)); format!("+{c} {}", in_groups(&r.number(n), &[3], r.pick(&[" ", "-", ""]))) }),
    ("IBAN", 0.001, iban),
    ("IPv4 addresses", 0.01, |r| format!("{}.{}.{}.{}, {}.{}.{}.{}", r.below(256), r.below(256), r.below(256), r.below(256), r.below(256), r.below(256), r.below(256), r.below(256))),
    ("IPv6 address", 0.001, |r| in_groups(&r.text("0123456789abcdef", 32), &[4], ":")),
    ("prices", 0.0, |r| format!("{},{:03}.{:02} EUR, {}.{:02} EUR", r.between(1, 999), r.below(1000), r.below(100), r.below(10_000), r.below(100))),
    ("coordinates", 0.002, |r| format!("{}.{}, -{}.{}", r.below(90), r.digits(7), r.below(180), r.digits(7))),
    ("EAN-13", 0.0, |r| barcode(r, 13)),
    ("GTIN-14", 0.012, |r| barcode(r, 14)),
    ("IMEI", 0.02, |r| { let p = r.pick(&["35", "86", "01"]); complete(p, 15, r) }),
    ("decimal fraction", 0.02, |r| format!("0.{}", r.digits(12))),
];

/// Digits without context. One in ten passes the Luhn check.
#[rustfmt::skip]
const AMBIGUOUS: [Class; 6] = [
    ("13 digits", 0.04, |r| r.number(13)),
    ("14 digits", 0.02, |r| r.number(14)),
    ("15 digits", 0.05, |r| r.number(15)),
    ("16 digits", 0.14, |r| r.number(16)),
    ("17 to 19 digits", 0.25, |r| { let n = r.between(17, 19); r.number(n) }),
    ("20 to 22 digits", 0.35, |r| { let n = r.between(20, 22); r.number(n) }),
];

/// Prints the error rates. Returns the number of texts and the classes over their maximum.
fn measure(title: &str, classes: &[Class], count: usize, expected: bool) -> (usize, Vec<String>) {
    let mut table = format!("{title:34} wrong   rate  any Luhn\n");
    let mut failures = Vec::new();
    let mut tried = 0;
    for (seed, (name, max_rate, make)) in classes.iter().enumerate() {
        let mut random = Random(seed as u64 + 1);
        let texts: Vec<String> = (0..count).map(|_| make(&mut random)).collect();
        let wrong = texts
            .iter()
            .filter(|text| contains_card_number(text) != expected);
        let (wrong, first) = (wrong.clone().count(), wrong.clone().next());
        let by_luhn = texts
            .iter()
            .filter(|text| card_numbers_in(text).is_empty() == expected);
        let share = |count: usize| count as f64 / texts.len() as f64;
        let (rate, luhn) = (share(wrong), share(by_luhn.count()));
        let _ = writeln!(table, "{name:34} {wrong:5}  {rate:5.3}     {luhn:5.3}");
        if *max_rate < rate {
            failures.push(format!("{name}: {rate} over {max_rate}, as in {first:?}"));
        }
        tried += texts.len();
    }
    #[expect(clippy::print_stdout, reason = "the test reports the error rates")]
    {
        print!("{table}");
    }
    (tried, failures)
}

#[test]
fn error_rates_are_bounded() {
    let (positives, false_negatives) =
        measure("card numbers", &POSITIVES, POSITIVES_PER_CLASS, true);
    let (negatives, false_positives) =
        measure("no card numbers", &NEGATIVES, NEGATIVES_PER_CLASS, false);
    let (_, ambiguous) = measure("digits alone", &AMBIGUOUS, NEGATIVES_PER_CLASS, false);

    assert!(positives >= 2_000 && negatives >= 10_000);
    let failures = [false_negatives, false_positives, ambiguous].concat();
    assert!(failures.is_empty(), "{failures:#?}");
}

/// Every scheme is detected at both ends of each of its ranges, at each of its lengths.
#[test]
fn every_scheme_is_detected() {
    let mut random = Random(7);
    for row in &PREFIXES {
        for prefix in [*row.range.start(), *row.range.end()] {
            for length in row.scheme.lengths() {
                // At other than the usual length, numbers that are valid barcodes are not detected.
                let found = (0..20).filter(|_| {
                    let number = complete(&prefix.to_string(), *length, &mut random);
                    contains_card_number(&number)
                });
                let least = if *length == row.scheme.usual_length() {
                    20
                } else {
                    12
                };
                assert!(found.count() >= least, "{:?} {prefix} {length}", row.scheme);
            }
        }
    }
}
