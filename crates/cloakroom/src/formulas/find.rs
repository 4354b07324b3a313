//! Finds a formula.

use cloakroom_core::access::Permission;
use cloakroom_core::caller::Caller;
use cloakroom_formulas::Formula;

use super::Error;

/// Finds the formula with this id.
pub fn find(caller: &Caller, id: &str) -> Result<&'static Formula, Error> {
    caller.require_plain(Permission::ConnectionFormulas)?;
    cloakroom_formulas::find(id).ok_or(Error::NotFound)
}
