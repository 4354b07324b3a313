//! Random bytes, identifiers and text from the provider's generator.

use aws_lc_rs::rand;
use zeroize::Zeroizing;

const BASE58: &[u8; 58] = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";

pub fn random_bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    fill(&mut bytes);
    bytes
}

/// Text of `length` characters, each of the 58 equally likely (5.86 bits per character).
pub fn random_base58(length: usize) -> String {
    // The largest multiple of 58 below 256. Rejecting larger bytes avoids modulo bias.
    const LIMIT: u8 = 232;
    let mut text = String::with_capacity(length);
    let mut pool = Zeroizing::new([0; 64]);
    while text.len() < length {
        fill(pool.as_mut_slice());
        let missing = length - text.len();
        let unbiased = pool.iter().filter(|byte| **byte < LIMIT);
        text.extend(
            unbiased
                .take(missing)
                .map(|byte| char::from(BASE58[usize::from(byte % 58)])),
        );
    }
    text
}

/// The bytes of a random (version 4) UUID.
pub fn random_uuid_v4_bytes() -> [u8; 16] {
    let mut bytes = random_bytes::<16>();
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    bytes
}

/// Fills `bytes` with cryptographically secure random bytes.
pub fn fill(bytes: &mut [u8]) {
    #[expect(
        clippy::expect_used,
        reason = "the provider aborts the process when it has no entropy"
    )]
    rand::fill(bytes).expect("random bytes from the provider");
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn base58_text_has_the_requested_length_and_alphabet() {
        for length in [0, 1, 22, 63, 64, 65, 500] {
            let text = random_base58(length);
            assert_eq!(text.len(), length);
            assert!(text.bytes().all(|byte| BASE58.contains(&byte)), "{text}");
        }
    }

    #[test]
    fn base58_characters_are_uniform() {
        let draws = 58_000;
        let mut counts = [0_u32; 256];
        for byte in random_base58(draws).bytes() {
            counts[usize::from(byte)] += 1;
        }

        // Chi-squared with 57 degrees of freedom exceeds 150 about once in 10^10 runs, while a
        // plain modulo gives about 2000.
        let expected = draws as f64 / 58.0;
        let chi_squared: f64 = BASE58
            .iter()
            .map(|byte| (f64::from(counts[usize::from(*byte)]) - expected).powi(2) / expected)
            .sum();
        assert!(chi_squared < 150.0, "{chi_squared}");
    }

    #[test]
    fn uuids_are_version_4_and_differ() {
        let uuids: HashSet<_> = (0..100).map(|_| random_uuid_v4_bytes()).collect();

        assert_eq!(uuids.len(), 100);
        for uuid in uuids {
            assert_eq!((uuid[6] >> 4, uuid[8] >> 6), (4, 2));
        }
    }
}
