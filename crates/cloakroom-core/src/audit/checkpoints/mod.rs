//! Checkpoints: signed notes that commit to the heads of all chains, and their shipment.

pub(in crate::audit) mod access_summary;
pub(in crate::audit) mod checkpoint;
pub(in crate::audit) mod close_day;
pub(in crate::audit) mod note;
pub(in crate::audit) mod shipment;
pub(in crate::audit) mod state;
