//! Values with many digits that are not card numbers, recognized by their format or check digits.

use std::net::Ipv6Addr;
use std::ops::Range;

const UUID_LENGTH: usize = 36;
/// Hexadecimal digests: MD5, SHA-1, SHA-224, SHA-256, SHA-384 and SHA-512.
const DIGEST_LENGTHS: [usize; 6] = [32, 40, 56, 64, 96, 128];
/// Minimum number of distinct letters, to distinguish a digest from packed decimal digits with filler.
const DIGEST_LETTERS_MIN: u32 = 4;
const IBAN_LENGTH_MAX: usize = 34;
const IPV6_LENGTH_MAX: usize = 45;
/// Maximum number of digits of phone numbers in use, including the country code.
const PHONE_DIGITS_MAX: usize = 13;

/// Finds the first UUID in text.
pub(super) fn find_uuid(text: &str) -> Option<Range<usize>> {
    find_word(text, |word| {
        let uuid = word.get(..UUID_LENGTH)?;
        is_uuid(uuid).then_some(UUID_LENGTH)
    })
}

/// Finds the first UUID, digest, IBAN, IPv6 address or international phone number in text.
pub(super) fn find_known(text: &str) -> Option<Range<usize>> {
    find_word(text, |word| {
        let uuid = word.get(..UUID_LENGTH).filter(|uuid| is_uuid(uuid));
        uuid.map(str::len)
            .or_else(|| digest_length(word))
            .or_else(|| iban_length(word))
            .or_else(|| ipv6_length(word))
            .or_else(|| phone_length(word))
    })
}

/// Finds the first word for which `recognize` returns a length. Words are delimited by characters that are not
/// alphanumeric.
fn find_word(text: &str, recognize: impl Fn(&str) -> Option<usize>) -> Option<Range<usize>> {
    let mut is_inside = false;
    for (start, character) in text.char_indices() {
        let begins = !is_inside && (character.is_alphanumeric() || character == '+');
        is_inside = character.is_alphanumeric();
        if !begins {
            continue;
        }
        let word = &text[start..];
        if let Some(length) = recognize(word)
            && let Some(rest) = word.get(length..)
            && !rest.starts_with(char::is_alphanumeric)
        {
            return Some(start..start + length);
        }
    }
    None
}

/// Whether text is a UUID that cannot contain a card number. Half of a UUID is as long as a card number, so both halves
/// must contain a letter.
fn is_uuid(text: &str) -> bool {
    let is_shaped = text.bytes().enumerate().all(|(at, byte)| match at {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    });
    let has_letter = |half: &str| half.contains(|c: char| c.is_ascii_alphabetic());
    is_shaped && has_letter(&text[..18]) && has_letter(&text[19..])
}

fn digest_length(word: &str) -> Option<usize> {
    let longest = word.bytes().take(DIGEST_LENGTHS[5] + 1);
    let length = longest.take_while(u8::is_ascii_hexdigit).count();
    let letters = word[..length]
        .bytes()
        .filter(u8::is_ascii_alphabetic)
        .fold(0_u32, |seen, letter| {
            seen | 1 << (letter.to_ascii_lowercase() - b'a')
        });
    let is_digest = DIGEST_LENGTHS.contains(&length) && DIGEST_LETTERS_MIN <= letters.count_ones();
    is_digest.then_some(length)
}

/// IBAN length by country, from the IBAN registry.
#[rustfmt::skip]
const IBANS: [(&str, usize); 84] = [
    ("AD", 24), ("AE", 23), ("AL", 28), ("AT", 20), ("AZ", 28), ("BA", 20), ("BE", 16), ("BG", 22), ("BH", 22),
    ("BI", 27), ("BR", 29), ("BY", 28), ("CH", 21), ("CR", 22), ("CY", 28), ("CZ", 24), ("DE", 22), ("DJ", 27),
    ("DK", 18), ("DO", 28), ("EE", 20), ("EG", 29), ("ES", 24), ("FI", 18), ("FK", 18), ("FO", 18), ("FR", 27),
    ("GB", 22), ("GE", 22), ("GI", 23), ("GL", 18), ("GR", 27), ("GT", 28), ("HR", 21), ("HU", 28), ("IE", 22),
    ("IL", 23), ("IQ", 23), ("IS", 26), ("IT", 27), ("JO", 30), ("KW", 30), ("KZ", 20), ("LB", 28), ("LC", 32),
    ("LI", 21), ("LT", 20), ("LU", 20), ("LV", 21), ("LY", 25), ("MC", 27), ("MD", 24), ("ME", 22), ("MK", 19),
    ("MN", 20), ("MR", 27), ("MT", 31), ("MU", 30), ("NI", 28), ("NL", 18), ("NO", 15), ("OM", 23), ("PK", 24),
    ("PL", 28), ("PS", 29), ("PT", 25), ("QA", 29), ("RO", 24), ("RS", 22), ("RU", 33), ("SA", 24), ("SC", 31),
    ("SD", 18), ("SE", 24), ("SI", 19), ("SK", 24), ("SM", 27), ("SO", 23), ("ST", 25), ("SV", 28), ("TL", 23),
    ("TN", 24), ("TR", 26), ("UA", 29),
];

