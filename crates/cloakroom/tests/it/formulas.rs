//! The catalog of connection formulas, against its source.

use cloakroom::access::ApplicationKind::{self, Private};
use cloakroom::access::Permission;
use cloakroom::config::Secret;
use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::{Answer, Chance, Client, TestDatabase, TestServer, TestVault, grants};

const PATHS: [&str; 2] = [
    "/orchestration/connection_formulas",
    "/orchestration/connection/formulas",
];
const FEATURES: [&str; 7] = [
    "three_d_secure_pass_through",
    "delayed_capture",
    "partial_capture",
    "partial_refunds",
    "refunds",
    "zero_auth",
    "void",
];

/// What the catalog was made from, by id.
fn source() -> Vec<Value> {
    let text = include_str!("../../../cloakroom-formulas/tests/source.json");
    let formulas: Vec<Value> = serde_json::from_str(text).unwrap();
    assert!(formulas.is_sorted_by_key(|formula| formula["id"].to_string()));
    formulas
}

async fn reader(vault: &TestVault) -> Client {
    let tenant = vault.tenant().await;
    let reading = grants(&[Permission::ConnectionFormulas]);
    vault.client(&tenant, reading).await
}

fn pagination(total: usize, page: usize, size: usize, pages: usize) -> Value {
    json!({"total_items": total, "page_number": page, "page_size": size, "total_pages": pages})
}

/// Covers 25.1, 25.4.
#[tokio::test]
async fn every_formula_is_the_one_of_the_source() {
    let vault = TestVault::start().await;
    let client = reader(&vault).await;
    let source = source();

    assert_eq!(source.len(), 18);
    for path in PATHS {
        for expected in &source {
            let id = expected["id"].as_str().unwrap();
            let answer = client.get(&format!("{path}/{id}")).await;
            assert_eq!(answer.status, StatusCode::OK, "{path} {id}");
            // As text, so that the order of attributes counts.
            assert_eq!(answer.body.to_string(), expected.to_string(), "{path} {id}");
        }
        for unknown in [
            "stripe",
            "STRIPE-CARD",
            "mock-card",
            "%20",
            "%FF",
            "stripe-card%2F",
        ] {
            let answer = client.get(&format!("{path}/{unknown}")).await;
            assert_eq!(answer.status, StatusCode::NOT_FOUND, "{path} {unknown}");
            assert_eq!(answer.body["code"], "not_found", "{path} {unknown}");
            assert_eq!(answer.header("cache-control"), "no-store");
            assert!(!answer.headers.contains_key("etag"));
        }
    }
}

/// Covers 25.1, 25.2, 25.3.
#[tokio::test]
async fn all_ways_to_list_give_the_same_bytes() {
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
        let ways = [
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
        for (number, way) in ways.into_iter().enumerate() {
            let answer = client.send(way).await;
            assert_eq!(answer.status, StatusCode::OK, "{path} {number}");
            assert_eq!(answer.bytes, first.bytes, "{path} {number}");
            assert_eq!(
                answer.header("etag"),
                first.header("etag"),
                "{path} {number}"
            );
        }
        // With the same key, the next page is the next page.
        let next = client.request(Method::POST, &format!("{path}?size=5&page=2"));
        let next = client.send(next.header("bt-idempotency-key", "once")).await;
        assert_eq!(next.body["data"], json!(source()[5..10]));
    }
}

/// Covers 25.2.
#[tokio::test]
async fn pages_go_through_all_of_them_by_id() {
    let vault = TestVault::start().await;
    let client = reader(&vault).await;
    let source = source();

    for size in [1, 5, 6, 17, 18, 19, 100] {
        let pages = 18_usize.div_ceil(size);
        for page in 1..=pages + 1 {
            let answer = client
                .get(&format!("{}?size={size}&page={page}", PATHS[0]))
                .await;
            let expected: Vec<_> = source.iter().skip((page - 1) * size).take(size).collect();
            assert_eq!(answer.body["data"], json!(expected), "{size} {page}");
            assert_eq!(answer.body["pagination"], pagination(18, page, size, pages));
        }
    }
    let last = client.get(&format!("{}?page=2147483647", PATHS[0])).await;
    assert_eq!((last.status, last.items()), (StatusCode::OK, &[][..]));
    let none = client.get(&format!("{}?size=0", PATHS[1])).await;
    assert_eq!(
        none.body,
        json!({"pagination": pagination(18, 1, 0, 0), "data": []})
    );
    for (query, refused) in [
        ("page=0", "page"),
        ("page=x", "page"),
        ("page=1&page=1", "page"),
        ("size=101", "size"),
        ("size=-1", "size"),
    ] {
        for method in [Method::GET, Method::POST] {
            let request = client.request(method, &format!("{}?{query}", PATHS[1]));
            let answer = client.send(request).await;
            assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{query}");
            assert_eq!(answer.refused(), [refused], "{query}");
        }
    }
}

