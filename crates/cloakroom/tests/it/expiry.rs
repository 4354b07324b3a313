//! Expiry: how it is written, that nobody sees a token from its instant on, and what removes it.

use std::time::{Duration, Instant};

use cloakroom::access::{ApplicationKind, Transform};
use cloakroom::{ids, jobs};
use http::StatusCode;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::support::{Answer, Client, TestVault, everything};

const MANY: i32 = 20_000;

async fn create(client: &Client, expires_at: Value) -> Answer {
    let new = json!({"type": "token", "data": "x", "expires_at": expires_at});
    client.post("/tokens", new).await
}

/// An instant by the database's clock, which is the one that counts.
async fn database_time(database: &tokio_postgres::Client) -> Timestamp {
    let sql = "select clock_timestamp()";
    database.query_one(sql, &[]).await.unwrap().get(0)
}

async fn count(vault: &TestVault, table: &str) -> i64 {
    let sql = format!("select count(*) from {table}");
    vault
        .database
        .connect()
        .await
        .query_one(&sql, &[])
        .await
        .unwrap()
        .get(0)
}

/// Covers 8.1, 8.2, 8.3, 8.4, 8.5, 8.6, 8.7.
#[tokio::test]
async fn every_documented_format_means_its_instant_and_keeps_its_offset() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    let cases = [
        ("2040-08-26T19:23:57Z", "2040-08-26T19:23:57+00:00"),
        ("2040-08-26T19:23:57+00:00", "2040-08-26T19:23:57+00:00"),
        ("2040-08-26T19:23:57-07:00", "2040-08-26T19:23:57-07:00"),
        ("2040-08-26T19:23:57.5+05:30", "2040-08-26T19:23:57.5+05:30"),
        (
            "2040-08-26T19:23:57.1234567Z",
            "2040-08-26T19:23:57.123456+00:00",
        ),
        ("2040-08-26T19:23:57", "2040-08-26T19:23:57+00:00"),
        ("2040-08-26T19:23", "2040-08-26T19:23:00+00:00"),
        ("8/26/2040 7:23:57 PM -07:00", "2040-08-26T19:23:57-07:00"),
        ("8/26/2040 7:23:57 PM +02:00", "2040-08-26T19:23:57+02:00"),
        ("8/26/2040 7:23:57 AM", "2040-08-26T07:23:57+00:00"),
        ("12/1/2040 12:00:00 AM", "2040-12-01T00:00:00+00:00"),
        ("12/01/2040 12:00:00 PM", "2040-12-01T12:00:00+00:00"),
        ("8/26/2040", "2040-08-26T00:00:00+00:00"),
        ("08/06/2040", "2040-08-06T00:00:00+00:00"),
        ("2040-08-26", "2040-08-26T00:00:00+00:00"),
        ("2040-02-29", "2040-02-29T00:00:00+00:00"),
        ("9999-12-30T12:00:00Z", "9999-12-30T12:00:00+00:00"),
    ];
    let database = vault.database.connect().await;

    for (written, told) in cases {
        let created = create(&client, json!(written)).await;
        assert_eq!(
            created.body["expires_at"], told,
            "{written}: {}",
            created.body
        );
        let found = client.get(&format!("/tokens/{}", created.id())).await;
        assert_eq!(found.body["expires_at"], told, "{written}");
        let id = uuid::Uuid::parse_str(&created.id()).unwrap();
        let sql = "select expires_at = $2::text::timestamptz from token where token_id = $1";
        let row = database.query_one(sql, &[&id, &told]).await.unwrap();
        assert!(row.get::<_, bool>(0), "{written}");
    }
    let never = create(&client, json!(null)).await;
    assert_eq!(never.body.get("expires_at"), None);
    let kept = "select count(*) from token where expires_at is null";
    assert_eq!(
        database
            .query_one(kept, &[])
            .await
            .unwrap()
            .get::<_, i64>(0),
        1
    );
}

/// Texts that mean no instant in the future.
const REFUSED: [&str; 19] = [
    "2020-01-01T00:00:00Z",
    "2020-01-01",
    "1/1/2020",
    "1/1/2020 1:00:00 PM",
    "0001-01-01T00:00:00Z",
    "",
    " ",
    "soon",
    "1893456000",
    "2040-02-30",
    "2039-02-29",
    "13/1/2040",
    "1/32/2040",
    "8/26/40",
    "8/26/2040 19:23:57 PM",
    "8/26/2040 7:23:57",
    "2040-08-26T25:00:00Z",
    "2040-08-26T19:23:57+99:00",
    "26.8.2040",
];

