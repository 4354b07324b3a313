//! Reproducible pseudo-random choices, and the sizes of randomized tests.

use cloakroom_crypto::random_bytes;

/// Seeded pseudo-random generator. Prints its seed, which the test runner shows on failure; set
/// `CLOAKROOM_TEST_SEED` to repeat a run.
pub struct SeededRng(u64);

impl SeededRng {
    pub fn from_environment() -> Self {
        let seed = number("CLOAKROOM_TEST_SEED")
            .unwrap_or_else(|| u64::from_le_bytes(random_bytes::<8>()) >> 1);
        println!("CLOAKROOM_TEST_SEED={seed}");
        Self(seed)
    }

    /// An independent generator for concurrent work.
    pub fn fork(&mut self) -> Self {
        Self(self.next())
    }

    /// SplitMix64: small, and good enough for test choices.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).unwrap()
    }

    pub fn one_in(&mut self, many: usize) -> bool {
        self.below(many) == 0
    }

    pub fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len())]
    }
}

/// Number of random calls a test makes: `CLOAKROOM_TEST_CALLS`, or `default`, which fits the CI time budget.
pub fn calls(default: usize) -> usize {
    number_or("CLOAKROOM_TEST_CALLS", default)
}

/// The environment variable `name` as a number, or `default`, which fits the CI time budget.
pub fn number_or(name: &str, default: usize) -> usize {
    number(name).map_or(default, |count| usize::try_from(count).unwrap())
}

#[expect(
    clippy::disallowed_methods,
    reason = "the environment sets the size of randomized tests"
)]
fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap())
}
