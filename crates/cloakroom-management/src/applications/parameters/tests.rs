//! Tests of valid and invalid parameters.

use ApplicationKind::{Private, Public};

use super::*;

const ID: &str = "c06d0789-0a38-40be-b7cc-c28a718f76f1";

fn rejected_names<T>(read: Result<T, Vec<FieldError>>) -> String {
    let broken = read.err().unwrap_or_default();
    let paths: Vec<&str> = broken.iter().map(|broken| broken.path.as_str()).collect();
    paths.join(" ")
}

#[test]
fn lists_are_filtered_by_ids_and_types() {
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
fn invalid_parameters_are_named() {
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
        assert_eq!(rejected_names(read_list(Some(query))), expected, "{query}");
    }
    let ids = |count: usize| vec![format!("id={ID}"); count].join("&");
    assert_eq!(rejected_names(read_list(Some(&ids(100)))), "");
    assert_eq!(rejected_names(read_keys(Some(&ids(101)))), "id");
    assert_eq!(rejected_names(read_keys(Some("page=0&size=101"))), "");
    for query in ["application_type=", "application_type=expiring"] {
        assert_eq!(rejected_names(read_kind(Some(query))), "application_type");
    }
    let twice = "application_type=public&application_type=public";
    assert_eq!(rejected_names(read_kind(Some(twice))), "application_type");
    assert_eq!(read_kind(Some("application_type=public")), Ok(Some(Public)));
}
