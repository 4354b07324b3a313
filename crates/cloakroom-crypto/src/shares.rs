//! Shamir's secret sharing of a root key over GF(2^8): any `threshold` shares restore it, fewer reveal nothing.
//!
//! The field is that of AES (polynomial `0x11b`), as in HashiCorp Vault. No table is indexed with a secret and no branch
//! depends on one. Written here because the published crates are unmaintained, bring a big-integer stack, or were
//! biased (RUSTSEC-2024-0398).

use zeroize::Zeroizing;

use crate::{Error, KEY_BYTES, Key, RootKek, Sensitive, random};

/// The number of a share is a non-zero field element.
pub const SHARES_MAX: u8 = 255;

const THRESHOLD_MIN: u8 = 2;
const POLYNOMIAL: u8 = 0x1b;

/// One share: the values of 32 polynomials at a point that is not zero.
pub struct Share {
    number: u8,
    values: Sensitive<Vec<u8>>,
}

impl Share {
    /// Reads a share from its number and its 32 bytes.
    pub fn new(number: u8, values: Sensitive<Vec<u8>>) -> Result<Self, Error> {
        match (number, values.expose().len()) {
            (0, _) => Err(Error::Shares),
            (_, KEY_BYTES) => Ok(Self { number, values }),
            _ => Err(Error::KeyLength),
        }
    }

    pub fn number(&self) -> u8 {
        self.number
    }

    /// The secret bytes, for the custodian.
    pub fn expose(&self) -> &[u8] {
        self.values.expose()
    }
}

/// Splits a root key into `count` shares, of which any `threshold` restore it.
///
/// ```
/// use cloakroom_crypto::{Key, RootKek, combine_shares, split_into_shares};
///
/// let root = Key::<RootKek>::generate();
/// let shares = split_into_shares(&root, 2, 3)?;
/// assert_eq!(combine_shares(&shares[1..])?.check_value(), root.check_value());
/// # Ok::<(), cloakroom_crypto::Error>(())
/// ```
pub fn split_into_shares(
    root: &Key<RootKek>,
    threshold: u8,
    count: u8,
) -> Result<Vec<Share>, Error> {
    if threshold < THRESHOLD_MIN || threshold > count {
        return Err(Error::Threshold);
    }
    // One polynomial per byte of the key; coefficient 0 is that byte. A leading coefficient may be zero: excluding it
    // would reveal something about the key.
    let mut coefficients = Zeroizing::new(vec![[0; KEY_BYTES]; threshold.into()]);
    for (power, row) in coefficients.iter_mut().enumerate() {
        match power {
            0 => row.copy_from_slice(root.secret()),
            _ => random::fill(row),
        }
    }
    (1..=count)
        .map(|number| Share::new(number, evaluate(&coefficients, number)))
        .collect()
}

/// Restores a root key from shares. Too few or foreign shares yield another key: compare its check value.
pub fn combine_shares(shares: &[Share]) -> Result<Key<RootKek>, Error> {
    let mut secret = Sensitive::new(vec![0; KEY_BYTES]);
    for (position, share) in shares.iter().enumerate() {
        let mut weight = 1;
        for (other_position, other) in shares.iter().enumerate() {
            if position == other_position {
                continue;
            }
            let difference = share.number ^ other.number;
            if difference == 0 {
                return Err(Error::Shares);
            }
            weight = multiply(weight, multiply(other.number, invert(difference)));
        }
        for (byte, value) in secret.expose_mut().iter_mut().zip(share.expose()) {
            *byte ^= multiply(*value, weight);
        }
    }
    Key::from_bytes(&secret)
}

/// The value of each polynomial at `point`, by Horner's rule.
fn evaluate(coefficients: &[[u8; KEY_BYTES]], point: u8) -> Sensitive<Vec<u8>> {
    let mut values = Sensitive::new(vec![0; KEY_BYTES]);
    for row in coefficients.iter().rev() {
        for (value, coefficient) in values.expose_mut().iter_mut().zip(row) {
            *value = multiply(*value, point) ^ coefficient;
        }
    }
    values
}

/// Multiplies in GF(2^8), in constant time.
fn multiply(mut a: u8, b: u8) -> u8 {
    let mut product = 0;
    for bit in 0..8 {
        product ^= a & 0_u8.wrapping_sub((b >> bit) & 1);
        a = (a << 1) ^ (POLYNOMIAL & 0_u8.wrapping_sub(a >> 7));
    }
    product
}