/// Covers 8.8.
#[tokio::test]
async fn an_expiry_that_is_over_or_unreadable_is_refused() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    let settings = [
        ("token_deduplication_behavior", "update_existing"),
        ("deduplicate_tokens", "true"),
    ];
    let merging = vault.tenant_with(&settings).await;
    let merging = vault.client(&merging, everything(Transform::Reveal)).await;
    create(&merging, json!(null)).await;
    let standing = format!(
        "/tokens/{}",
        create(&client, json!("2040-01-01")).await.id()
    );
    let database = vault.database.connect().await;
    let just_over = (database_time(&database).await - Duration::from_secs(1)).to_string();

    for written in REFUSED.into_iter().chain([just_over.as_str()]) {
        // Deduplication takes other ways to the database, and none of them past its clock.
        let claiming = json!({
            "type": "token", "data": "new", "expires_at": written, "deduplicate_token": true,
        });
        let answers = [
            create(&client, json!(written)).await,
            client.post("/tokens", claiming).await,
            create(&merging, json!(written)).await,
            client
                .patch(&standing, json!({"expires_at": written}))
                .await,
        ];
        for answer in answers {
            assert_eq!(
                answer.refused(),
                ["expires_at"],
                "{written}: {}",
                answer.body
            );
        }
    }
    for value in [json!(2_040_000_000), json!(true), json!({})] {
        let created = create(&client, value.clone()).await;
        assert_eq!(
            created.refused(),
            ["expires_at"],
            "{value}: {}",
            created.body
        );
    }
    assert_eq!(
        (count(&vault, "token").await, count(&vault, "claim").await),
        (2, 1)
    );
}

/// Whether one token is seen, by every way there is to look. There is one more token beside it, which
/// comes before it in lists; `next` is the cursor between the two.
async fn sightings(client: &Client, id: &str, next: &str) -> Vec<(String, bool)> {
    let by_id = format!("/tokens?id={id}");
    let second_page = format!("/v2/tokens?container=/brief/&size=1&start={next}");
    let mut pages: Vec<(String, Answer)> = Vec::new();
    for path in [
        "/v2/tokens",
        "/v2/tokens?container=/brief/",
        second_page.as_str(),
        "/v2/tokens?type=token",
        "/v2/tokens?metadata.brief=yes",
        "/tokens",
        by_id.as_str(),
        "/tokens?metadata.brief=YES",
    ] {
        pages.push((path.to_owned(), client.get(path).await));
    }
    for (path, query) in [
        ("/v2/tokens/search", json!({})),
        ("/v2/tokens/search", json!({"query": "data:brief"})),
        ("/tokens/search", json!({"query": "data:brief"})),
        ("/tokens/search", json!({"query": format!("id:{id}")})),
    ] {
        pages.push((format!("{path} {query}"), client.post(path, query).await));
    }
    let mut seen = Vec::new();
    for (way, page) in pages {
        assert_eq!(page.status, StatusCode::OK, "{way}: {}", page.body);
        let items = page.body["data"].as_array().unwrap();
        let is_listed = items.iter().any(|item| item["id"] == id);
        // Older pages count as well, a moment later.
        if let Some(total) = page.body["pagination"]["total_items"].as_u64() {
            let others = u64::from(way == "/tokens");
            seen.push((format!("{way} counted"), total > others));
        }
        seen.push((way, is_listed));
    }
    let read = client.get(&format!("/tokens/{id}")).await;
    assert!(matches!(read.status.as_u16(), 200 | 404), "{}", read.body);
    seen.push(("get".to_owned(), read.status == StatusCode::OK));
    let filled = client
        .post("/detokenize", json!(format!("{{{{ {id} }}}}")))
        .await;
    assert!(
        matches!(filled.status.as_u16(), 200 | 400),
        "{}",
        filled.body
    );
    seen.push(("detokenize".to_owned(), filled.status == StatusCode::OK));
    seen
}

/// A token that is found in every way and expires soon.
fn brief(expires_at: Timestamp) -> Value {
    json!({
        "type": "token",
        "data": "brief",
        "containers": ["/brief/"],
        "metadata": {"brief": "yes"},
        "search_indexes": ["{{ data }}"],
        "deduplicate_token": true,
        "expires_at": expires_at.to_string(),
    })
}