/// What a query should list, by looking at every formula and every parameter.
fn admitted<'a>(source: &'a [Value], query: &[(&str, String)]) -> Vec<&'a Value> {
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
        let mut is_admitted = ids.is_empty() || ids.iter().any(|id| formula["id"] == **id);
        is_admitted &= methods.is_empty() || methods.iter().any(|it| formula["method"] == **it);
        for code in values("currency") {
            is_admitted &= lists("supported_currencies", code);
        }
        for code in values("country") {
            is_admitted &= lists("supported_countries", code);
        }
        for feature in values("feature") {
            is_admitted &= formula["supported_features"][feature] == true;
        }
        if is_admitted {
            found.push(formula);
        }
    }
    found
}

/// Every code of some formula, and one of none.
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
async fn filters_list_what_looking_at_each_formula_would() {
    let vault = TestVault::start().await;
    let client = reader(&vault).await;
    let source = source();
    let currencies = codes(&source, "supported_currencies", "XTS");
    let countries = codes(&source, "supported_countries", "ZZ");
    let mut ids: Vec<String> = source
        .iter()
        .map(|it| it["id"].as_str().unwrap().to_owned())
        .collect();
    ids.extend(["nobody-card".to_owned(), String::new()]);
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
    let mut chance = Chance::new();
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
        let answer = client.get(&format!("{path}?{text}")).await;
        let expected = admitted(&source, query);
        sizes.insert(expected.len());
        assert_eq!(answer.status, StatusCode::OK, "{text}: {}", answer.body);
        assert_eq!(answer.body["data"], json!(expected), "{text}");
        assert_eq!(
            answer.body["pagination"]["total_items"],
            expected.len(),
            "{text}"
        );
    }
    println!("{} queries, listing {sizes:?} formulas", queries.len());
    assert!(sizes.len() > 10, "{sizes:?}");
}

/// Covers 25.6.
#[tokio::test]
async fn values_that_cannot_be_are_named() {
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
    for (query, refused) in cases {
        for path in PATHS {
            let answer = client.get(&format!("{path}?{query}")).await;
            assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{query}");
            assert_eq!(answer.refused(), refused, "{query}");
        }
    }
    let unknown = client.get(&format!("{}?id=nobody&other=1", PATHS[0])).await;
    assert_eq!((unknown.status, unknown.items()), (StatusCode::OK, &[][..]));
}

/// Covers 25.7.
#[tokio::test]
async fn who_has_an_answer_is_not_sent_it_again() {
    let vault = TestVault::start().await;
    let client = reader(&vault).await;
    let stripe = format!("{}/stripe-card", PATHS[0]);
    let some = format!("{}?size=3", PATHS[1]);
    let mut tags = std::collections::BTreeSet::new();

    for path in [PATHS[0], &stripe, &some] {
        let whole = client.get(path).await;
        let tag = whole.header("etag").to_owned();
        let is_strong = tag.len() == 66 && tag.starts_with('"') && tag.ends_with('"');
        assert!(is_strong, "{path}: {tag}");
        assert!(tags.insert(tag.clone()), "another answer has another tag");
        let cases = [
            (None, false),
            (Some(tag.clone()), true),
            (Some(format!("W/{tag}")), true),
            (Some(format!("\"a\", W/\"b\", {tag}")), true),
            (Some("*".to_owned()), true),
            (Some("\"a\"".to_owned()), false),
            (Some("\"*\"".to_owned()), false),
            (Some(tag.trim_matches('"').to_owned()), false),
            (Some(String::new()), false),
        ];
        for (known, is_known) in cases {
            for method in [Method::GET, Method::HEAD] {
                let case = format!("{method} {path} {known:?}");
                let mut request = client.request(method.clone(), path);
                if let Some(known) = &known {
                    request = request.header("if-none-match", known);
                }
                let answer = client.send(request).await;
                let (status, body) = match (is_known, &method) {
                    (true, _) => (StatusCode::NOT_MODIFIED, &[][..]),
                    (false, &Method::HEAD) => (StatusCode::OK, &[][..]),
                    (false, _) => (StatusCode::OK, &whole.bytes[..]),
                };
                assert_eq!((answer.status, &answer.bytes[..]), (status, body), "{case}");
                assert_eq!(answer.header("etag"), tag, "{case}");
                assert_eq!(
                    answer.header("cache-control"),
                    "private, no-cache",
                    "{case}"
                );
                assert_eq!(
                    answer.headers.contains_key("content-type"),
                    !is_known,
                    "{case}"
                );
            }
        }
    }
    let unknown = format!("{}/nobody-card", PATHS[0]);
    let request = client
        .request(Method::GET, &unknown)
        .header("if-none-match", "*");
    assert_eq!(client.send(request).await.status, StatusCode::NOT_FOUND);
    let second = vault.second_node().await;
    let elsewhere = second.client_with(client.key());
    assert_eq!(
        elsewhere.get(PATHS[0]).await.header("etag"),
        client.get(PATHS[0]).await.header("etag")
    );
    let request = client
        .request(Method::GET, PATHS[0])
        .header("origin", "https://shop.example");
    let answer = client.send(request).await;
    let exposed = answer.header("access-control-expose-headers");
    assert!(exposed.split(',').any(|name| name == "etag"), "{exposed}");
}

