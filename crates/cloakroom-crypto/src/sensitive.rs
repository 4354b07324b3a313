//! `Sensitive`: a wrapper for plaintext that is redacted in `Debug` output and zeroized on drop.

use std::fmt;
use std::mem;

use zeroize::Zeroize;

/// Plaintext that must not be printed, copied by accident or left in freed memory.
///
/// ```
/// use cloakroom_crypto::Sensitive;
///
/// let number = Sensitive::new(String::from("4242"));
/// assert_eq!(format!("{number:?}"), "***");
/// assert_eq!(number.expose(), "4242");
/// ```
///
/// It cannot be displayed, cloned or serialized:
///
/// ```compile_fail,E0277
/// let number = cloakroom_crypto::Sensitive::new(String::from("4242"));
/// let _ = format!("{number}");
/// ```
/// ```compile_fail,E0599
/// let number = cloakroom_crypto::Sensitive::new(String::from("4242"));
/// let _ = number.clone();
/// ```
/// ```compile_fail,E0277
/// let number = cloakroom_crypto::Sensitive::new(String::from("4242"));
/// let _ = serde_json::to_string(&number);
/// ```
pub struct Sensitive<T: Zeroize>(T);

impl<T: Zeroize> Sensitive<T> {
    pub fn new(value: T) -> Self {
        Self(value)
    }

    pub fn expose(&self) -> &T {
        &self.0
    }

    /// Caution: growing a `Vec` or `String` may reallocate and leave the old bytes in freed memory.
    pub fn expose_mut(&mut self) -> &mut T {
        &mut self.0
    }

    /// Removes the protection. Use it only to move the value into a type that also zeroizes.
    pub fn into_inner(mut self) -> T
    where
        T: Default,
    {
        mem::take(&mut self.0)
    }
}

impl<T: Zeroize> Drop for Sensitive<T> {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl<T: Zeroize> fmt::Debug for Sensitive<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("***")
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn values_are_zeroized_on_drop() {
        static ZEROIZED: AtomicBool = AtomicBool::new(false);
        struct Probe;
        impl Zeroize for Probe {
            fn zeroize(&mut self) {
                ZEROIZED.store(true, Ordering::Relaxed);
            }
        }

        drop(Sensitive::new(Probe));

        assert!(ZEROIZED.load(Ordering::Relaxed));
    }

    #[test]
    fn debug_output_is_redacted_inside_other_types() {
        #[derive(Debug)]
        #[expect(dead_code, reason = "only its Debug output is tested")]
        struct Card {
            number: Sensitive<String>,
        }

        let card = Card {
            number: Sensitive::new("4242".into()),
        };

        assert_eq!(format!("{card:?}"), "Card { number: *** }");
    }
}
