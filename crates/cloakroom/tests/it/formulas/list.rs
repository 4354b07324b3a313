//! Listing and filtering connection formulas.

use cloakroom_testkit::{SeededRng, TestVault};
use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::{PATHS, reader, source};

const FEATURES: [&str; 7] = [
    "three_d_secure_pass_through",
    "delayed_capture",
    "partial_capture",
    "partial_refunds",
    "refunds",
    "zero_auth",
    "void",
];

fn pagination(total: usize, page: usize, size: usize, pages: usize) -> Value {
    json!({"total_items": total, "page_number": page, "page_size": size, "total_pages": pages})
}

/// Covers 25.1, 25.2, 25.3.
#[tokio::test]
async fn all_list_requests_return_the_same_bytes() {
    let vault = TestVault::start().await;
    let client = reader(&vault).await;
    let expected = json!({"pagination": pagination(18, 1, 20, 1), "data": source()});

    let first = client.get(PATHS[0]).await;
    assert_eq!(first.status, StatusCode::OK);
    assert_eq!(first.body.to_string(), expected.to_string());
    let media = "content-type";
    for path in PATHS {
        let post = || client.request(Method::POST, path);
        let large = "x".repeat(4 * 1024 * 1024 + 1);
        let requests = [
            client.request(Method::GET, path),
            client.request(Method::GET, &format!("{path}/")),
            post(),
            post().header(media, "application/json").body("{}"),
            post()
                .header(media, "application/json")
                .body("{\"size\": 1"),
            post().header(media, "text/csv").body("a,b\n\u{fffd}"),
            post().header("content-encoding", "gzip").body("no gzip"),
            post().body(large),
            post().header("if-none-match", "*"),
            post().header("bt-idempotency-key", "once"),
            post().header("bt-idempotency-key", "once").body("other"),
            post().header("bt-idempotency-key", "k".repeat(300)),
        ];
        for (number, request) in requests.into_iter().enumerate() {
            let response = client.send(request).await;
            assert_eq!(response.status, StatusCode::OK, "{path} {number}");
            assert_eq!(response.bytes, first.bytes, "{path} {number}");
            assert_eq!(
                response.header("etag"),
                first.header("etag"),
                "{path} {number}"
            );
        }
        // An idempotency key does not replay another page.
        let next = client.request(Method::POST, &format!("{path}?size=5&page=2"));
        let next = client.send(next.header("bt-idempotency-key", "once")).await;
        assert_eq!(next.body["data"], json!(source()[5..10]));
    }
}

/// Covers 25.2.
#[tokio::test]
async fn pages_contain_all_formulas_in_order_of_id() {
    let vault = TestVault::start().await;
    let client = reader(&vault).await;
    let source = source();

    for size in [1, 5, 6, 17, 18, 19, 100] {
        let pages = 18_usize.div_ceil(size);
        for page in 1..=pages + 1 {
            let response = client
                .get(&format!("{}?size={size}&page={page}", PATHS[0]))
                .await;
            let expected: Vec<_> = source.iter().skip((page - 1) * size).take(size).collect();
            assert_eq!(response.body["data"], json!(expected), "{size} {page}");
            assert_eq!(
                response.body["pagination"],
                pagination(18, page, size, pages)
            );
        }
    }
    let last = client.get(&format!("{}?page=2147483647", PATHS[0])).await;
    assert_eq!((last.status, last.items()), (StatusCode::OK, &[][..]));
    let none = client.get(&format!("{}?size=0", PATHS[1])).await;
    assert_eq!(
        none.body,
        json!({"pagination": pagination(18, 1, 0, 0), "data": []})
    );
    for (query, parameter) in [
        ("page=0", "page"),
        ("page=x", "page"),
        ("page=1&page=1", "page"),
        ("size=101", "size"),
        ("size=-1", "size"),
    ] {
        for method in [Method::GET, Method::POST] {
            let request = client.request(method, &format!("{}?{query}", PATHS[1]));
            let response = client.send(request).await;
            assert_eq!(response.status, StatusCode::BAD_REQUEST, "{query}");
            assert_eq!(response.refused(), [parameter], "{query}");
        }
    }
}

/// The expected result of a query, computed by checking every parameter of every formula.
fn matching<'a>(source: &'a [Value], query: &[(&str, String)]) -> Vec<&'a Value> {
    let values = |name: &str| -> Vec<&String> {
        let given = query.iter().filter(|(given, _)| *given == name);
        given.map(|(_, value)| value).collect()
    };
    let mut found = Vec::new();
    for formula in source {
        let lists = |name: &str, code: &str| {
            let codes = formula[name].as_array().unwrap();
            codes.iter().any(|known| *known == code.to_uppercase())
        };
        let (ids, methods) = (values("id"), values("method"));
        let mut is_match = ids.is_empty() || ids.iter().any(|id| formula["id"] == **id);
        is_match &= methods.is_empty() || methods.iter().any(|it| formula["method"] == **it);
        for code in values("currency") {
            is_match &= lists("supported_currencies", code);
        }
        for code in values("country") {
            is_match &= lists("supported_countries", code);
        }
        for feature in values("feature") {
            is_match &= formula["supported_features"][feature] == true;
        }
        if is_match {
            found.push(formula);
        }
    }
    found
}

