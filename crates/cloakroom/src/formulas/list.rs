//! The formulas of a page.

use cloakroom_formulas::{Filter, Formula};

use super::Error;
use crate::access::Permission;
use crate::api::NumberedPage;
use crate::caller::Caller;

/// A page of formulas, by id, and how many there are on all pages.
#[derive(Debug)]
pub struct Listed {
    pub items: Vec<&'static Formula>,
    pub total: u64,
}

/// Lists the formulas that a filter admits.
pub fn list(caller: &Caller, filter: &Filter, page: NumberedPage) -> Result<Listed, Error> {
    caller.require_plain(Permission::ConnectionFormulas)?;
    let admitted: Vec<_> = filter.formulas().collect();
    let before = usize::try_from(page.offset()).unwrap_or(usize::MAX);
    let items = admitted.iter().copied().skip(before).take(page.size);
    Ok(Listed {
        items: items.collect(),
        total: admitted.len() as u64,
    })
}
