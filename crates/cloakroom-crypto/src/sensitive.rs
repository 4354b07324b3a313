//! `Sensitive`: the holder of plaintext, which prints nothing and is wiped when dropped.

use std::fmt;
use std::mem;

use zeroize::Zeroize;

/// Plaintext that must not be printed, copied by accident, or left in freed memory.
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

    /// Growing a `Vec` or `String` in place may move it and leave the old bytes behind.
    pub fn expose_mut(&mut self) -> &mut T {
        &mut self.0
    }

    /// Gives up the protection; for handing the value to a type that wipes it as well.
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
    fn a_dropped_value_is_wiped() {
        static WIPED: AtomicBool = AtomicBool::new(false);
        struct Witness;
        impl Zeroize for Witness {
            fn zeroize(&mut self) {
                WIPED.store(true, Ordering::Relaxed);
            }
        }

        drop(Sensitive::new(Witness));

        assert!(WIPED.load(Ordering::Relaxed));
    }

    #[test]
    fn debug_shows_nothing_even_inside_another_type() {
        #[derive(Debug)]
        #[expect(dead_code, reason = "only its Debug is looked at")]
        struct Card {
            number: Sensitive<String>,
        }

        let card = Card {
            number: Sensitive::new("4242".into()),
        };

        assert_eq!(format!("{card:?}"), "Card { number: *** }");
    }
}