/// Covers 25.8.
#[tokio::test]
async fn the_catalog_is_for_those_who_may_read_it_and_for_nobody_to_change() {
    use ApplicationKind::{Management, Private, Public};

    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let needed = Permission::ConnectionFormulas;
    let cases = [
        (None, StatusCode::UNAUTHORIZED),
        (Some((Private, needed)), StatusCode::OK),
        (Some((Management, needed)), StatusCode::OK),
        (
            Some((Public, Permission::TokenCreate)),
            StatusCode::FORBIDDEN,
        ),
        (
            Some((Private, Permission::TokenRead)),
            StatusCode::FORBIDDEN,
        ),
        (
            Some((Management, Permission::TenantRead)),
            StatusCode::FORBIDDEN,
        ),
    ];
    for (held, expected) in cases {
        let mut client = vault.client_with(None);
        if let Some((kind, permission)) = held {
            let holder = vault.holder(&tenant, kind, grants(&[permission])).await;
            client = client.with_key(&holder.key);
        }
        for path in PATHS {
            let one = format!("{path}/stripe-card");
            // Who may not ask learns nothing, not even that a parameter is wrong or an answer known.
            let wrong = format!("{path}?currency=1");
            let asked = [
                client.get(path).await,
                client.post(path, json!({})).await,
                client.get(&one).await,
            ];
            let statuses = asked.map(|answer| answer.status);
            assert_eq!(statuses, [expected; 3], "{held:?} {path}");
            if expected != StatusCode::OK {
                let request = client
                    .request(Method::GET, &wrong)
                    .header("if-none-match", "*");
                assert_eq!(
                    client.send(request).await.status,
                    expected,
                    "{held:?} {wrong}"
                );
            }
        }
    }
    let client = reader(&vault).await;
    for path in PATHS {
        let one = format!("{path}/stripe-card");
        for (path, allowed) in [(path, "GET,HEAD,POST"), (&one, "GET,HEAD")] {
            for method in [Method::PUT, Method::PATCH, Method::DELETE] {
                let request = client.request(method.clone(), path).body("{}");
                let answer: Answer = client.send(request).await;
                assert_eq!(
                    answer.status,
                    StatusCode::METHOD_NOT_ALLOWED,
                    "{method} {path}"
                );
                assert_eq!(answer.header("allow"), allowed, "{method} {path}");
            }
        }
        let posted = client.post(&one, json!({})).await;
        assert_eq!(posted.status, StatusCode::METHOD_NOT_ALLOWED);
    }
}

/// Whoever asks for formulas is looked up at a standby while the primary is away; for everything else the primary
/// has to be there. What the standby does not know counts as unknown, and nothing that it says is remembered.
#[tokio::test]
async fn formulas_are_answered_while_the_primary_is_away() {
    let (primary, standby) = (TestServer::start().await, TestServer::start().await);
    let copy = TestDatabase::empty_on(&standby.postgres.url()).await;
    let database = TestDatabase::on(&primary.postgres.url()).await;
    let alone = TestVault::start_with(database, |_| {}).await;
    let vault = alone
        .node_with(|config| config.database.replica_url = Some(Secret::new(copy.url.clone())))
        .await;
    let tenant = vault.tenant().await;
    let reading = || grants(&[Permission::ConnectionFormulas, Permission::TokenRead]);
    let holder = vault.holder(&tenant, Private, reading()).await;
    copy.restore(&vault.database.dump(&[]));
    let late = vault.holder(&tenant, Private, reading()).await;

    drop(primary);
    let ask = async |vault: &TestVault, key: &str, path: &str| {
        let answer = vault.client_with(Some(key)).get(path).await;
        answer.status.as_u16()
    };
    let of_catalog = ask(&vault, &holder.key, PATHS[0]).await;
    let of_token = ask(
        &vault,
        &holder.key,
        "/tokens/6f2f2a5c-6e8b-4d3e-9d0a-000000000001",
    )
    .await;
    let of_late = ask(&vault, &late.key, PATHS[0]).await;
    let of_nobody = ask(&vault, "key_test_us_pvt_nobody", PATHS[0]).await;
    let without_standby = ask(&alone, &holder.key, PATHS[0]).await;
    let sql = "delete from application_key where key_id = $1";
    let deleted = copy.connect().await.execute(sql, &[&holder.key_id]).await;
    let of_deleted = ask(&vault, &holder.key, PATHS[0]).await;

    assert_eq!(deleted.unwrap(), 1);
    assert_eq!((of_catalog, of_token), (200, 503));
    assert_eq!((of_late, of_nobody, of_deleted), (401, 401, 401));
    assert_eq!(without_standby, 503);
}
