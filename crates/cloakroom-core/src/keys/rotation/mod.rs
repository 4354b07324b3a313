//! What replaces keys: versions and their states, wrapping again, sealing again, and what tells nodes of it.

mod fence;
mod generation;
mod reseal;
mod rewrap;
mod store;
mod versions;

pub(super) use self::generation::Generation;
pub use self::reseal::{ResealedPage, SEALED_IDENTITY, ScannedPage};
pub use self::rewrap::Rewrapped;
pub use self::versions::{
    KeyVersion, NewKek, NewVersion, Transition, change_state, count_change, raise_digest_fence,
};
