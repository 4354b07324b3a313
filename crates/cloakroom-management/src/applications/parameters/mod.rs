//! Query parameters of the routes of this module.

use cloakroom_core::access::ApplicationKind;
use cloakroom_platform::api::{FieldError, NumberedPage, Query};
use uuid::Uuid;

use super::Filter;
use super::application::parse_kind;

const IDS_MAX: usize = 100;
const SIZE_MAX: usize = 100;

/// Parses the filter and page of a list of applications. `start` and unknown parameters are ignored.
pub(super) fn read_list(query: Option<&str>) -> Result<(Filter, NumberedPage), Vec<FieldError>> {
    let mut query = Query::decode(query, &["id", "page", "size", "type"]);
    let filter = filter(&mut query);
    let page = NumberedPage::new(query.number("page"), query.number("size"), SIZE_MAX);
    query.finish(filter, page)
}

/// Parses the filter of a list of keys.
pub(super) fn read_keys(query: Option<&str>) -> Result<Filter, Vec<FieldError>> {
    let mut query = Query::decode(query, &["id", "type"]);
    let filter = filter(&mut query);
    query.finish(filter, Ok(())).map(|(filter, ())| filter)
}

/// Parses the application type of a list of permissions.
pub(super) fn read_kind(query: Option<&str>) -> Result<Option<ApplicationKind>, Vec<FieldError>> {
    const NAME: &str = "application_type";
    let mut query = Query::decode(query, &[NAME]);
    let kind = query.once(NAME);
    let kind = kind.and_then(|name| query.check(NAME, parse_kind(&name)));
    query.finish(kind, Ok(())).map(|(kind, ())| kind)
}

/// Parses ids and types, each of which may be repeated.
fn filter(query: &mut Query) -> Filter {
    let (ids, kinds) = (query.all("id"), query.all("type"));
    if ids.len() > IDS_MAX {
        query.reject("id", format!("must be given at most {IDS_MAX} times"));
    }
    let id = |text: &str| text.parse().map_err(|_| "must be a UUID".to_owned());
    let ids: Vec<Uuid> = ids
        .iter()
        .filter_map(|text| query.check("id", id(text)))
        .collect();
    let kinds: Vec<ApplicationKind> = kinds
        .iter()
        .filter_map(|name| query.check("type", parse_kind(name)))
        .collect();
    Filter {
        ids: (!ids.is_empty()).then_some(ids),
        kinds: (!kinds.is_empty()).then_some(kinds),
    }
}

#[cfg(test)]
mod tests;
