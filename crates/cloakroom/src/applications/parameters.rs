//! The query strings of this room: what is asked for, and which page of it.

use uuid::Uuid;

use super::Filter;
use super::application::parse_kind;
use crate::access::ApplicationKind;
use crate::api::{Broken, NumberedPage, Query};

const IDS_MAX: usize = 100;
const SIZE_MAX: usize = 100;

/// Reads which applications are asked for. `start` is ignored, like everything that is unknown.
pub(super) fn read_list(query: Option<&str>) -> Result<(Filter, NumberedPage), Vec<Broken>> {
    let mut query = Query::decode(query, &["id", "page", "size", "type"]);
    let filter = filter(&mut query);
    let page = NumberedPage::new(query.number("page"), query.number("size"), SIZE_MAX);
    query.settle(filter, page)
}

/// Reads which keys of an application are asked for.
pub(super) fn read_keys(query: Option<&str>) -> Result<Filter, Vec<Broken>> {
    let mut query = Query::decode(query, &["id", "type"]);
    let filter = filter(&mut query);
    query.settle(filter, Ok(())).map(|(filter, ())| filter)
}

/// Reads whose permissions are asked for.
pub(super) fn read_kind(query: Option<&str>) -> Result<Option<ApplicationKind>, Vec<Broken>> {
    const NAME: &str = "application_type";
    let mut query = Query::decode(query, &[NAME]);
    let kind = query.once(NAME);
    let kind = kind.and_then(|name| query.check(NAME, parse_kind(&name)));
    query.settle(kind, Ok(())).map(|(kind, ())| kind)
}

/// Ids and types, each of which may be repeated.
fn filter(query: &mut Query) -> Filter {
    let (ids, kinds) = (query.all("id"), query.all("type"));
    if ids.len() > IDS_MAX {
        query.refuse("id", format!("must be given at most {IDS_MAX} times"));
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
mod tests {
    use super::*;
    use ApplicationKind::{Private, Public};

    const ID: &str = "c06d0789-0a38-40be-b7cc-c28a718f76f1";

    fn refused<T>(read: Result<T, Vec<Broken>>) -> String {
        let broken = read.err().unwrap_or_default();
        let paths: Vec<&str> = broken.iter().map(|broken| broken.path.as_str()).collect();
        paths.join(" ")
    }

    #[test]
    fn lists_are_narrowed_by_ids_and_types() {
        let id: Uuid = ID.parse().unwrap();
        let cases = [
            ("", None, None, (1, 20)),
            ("start=x&start=y&color=red", None, None, (1, 20)),
            ("page=7&size=0", None, None, (7, 0)),
            (
                &*format!("id={ID}&id={ID}"),
                Some(vec![id, id]),
                None,
                (1, 20),
            ),
            (
                "type=public&type=private",
                None,
                Some(vec![Public, Private]),
                (1, 20),
            ),
        ];
        for (query, ids, kinds, page) in cases {
            let (filter, read) = read_list(Some(query)).expect(query);
            assert_eq!((filter.ids, filter.kinds), (ids, kinds), "{query}");
            assert_eq!((read.page, read.size), page, "{query}");
        }
    }

    #[test]
    fn what_breaks_a_rule_is_named() {
        let cases = [
            ("id=", "id"),
            ("id=x&id=y", "id"),
            ("type=", "type"),
            ("type=expiring", "type"),
            ("page=0", "page"),
            ("size=101", "size"),
            ("size=1&size=1", "size"),
            ("id=x&type=y&page=x&size=-1", "id type page size"),
            ("type=%FF", "type"),
        ];
        for (query, expected) in cases {
            assert_eq!(refused(read_list(Some(query))), expected, "{query}");
        }
        let ids = |count: usize| vec![format!("id={ID}"); count].join("&");
        assert_eq!(refused(read_list(Some(&ids(100)))), "");
        assert_eq!(refused(read_keys(Some(&ids(101)))), "id");
        assert_eq!(refused(read_keys(Some("page=0&size=101"))), "");
        for query in ["application_type=", "application_type=expiring"] {
            assert_eq!(refused(read_kind(Some(query))), "application_type");
        }
        let twice = "application_type=public&application_type=public";
        assert_eq!(refused(read_kind(Some(twice))), "application_type");
        assert_eq!(read_kind(Some("application_type=public")), Ok(Some(Public)));
    }
}
