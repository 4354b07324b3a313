//! Settings of how much one request may ask for.

use super::finding::Finding;
use super::section::section;

const TOKENS_MAX: usize = 1_000;

section! {
    /// How much one request may ask for.
    pub struct Quotas in "quotas" {
        /// Tokens that one `POST /tokenize` may create, up to 1000.
        pub tokenize: usize = 5,
        /// Expressions that one `POST /detokenize` may hold, up to 1000.
        pub detokenize: usize = 5,
    }
}

impl Quotas {
    pub(super) fn check(&self, findings: &mut Vec<Finding>) {
        for (place, quota) in [
            ("quotas.tokenize", self.tokenize),
            ("quotas.detokenize", self.detokenize),
        ] {
            if !(1..=TOKENS_MAX).contains(&quota) {
                findings.push(Finding::error(place, "must be from 1 to 1000"));
            }
        }
    }
}