/// The multiplicative inverse, a^254. Zero has none and yields zero.
fn invert(a: u8) -> u8 {
    let mut result = 1;
    let mut power = a;
    for _ in 0..7 {
        power = multiply(power, power);
        result = multiply(result, power);
    }
    result
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn secret_of(shares: &[Share]) -> Vec<u8> {
        combine_shares(shares).unwrap().secret().to_vec()
    }

    fn copy(shares: &[Share], positions: &[usize]) -> Vec<Share> {
        let copy = |position: &usize| {
            let share = &shares[*position];
            Share::new(share.number, Sensitive::new(share.expose().to_vec())).unwrap()
        };
        positions.iter().map(copy).collect()
    }

    #[test]
    fn multiplication_matches_the_published_examples() {
        // FIPS 197, 4.2.
        for (a, b, product) in [(0x57, 0x83, 0xc1), (0x57, 0x13, 0xfe), (0, 7, 0), (1, 9, 9)] {
            assert_eq!(multiply(a, b), product);
            assert_eq!(multiply(b, a), product);
        }
        for a in 1..=255 {
            assert_eq!(multiply(a, invert(a)), 1, "{a}");
        }
    }

    /// The vectors were made by PyPI `pyshamir` 1.1.0, a port of HashiCorp Vault's implementation.
    #[test]
    fn shares_of_another_implementation_combine() {
        let vectors: Value = serde_json::from_str(include_str!("../vectors/shares.json")).unwrap();
        for vector in vectors.as_array().unwrap() {
            let threshold = usize::try_from(vector["threshold"].as_u64().unwrap()).unwrap();
            let share = |share: &Value| {
                let number = u8::try_from(share["index"].as_u64().unwrap()).unwrap();
                let values = hex::decode(share["value"].as_str().unwrap()).unwrap();
                Share::new(number, Sensitive::new(values)).unwrap()
            };
            let shares: Vec<Share> = vector["shares"]
                .as_array()
                .unwrap()
                .iter()
                .map(share)
                .collect();
            for start in 0..=shares.len() - threshold {
                let secret = hex::encode(secret_of(&shares[start..start + threshold]));
                assert_eq!(secret, vector["secret"].as_str().unwrap());
            }
        }
    }

    #[test]
    fn every_quorum_restores_the_key_and_fewer_shares_do_not() {
        let root = Key::<RootKek>::generate();
        let shares = split_into_shares(&root, 3, 5).unwrap();

        for a in 0..5 {
            for b in a + 1..5 {
                assert!(secret_of(&copy(&shares, &[a, b])) != root.secret());
                for c in b + 1..5 {
                    assert!(secret_of(&copy(&shares, &[c, a, b])) == root.secret());
                }
            }
        }
        assert!(secret_of(&copy(&shares, &[0, 1, 2, 3])) == root.secret());
        assert_eq!(
            combine_shares(&copy(&shares, &[0, 1, 0])).err(),
            Some(Error::Shares)
        );
    }

    /// With one share fixed, every value of a key byte is possible: the other coefficient is uniform.
    #[test]
    fn one_share_of_two_is_uniform() {
        let root = Key::from_bytes(&Sensitive::new(vec![0; 32])).unwrap();
        let mut counts = [0_u32; 256];
        let draws = 1_600;
        for _ in 0..draws {
            for byte in split_into_shares(&root, 2, 2).unwrap()[0].expose() {
                counts[usize::from(*byte)] += 1;
            }
        }
        // Chi-squared with 255 degrees of freedom exceeds 420 about once in 10^10 runs.
        let expected = f64::from(draws) * 32.0 / 256.0;
        let chi_squared: f64 = counts
            .iter()
            .map(|count| (f64::from(*count) - expected).powi(2) / expected)
            .sum();
        assert!(chi_squared < 420.0, "{chi_squared}");
    }

    #[test]
    fn impossible_thresholds_and_numbers_are_rejected() {
        let root = Key::<RootKek>::generate();
        for (threshold, count) in [(0, 3), (1, 3), (4, 3), (2, 1)] {
            let result = split_into_shares(&root, threshold, count);
            assert_eq!(result.err(), Some(Error::Threshold));
        }
        assert_eq!(split_into_shares(&root, 255, 255).unwrap().len(), 255);
        let zero = Share::new(0, Sensitive::new(vec![0; 32]));
        assert_eq!(zero.err(), Some(Error::Shares));
        let short = Share::new(1, Sensitive::new(vec![0; 31]));
        assert_eq!(short.err(), Some(Error::KeyLength));
    }
}