/// I05: nobody sees an expired token, by any way, on any node, from the instant of its expiry on.
///
/// Covers 8.9, 8.10, 8.11, 4.2.
#[tokio::test]
async fn an_expired_token_is_seen_by_nobody_from_its_instant_on() {
    let vault = TestVault::start_patient().await;
    let node = vault.second_node().await;
    let tenant = vault.tenant().await;
    let granted = everything(Transform::Reveal);
    let holder = vault
        .holder(&tenant, ApplicationKind::Private, granted)
        .await;
    let clients = [
        vault.client_with(Some(&holder.key)),
        node.client_with(Some(&holder.key)),
    ];
    let database = vault.database.connect().await;
    let expires_at = database_time(&database).await + Duration::from_secs(5);
    let created = clients[0].post("/tokens", brief(expires_at)).await;
    assert_eq!(created.status, StatusCode::CREATED, "{}", created.body);
    let beside = json!({"type": "token", "data": "beside", "containers": ["/brief/"]});
    clients[0].post("/tokens", beside).await;
    let page = clients[0].get("/v2/tokens?container=/brief/&size=1").await;
    let next = page.body["pagination"]["next"].as_str().unwrap();

    let (mut ways, mut before, mut after) = (0, 0, 0);
    while after < 4 {
        for client in &clients {
            let asked_at = database_time(&database).await;
            let seen = sightings(client, &created.id(), next).await;
            let answered_at = database_time(&database).await;
            ways = seen.len();
            if answered_at < expires_at {
                assert!(seen.iter().all(|(_, is_seen)| *is_seen), "{seen:?}");
                before += 1;
            } else if asked_at >= expires_at {
                assert!(!seen.iter().any(|(_, is_seen)| *is_seen), "{seen:?}");
                after += 1;
            }
        }
    }
    println!("{ways} ways of looking: {before} times before the instant, {after} after it");
    assert!(before > 0);
    // It is still there: nobody has swept.
    assert_eq!(count(&vault, "token").await, 2);
}

/// I05: an expired token cannot be touched either, and is not in the way of another.
///
/// Covers 8.9, 8.11, 9.14.
#[tokio::test]
async fn an_expired_token_can_be_neither_changed_nor_deleted_and_its_id_is_free() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    let database = vault.database.connect().await;
    let created = client
        .post("/tokens", brief("2040-01-01T00:00:00Z".parse().unwrap()))
        .await;
    let (id, path) = (created.id(), format!("/tokens/{}", created.id()));
    let sql = "update token set expires_at = now()";
    database.execute(sql, &[]).await.unwrap();

    let missing = client
        .get("/tokens/c06d0789-0a38-40be-b7cc-c28a718f76f1")
        .await;
    assert_eq!(missing.status, StatusCode::NOT_FOUND);
    let answers = [
        client.get(&path).await,
        client.patch(&path, json!({"expires_at": null})).await,
        client.patch(&path, json!({})).await,
        client.delete(&path).await,
    ];
    for answer in answers {
        assert_eq!(answer.bytes, missing.bytes, "{}", answer.body);
    }
    for document in [
        json!(format!("{{{{ {id} }}}}")),
        json!([1, format!("{{{{ token: {id} }}}}")]),
    ] {
        let filled = client.post("/detokenize", document).await;
        assert_eq!(filled.status, StatusCode::BAD_REQUEST);
        assert!(
            filled.body["detail"].as_str().unwrap().contains(&id),
            "{}",
            filled.body
        );
    }

    // The newcomer inherits nothing.
    let again = client
        .post(
            "/tokens",
            json!({"id": id, "type": "token", "data": "again"}),
        )
        .await;
    assert_eq!(again.status, StatusCode::CREATED, "{}", again.body);
    let found = client.get(&path).await;
    assert_eq!(
        (&found.body["data"], found.body.get("expires_at")),
        (&json!("again"), None)
    );
    let page = client
        .post("/v2/tokens/search", json!({"query": "data:brief"}))
        .await;
    assert_eq!(page.body["data"], json!([]));
}

/// Covers 8.12.
#[tokio::test]
async fn the_sweep_removes_all_that_belongs_to_an_expired_token_and_nothing_else() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    let other = vault.revealing_client().await;
    let card = |expires_at: Value| {
        json!({
            "type": "card",
            "data": {"number": "4242424242424242", "cvc": "123"},
            "metadata": {"k": "v"},
            "search_indexes": ["{{ data.number }}"],
            "deduplicate_token": true,
            "expires_at": expires_at,
        })
    };
    let brief = client.post("/tokens", card(json!("2040-01-01"))).await;
    let mut elsewhere = card(json!("2050-01-01"));
    elsewhere["containers"] = json!(["/elsewhere/"]);
    let later = client.post("/tokens", elsewhere).await;
    let foreign = other.post("/tokens", card(json!(null))).await;
    let rows = async || {
        let mut rows = Vec::new();
        for table in ["token", "term", "claim", "security_code"] {
            rows.push(count(&vault, table).await);
        }
        rows
    };
    assert_eq!(rows().await, [3, 9, 3, 3]);
    let node = ids::new_uuid();

    assert_eq!(jobs::sweep_once(&vault.vault, node).await.unwrap(), Some(0));
    let sql = "update token set expires_at = now() where expires_at < '2045-01-01'";
    vault
        .database
        .connect()
        .await
        .execute(sql, &[])
        .await
        .unwrap();
    assert_eq!(jobs::sweep_once(&vault.vault, node).await.unwrap(), Some(1));

    assert_eq!(rows().await, [2, 6, 2, 2]);
    let status = async |client: &Client, answer: &Answer| {
        client.get(&format!("/tokens/{}", answer.id())).await.status
    };
    assert_eq!(status(&client, &brief).await, StatusCode::NOT_FOUND);
    assert_eq!(status(&client, &later).await, StatusCode::OK);
    assert_eq!(status(&other, &foreign).await, StatusCode::OK);
    let fresh = client.post("/tokens", card(json!(null))).await;
    assert_eq!(
        fresh.body["_extras"]["deduplicated"], false,
        "{}",
        fresh.body
    );
}

