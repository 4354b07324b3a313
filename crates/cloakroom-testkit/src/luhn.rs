//! Luhn check of card numbers.

pub fn passes_luhn(number: &str) -> bool {
    let digits = number.bytes().rev().map(|digit| u32::from(digit - b'0'));
    let values = digits
        .enumerate()
        .map(|(position, digit)| match position % 2 {
            0 => digit,
            _ => digit / 5 + digit * 2 % 10,
        });
    values.sum::<u32>().is_multiple_of(10)
}
