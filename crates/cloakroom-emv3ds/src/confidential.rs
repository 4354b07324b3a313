//! Sensitive text that is redacted in `Debug` and zeroized on drop.

use std::fmt;

use serde::{Deserialize, Serialize};
use zeroize::{Zeroize, ZeroizeOnDrop};

/// A card number or an authentication value. Serialization exposes it, because messages contain it;
/// `Debug` does not.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Zeroize, ZeroizeOnDrop)]
#[serde(transparent)]
pub struct Confidential(String);

impl Confidential {
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl From<String> for Confidential {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Debug for Confidential {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Confidential(..)")
    }
}
