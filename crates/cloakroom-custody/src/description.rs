//! What a provider reports about its root key, for `cloakroom doctor`.

use std::time::Duration;

/// The state of a root key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Description {
    /// The provider and the id of the root key.
    pub root: String,
    /// Time of a round trip: wrap, then unwrap.
    pub round_trip: Duration,
    pub weaknesses: Vec<Weakness>,
}

/// A choice that weakens the protection of the root key, with its remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Weakness(pub String);
