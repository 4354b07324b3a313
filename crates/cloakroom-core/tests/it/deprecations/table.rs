//! The deprecation table, compared with the OpenAPI document and the specification.

use cloakroom::deprecations::{ALL, DeprecationTreatment};

/// Covers 26.14.
#[test]
fn openapi_marks_exactly_the_deprecated_operations() {
    let document = serde_json::to_value(cloakroom::router::document()).unwrap();
    let mut marked = Vec::new();
    for (path, operations) in document["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            if operation["deprecated"] == true {
                marked.push(format!("{} {path}", method.to_uppercase()));
            }
        }
    }
    let listed = ALL.iter().flat_map(|it| it.row().operations);
    let mut listed: Vec<String> = listed.map(|it| (*it).to_owned()).collect();
    listed.sort();
    marked.sort();

    assert_eq!(marked, listed);
}

/// The table in the specification.
///
/// Covers 26.14.
#[test]
fn the_table_matches_the_specification() {
    let expected = [
        ("list_tokens_v1", "2025-01-03", "2025-03-01", "served"),
        ("search_tokens_v1", "2025-01-03", "2025-03-01", "served"),
        (
            "reactor_callback_url",
            "2024-11-01",
            "2025-01-15",
            "rejected",
        ),
        ("legacy_rate_limits", "2024-06-10", "2024-07-16", "accepted"),
        ("regenerate_key", "2024-04-17", "2024-10-17", "gone"),
        ("complex_search", "2024-01-23", "2024-01-23", "rejected"),
        ("reactor_formulas", "2023-10-16", "2024-02-14", "gone"),
        ("proxy_reactors", "2022-11-30", "2023-03-31", "rejected"),
        ("token_privacy", "2022-10-13", "2023-02-01", "accepted"),
    ];
    let rows = ALL.iter().map(|it| it.row());
    let dated = rows.filter(|row| row.since.is_some() && row.until.is_some());
    let found: Vec<(&str, String, String, &str)> = dated
        .map(|row| {
            let day = |day: Option<jiff::civil::Date>| day.unwrap().to_string();
            (
                row.name,
                day(row.since),
                day(row.until),
                row.treatment.name(),
            )
        })
        .collect();
    let expected = expected.map(|(name, since, until, treatment)| {
        (name, since.to_owned(), until.to_owned(), treatment)
    });
    assert_eq!(found, expected);
    let served = ALL.iter().map(|it| it.row().treatment);
    assert_eq!(
        served
            .filter(|it| matches!(it, DeprecationTreatment::Served(_)))
            .count(),
        2
    );
}