/// Covers 8.12.
#[tokio::test]
async fn one_node_sweeps_at_a_time_and_another_takes_over() {
    let vault = TestVault::start_patient().await;
    let node = vault.second_node().await;
    let (first, second) = (ids::new_uuid(), ids::new_uuid());
    let database = vault.database.connect().await;

    let (one, other) = tokio::join!(
        jobs::sweep_once(&vault.vault, first),
        jobs::sweep_once(&node.vault, second),
    );
    let (one, other) = (one.unwrap(), other.unwrap());
    assert_eq!(
        [one, other].iter().filter(|swept| swept.is_some()).count(),
        1
    );
    // Whoever sweeps goes on.
    let (holder, waiting) = match one {
        Some(_) => ((&vault, first), (&node, second)),
        None => ((&node, second), (&vault, first)),
    };
    let sweep = async |(at, node): (&TestVault, uuid::Uuid)| {
        jobs::sweep_once(&at.vault, node).await.unwrap()
    };
    assert_eq!(sweep(holder).await, Some(0));
    assert_eq!(sweep(waiting).await, None);

    // The lease lasts long enough to be renewed, and short enough that the hour is kept.
    let sql = "select extract(epoch from until - now())::float8 from lease where name = 'sweep'";
    let left: f64 = database.query_one(sql, &[]).await.unwrap().get(0);
    assert!((20.0..900.0).contains(&left), "{left}");

    database
        .execute("update lease set until = now()", &[])
        .await
        .unwrap();
    assert_eq!(sweep(waiting).await, Some(0));
    assert_eq!(sweep(holder).await, None);
}

/// I05: many tokens that expire at once are removed in one round.
///
/// Covers 8.12.
#[tokio::test]
async fn many_tokens_that_expire_at_once_are_removed_in_one_round() {
    let vault = TestVault::start_patient().await;
    let client = vault.revealing_client().await;
    // Containers, a survivor, and somebody to copy.
    let kept = create(&client, json!(null)).await;
    let database = vault.database.connect().await;
    let inserting = format!(
        "with many as (
            insert into token (tenant_id, token_id, container_id, kind, created_by, sealed, expires_at,
                               path, fingerprint, terms)
            select tenant_id, gen_random_uuid(), container_id, kind, created_by, sealed,
                   now() - interval '1 second', path,
                   sha256(n::text::bytea),
                   array[substring(sha256(n::text::bytea) for 16), substring(sha256('k'::bytea) for 16)]
            from token cross join generate_series(1, {MANY}) n
            returning *
        ), termed as (
            insert into term (tenant_id, term, path, created_at, token_id)
            select many.tenant_id, unnest(many.terms), container.path, many.created_at, many.token_id
            from many join container using (tenant_id, container_id)
        )
        insert into claim (tenant_id, fingerprint, container_id, token_id)
        select tenant_id, fingerprint, container_id, token_id from many"
    );
    assert_eq!(
        database.execute(&inserting, &[]).await.unwrap(),
        u64::try_from(MANY).unwrap()
    );
    assert_eq!(count(&vault, "term").await, 2 * i64::from(MANY) + 1);
    // Nobody sees them, however many there are.
    let listed = client.get("/v2/tokens").await;
    assert_eq!(listed.body["data"].as_array().unwrap().len(), 1);

    let started_at = Instant::now();
    let swept = jobs::sweep_once(&vault.vault, ids::new_uuid())
        .await
        .unwrap();
    let took = started_at.elapsed();

    assert_eq!(swept, Some(u64::try_from(MANY).unwrap()));
    for (table, left) in [("token", 1), ("term", 1), ("claim", 0)] {
        assert_eq!(count(&vault, table).await, left, "{table}");
    }
    let a_second = f64::from(MANY) / took.as_secs_f64();
    println!(
        "{MANY} expired tokens swept in {} ms, {a_second:.0} a second",
        took.as_millis()
    );
    // A million at once are then gone within a quarter of an hour.
    assert!(a_second > 1_000_000.0 / 900.0, "{took:?}");
    assert_eq!(
        client.get(&format!("/tokens/{}", kept.id())).await.status,
        StatusCode::OK
    );
}
