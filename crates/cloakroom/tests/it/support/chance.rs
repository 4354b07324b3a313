//! Chance that can be repeated, and how much of it a test takes.

use cloakroom_crypto::random_bytes;

/// Pseudo-random choices. The seed is printed, which the runner shows when the test fails, and can
/// be given back in `CLOAKROOM_TEST_SEED`.
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new() -> Self {
        let seed = number("CLOAKROOM_TEST_SEED")
            .unwrap_or_else(|| u64::from_le_bytes(random_bytes::<8>()) >> 1);
        println!("CLOAKROOM_TEST_SEED={seed}");
        Self(seed)
    }

    /// Another one that goes its own way, for work that runs beside this.
    pub(crate) fn fork(&mut self) -> Self {
        Self(self.next())
    }

    /// SplitMix64: small, and good enough for choices.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).unwrap()
    }

    pub(crate) fn one_in(&mut self, many: usize) -> bool {
        self.below(many) == 0
    }

    pub(crate) fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len())]
    }
}

/// How many random calls a test makes: `CLOAKROOM_TEST_CALLS`, or what the pipeline has time for.
pub(crate) fn calls(default: usize) -> usize {
    number_or("CLOAKROOM_TEST_CALLS", default)
}

/// The number that the environment gives a name, or what the pipeline has time for.
pub(crate) fn number_or(name: &str, default: usize) -> usize {
    number(name).map_or(default, |count| usize::try_from(count).unwrap())
}

#[expect(
    clippy::disallowed_methods,
    reason = "tests are told their size by the environment"
)]
fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap())
}
