//! Failures of the machine that hosts the cluster, which say nothing about the vault.

use std::fmt;

/// Exit code of a run that the machine failed: `EX_TEMPFAIL` of sysexits.h. `cargo xtask faults` retries such a run once,
/// and never one that violated an invariant.
pub(crate) const EXIT_CODE: u8 = 75;

/// Marks an error as a failure of the machine, as its context.
#[derive(Debug)]
pub(crate) struct MachineFailure;

impl fmt::Display for MachineFailure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the machine that hosts the cluster failed")
    }
}
