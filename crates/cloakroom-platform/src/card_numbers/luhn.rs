//! The Luhn check digit of card numbers.

/// Whether ASCII digits pass the Luhn check.
pub fn passes_luhn(digits: &[u8]) -> bool {
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(position, digit)| {
            let value = u32::from(digit - b'0');
            match position % 2 {
                0 => value,
                _ => value / 5 + value * 2 % 10,
            }
        })
        .sum();
    sum.is_multiple_of(10)
}
