//! Hash chains: how entries are encoded, signed and numbered, and the walk that verifies a chain.

pub(in crate::audit) mod chain;
pub(in crate::audit) mod chain_entry;
pub(in crate::audit) mod day;
pub(in crate::audit) mod link;
pub(in crate::audit) mod walk;
