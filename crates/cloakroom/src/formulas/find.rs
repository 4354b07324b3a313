//! One formula.

use cloakroom_formulas::Formula;

use super::Error;
use crate::access::Permission;
use crate::caller::Caller;

/// The formula with this id.
pub fn find(caller: &Caller, id: &str) -> Result<&'static Formula, Error> {
    caller.require_plain(Permission::ConnectionFormulas)?;
    cloakroom_formulas::find(id).ok_or(Error::NotFound)
}