/// All codes used by formulas, plus one unused.
fn codes(source: &[Value], name: &str, unused: &str) -> Vec<String> {
    let all = source.iter().flat_map(|it| it[name].as_array().unwrap());
    let mut codes: Vec<_> = all.map(|code| code.as_str().unwrap().to_owned()).collect();
    codes.push(unused.to_owned());
    codes.sort();
    codes.dedup();
    codes
}

/// Covers 25.5.
#[tokio::test]
async fn filters_match_an_exhaustive_search() {
    let vault = TestVault::start().await;
    let client = reader(&vault).await;
    let source = source();
    let currencies = codes(&source, "supported_currencies", "XTS");
    let countries = codes(&source, "supported_countries", "ZZ");
    let mut ids: Vec<String> = source
        .iter()
        .map(|it| it["id"].as_str().unwrap().to_owned())
        .collect();
    ids.extend(["unknown-card".to_owned(), String::new()]);
    let features: Vec<String> = FEATURES.iter().map(|it| (*it).to_owned()).collect();
    let methods = vec!["card".to_owned()];
    let parameters = [
        ("id", &ids),
        ("method", &methods),
        ("currency", &currencies),
        ("country", &countries),
        ("feature", &features),
    ];

    let mut queries: Vec<Vec<(&str, String)>> = Vec::new();
    for (name, values) in parameters {
        let single = values.iter().map(|value| vec![(name, value.clone())]);
        queries.extend(single.step_by(1 + values.len() / 50));
        let lower = values
            .iter()
            .map(|value| vec![(name, value.to_lowercase())]);
        queries.extend(lower.step_by(10));
    }
    let mut chance = SeededRng::from_environment();
    for _ in 0..150 {
        let mut query = Vec::new();
        for (name, values) in parameters {
            while chance.one_in(3) {
                query.push((name, chance.pick(values).clone()));
            }
        }
        queries.push(query);
    }
    let mut sizes = std::collections::BTreeSet::new();
    for (number, query) in queries.iter().enumerate() {
        let pairs = query.iter().map(|(name, value)| format!("{name}={value}"));
        let text = pairs.collect::<Vec<_>>().join("&");
        let path = PATHS[number % PATHS.len()];
        let response = client.get(&format!("{path}?{text}")).await;
        let expected = matching(&source, query);
        sizes.insert(expected.len());
        assert_eq!(response.status, StatusCode::OK, "{text}: {}", response.body);
        assert_eq!(response.body["data"], json!(expected), "{text}");
        assert_eq!(
            response.body["pagination"]["total_items"],
            expected.len(),
            "{text}"
        );
    }
    println!("{} queries, listing {sizes:?} formulas", queries.len());
    assert!(sizes.len() > 10, "{sizes:?}");
}

/// Covers 25.6.
#[tokio::test]
async fn invalid_filter_values_are_rejected() {
    let vault = TestVault::start().await;
    let client = reader(&vault).await;
    let cases: [(&str, &[&str]); 14] = [
        ("currency=EU", &["currency"]),
        ("currency=EURO", &["currency"]),
        ("currency=", &["currency"]),
        ("currency=97%20", &["currency"]),
        ("currency=EUR&currency=9", &["currency"]),
        ("currency=%FF", &["currency"]),
        ("country=DEU", &["country"]),
        ("country=%C3%A9", &["country"]),
        ("feature=voidAllowed", &["feature"]),
        ("feature=VOID", &["feature"]),
        ("method=bank", &["method"]),
        ("method=Card", &["method"]),
        (
            "country=1&feature=x&size=-1&currency=",
            &["country", "currency", "feature", "size"],
        ),
        ("id=x&method=", &["method"]),
    ];
    for (query, parameters) in cases {
        for path in PATHS {
            let response = client.get(&format!("{path}?{query}")).await;
            assert_eq!(response.status, StatusCode::BAD_REQUEST, "{query}");
            assert_eq!(response.refused(), parameters, "{query}");
        }
    }
    let unknown = client
        .get(&format!("{}?id=unknown&other=1", PATHS[0]))
        .await;
    assert_eq!((unknown.status, unknown.items()), (StatusCode::OK, &[][..]));
}
