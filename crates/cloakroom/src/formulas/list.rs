//! Lists formulas.

use cloakroom_core::access::Permission;
use cloakroom_core::caller::Caller;
use cloakroom_formulas::{Filter, Formula};
use cloakroom_platform::api::NumberedPage;

use super::Error;

/// A page of formulas, sorted by id, and the total count.
#[derive(Debug)]
pub struct FormulaPage {
    pub items: Vec<&'static Formula>,
    pub total: u64,
}

/// Lists the formulas that match a filter.
pub fn list(caller: &Caller, filter: &Filter, page: NumberedPage) -> Result<FormulaPage, Error> {
    caller.require_plain(Permission::ConnectionFormulas)?;
    let admitted: Vec<_> = filter.formulas().collect();
    let before = usize::try_from(page.offset()).unwrap_or(usize::MAX);
    let items = admitted.iter().copied().skip(before).take(page.size);
    Ok(FormulaPage {
        items: items.collect(),
        total: admitted.len() as u64,
    })
}