/// Returns the length of an IBAN in text, with or without spaces, if its length and check digits are valid.
fn iban_length(word: &str) -> Option<usize> {
    let (country, check) = word.as_bytes().first_chunk::<4>()?.split_at(2);
    if !country.iter().all(u8::is_ascii_alphabetic) || !check.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let is_country = |code: &str| code.as_bytes().eq_ignore_ascii_case(country);
    let (_, wanted) = IBANS.iter().find(|(code, _)| is_country(code))?;
    let mut characters: Vec<u8> = Vec::with_capacity(IBAN_LENGTH_MAX);
    for (at, byte) in word.bytes().enumerate() {
        match byte {
            b' ' => continue,
            _ if byte.is_ascii_alphanumeric() => characters.push(byte.to_ascii_uppercase()),
            _ => return None,
        }
        if characters.len() == *wanted {
            characters.rotate_left(4);
            return (remainder_of_97(&characters) == 1).then_some(at + 1);
        }
    }
    None
}

fn remainder_of_97(characters: &[u8]) -> u32 {
    characters.iter().fold(0, |remainder, byte| match byte {
        b'0'..=b'9' => (remainder * 10 + u32::from(byte - b'0')) % 97,
        _ => (remainder * 100 + u32::from(byte - b'A') + 10) % 97,
    })
}

fn ipv6_length(word: &str) -> Option<usize> {
    let is_part = |byte: &u8| byte.is_ascii_hexdigit() || *byte == b':';
    // A group of an address has at most four digits.
    if !word.bytes().take(5).any(|byte| byte == b':') {
        return None;
    }
    let length = word
        .bytes()
        .take(IPV6_LENGTH_MAX)
        .take_while(is_part)
        .count();
    let address = word[..length].trim_end_matches(':');
    address.parse::<Ipv6Addr>().ok().map(|_| address.len())
}

/// Matches `+`, a country code and a number, with or without spaces and dashes.
fn phone_length(word: &str) -> Option<usize> {
    let number = word.strip_prefix('+')?;
    let is_part = |byte: &u8| byte.is_ascii_digit() || b" -().".contains(byte);
    let length = number.bytes().take_while(is_part).count();
    let digits = number[..length].bytes().filter(u8::is_ascii_digit).count();
    let length = number[..length].trim_end_matches(|c: char| !c.is_ascii_digit());
    (digits <= PHONE_DIGITS_MAX && !length.is_empty()).then_some(1 + length.len())
}

/// Whether a run of digits is a timestamp: milliseconds, microseconds or nanoseconds since the Unix epoch, or the
/// digits of a date and a time of day.
pub(super) fn is_time(run: &[u8]) -> bool {
    let value = |range: Range<usize>| {
        let digits = run.get(range).unwrap_or_default();
        digits
            .iter()
            .fold(0_u64, |value, digit| value * 10 + u64::from(digit - b'0'))
    };
    // From 2010 to 2039-09; 2200 is the first prefix of Mir.
    let is_since_1970 = matches!(run.len(), 13 | 16 | 19) && (1_262..2_200).contains(&value(0..4));
    let is_date_and_time = (14..=20).contains(&run.len())
        && (1_970..2_100).contains(&value(0..4))
        && (1..=12).contains(&value(4..6))
        && (1..=31).contains(&value(6..8))
        && value(8..10) < 24
        && value(10..12) < 60
        && value(12..14) < 60;
    is_since_1970 || is_date_and_time
}

/// Whether a run of digits is a valid GTIN-13 or GTIN-14 barcode.
pub(super) fn is_barcode(run: &[u8]) -> bool {
    let sum: u32 = run
        .iter()
        .rev()
        .enumerate()
        .map(|(position, digit)| u32::from(digit - b'0') * (1 + 2 * (position as u32 % 2)))
        .sum();
    (13..=14).contains(&run.len()) && sum.is_multiple_of(10)
}
