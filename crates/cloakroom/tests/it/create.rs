//! Creating tokens: what is asked for, what is checked in which order, and what comes back.

use cloakroom::access::{ApplicationKind, Permission, Tenant, Transform};
use http::StatusCode;
use serde_json::{Value, json};

use crate::support::{Answer, Client, TestVault, everything, grants, rule};

/// One valid value for each type, and one that breaks its rules.
fn of_every_type() -> [(&'static str, Value, Value); 9] {
    let bank = |routing: &str| json!({"routing_number": routing, "account_number": "00001"});
    [
        ("token", json!({"any": ["thing"]}), json!(null)),
        (
            "card",
            json!({"number": "4242424242424242"}),
            json!({"number": "4242424242424241"}),
        ),
        (
            "card_number",
            json!("4242424242424242"),
            json!(4_242_424_242_424_242_u64),
        ),
        (
            "network_token",
            json!({"number": "424242424242"}),
            json!({"number": "42424242424"}),
        ),
        ("bank", bank("021000021"), bank("021000022")),
        ("us_bank_account_number", json!("00001"), json!("01")),
        (
            "us_bank_routing_number",
            json!("021000021"),
            json!("021000022"),
        ),
        (
            "social_security_number",
            json!("078-05-1120"),
            json!("078-05-112"),
        ),
        (
            "employer_id_number",
            json!("12-3456789"),
            json!("12 3456789"),
        ),
    ]
}

/// The names of an answer's members, in alphabetical order.
fn members(value: &Value) -> Vec<&str> {
    let mut names: Vec<&str> = value
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    names.sort_unstable();
    names
}

fn text<'a>(answer: &'a Answer, name: &str) -> &'a str {
    answer.body[name]
        .as_str()
        .unwrap_or_else(|| panic!("no {name} in {}", answer.body))
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

async fn create(client: &Client, new: Value) -> Answer {
    let answer = client.post("/tokens", new).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.body);
    answer
}

/// A client that may do one thing in one container.
async fn limited(vault: &TestVault, tenant: &Tenant, permission: Permission) -> Client {
    let mut granted = grants(&[]);
    granted.rules = vec![rule(1, "/mine/", Transform::Reveal, &[permission])];
    vault.client(tenant, granted).await
}

fn token_in(container: &str) -> Value {
    json!({"type": "token", "data": "x", "containers": [container]})
}

fn assert_statuses<const N: usize>(cases: [(&str, Answer, u16); N]) {
    for (case, answer, status) in cases {
        assert_eq!(answer.status.as_u16(), status, "{case}: {}", answer.body);
    }
}

/// Covers 1.1, 1.9.
#[tokio::test]
async fn creating_asks_for_the_permission_where_each_token_goes() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = limited(&vault, &tenant, Permission::TokenCreate).await;

    let here = json!([token_in("/mine/")]);
    let both = json!([token_in("/mine/"), token_in("/theirs/")]);
    assert_statuses([
        (
            "here",
            client.post("/tokens", token_in("/mine/")).await,
            201,
        ),
        (
            "below",
            client.post("/tokens", token_in("/mine/below/")).await,
            201,
        ),
        (
            "there",
            client.post("/tokens", token_in("/theirs/")).await,
            403,
        ),
        ("tokenize here", client.post("/tokenize", here).await, 200),
        (
            "tokenize here and there",
            client.post("/tokenize", both).await,
            403,
        ),
    ]);
    assert_eq!(count(&vault, "token").await, 3);
}

/// Covers 1.4, 1.5, 1.6, 1.10.
#[tokio::test]
async fn everything_else_asks_for_the_permission_where_the_token_lies() {
    use Permission::{TokenDelete, TokenRead, TokenUpdate};
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let owner = vault.client(&tenant, everything(Transform::Reveal)).await;
    let here = create(&owner, token_in("/mine/")).await.id();
    let there = create(&owner, token_in("/theirs/")).await.id();
    let (own, foreign) = (format!("/tokens/{here}"), format!("/tokens/{there}"));

    let reader = limited(&vault, &tenant, TokenRead).await;
    let (first, second) = (format!("{{{{ {here} }}}}"), format!("{{{{ {there} }}}}"));
    let both = json!([first, second]);
    assert_statuses([
        ("read here", reader.get(&own).await, 200),
        ("read there", reader.get(&foreign).await, 403),
        (
            "detokenize here",
            reader.post("/detokenize", json!(first)).await,
            200,
        ),
        (
            "detokenize here and there",
            reader.post("/detokenize", both).await,
            403,
        ),
    ]);
    let updater = limited(&vault, &tenant, TokenUpdate).await;
    let new = json!({"data": "z"});
    let away = json!({"containers": ["/theirs/"]});
    let home = json!({"containers": ["/mine/"]});
    assert_statuses([
        ("update here", updater.patch(&own, new.clone()).await, 200),
        ("update there", updater.patch(&foreign, new).await, 403),
        ("move away", updater.patch(&own, away).await, 403),
        ("move here", updater.patch(&foreign, home).await, 403),
    ]);
    let deleter = limited(&vault, &tenant, TokenDelete).await;
    assert_statuses([
        ("delete there", deleter.delete(&foreign).await, 403),
        ("delete here", deleter.delete(&own).await, 204),
    ]);
    assert_eq!(owner.get(&foreign).await.body["data"], "x");
}

/// What every answer holds, and more.
fn always_and(more: &[&'static str]) -> Vec<&'static str> {
    let always = "containers created_at created_by data id search_indexes tenant_id type";
    let mut names: Vec<&str> = always.split(' ').chain(more.iter().copied()).collect();
    names.sort_unstable();
    names
}

/// Covers 2.1, 2.8, 2.9, 2.10, 2.11, 2.12, 2.13, 2.14, 2.16, 2.17, 2.18, 2.19.
#[tokio::test]
async fn a_token_shows_what_it_has_and_nothing_else() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant_with(&[("fingerprint_tokens", "false")]).await;
    let granted = everything(Transform::Reveal);
    let holder = vault
        .holder(&tenant, ApplicationKind::Private, granted)
        .await;
    let client = vault.client_with(Some(&holder.key));
    let whole = json!({
        "type": "token",
        "data": "x",
        "mask": "{{ data }}",
        "containers": ["/Mixed/CASE/"],
        "metadata": {"k": "v"},
        "search_indexes": ["{{ data }}"],
        "fingerprint_expression": "{{ data }}",
        "expires_at": "2040-01-01",
        "privacy": {"classification": "pii", "restriction_policy": "redact"},
        "aliases": ["a"],
        "authentication": {"a": "b"},
    });

    let bare = create(&client, json!({"type": "token", "data": "x"})).await;
    let full = create(&client, whole).await;
    let bare_read = client.get(&format!("/tokens/{}", bare.id())).await;
    let full_read = client.get(&format!("/tokens/{}", full.id())).await;

    let set = [
        "expires_at",
        "fingerprint",
        "fingerprint_expression",
        "mask",
        "metadata",
    ];
    assert_eq!(members(&bare.body), always_and(&["_extras"]));
    assert_eq!(members(&bare_read.body), always_and(&[]));
    assert_eq!(
        members(&full.body),
        always_and(&[&set[..], &["_extras"]].concat())
    );
    assert_eq!(members(&full_read.body), always_and(&set));
    for answer in [&bare, &bare_read, &full, &full_read] {
        assert_eq!(answer.body["tenant_id"], tenant.id.uuid.to_string());
        assert_eq!(answer.body["created_by"], holder.application.to_string());
        assert_eq!(answer.body["type"], "token");
    }
    for answer in [&bare, &full] {
        assert_eq!(answer.body["_extras"], json!({"deduplicated": false}));
    }
    assert_eq!(bare.body["search_indexes"], json!([]));
    assert_eq!(full_read.body["search_indexes"], json!(["{{ data }}"]));
    assert_eq!(full_read.body["containers"], json!(["/mixed/case/"]));
    assert_eq!(full_read.body["metadata"], json!({"k": "v"}));
}

/// Covers 2.15, 2.16.
#[tokio::test]
async fn a_token_tells_of_its_last_change_once_there_is_one() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant_with(&[("fingerprint_tokens", "false")]).await;
    let owner = vault.client(&tenant, everything(Transform::Reveal)).await;
    let granted = everything(Transform::Reveal);
    let holder = vault
        .holder(&tenant, ApplicationKind::Private, granted)
        .await;
    let client = vault.client_with(Some(&holder.key));
    let created = create(&owner, json!({"type": "token", "data": "x"})).await;
    let path = format!("/tokens/{}", created.id());

    let updated = client.patch(&path, json!({})).await;
    let read = client.get(&path).await;
    let again = owner.patch(&path, json!({})).await;

    assert_eq!(
        members(&updated.body),
        always_and(&["_extras", "modified_at", "modified_by"])
    );
    assert_eq!(
        members(&read.body),
        always_and(&["modified_at", "modified_by"])
    );
    assert_eq!(updated.body["modified_by"], holder.application.to_string());
    assert_eq!(again.body["modified_by"], created.body["created_by"]);
    assert!(text(&updated, "modified_at") > text(&created, "created_at"));
    assert!(text(&again, "modified_at") > text(&updated, "modified_at"));
    for answer in [&updated, &read, &again] {
        assert_eq!(answer.body["created_at"], created.body["created_at"]);
        assert_eq!(answer.body["created_by"], created.body["created_by"]);
    }
}

/// Covers 2.4, 2.5, 2.6, 2.7.
#[tokio::test]
async fn each_type_is_described_in_its_own_member() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    // Whatever the transform is: details are there even when the data is redacted.
    let client = vault.client(&tenant, everything(Transform::Redact)).await;

    let mut described = Vec::new();
    for (kind, data, _) in of_every_type() {
        let created = create(&client, json!({"type": kind, "data": data})).await;
        let read = client.get(&format!("/tokens/{}", created.id())).await;
        for name in ["card", "network_token", "bank"] {
            assert_eq!(created.body.get(name), read.body.get(name), "{kind}");
            if let Some(details) = read.body.get(name) {
                described.push((kind, name, details.clone()));
            }
        }
        assert_eq!(read.body.get("enrichments"), None, "{kind}");
    }
    let listed = client.get("/v2/tokens").await;
    let found = client.post("/v2/tokens/search", json!({})).await;
    for page in [listed, found] {
        let items = page.body["data"].as_array().unwrap().clone();
        assert_eq!(items.len(), 9);
        assert!(items.iter().all(|item| item.get("enrichments").is_none()));
    }

    let names: Vec<(&str, &str)> = described
        .iter()
        .map(|(kind, name, _)| (*kind, *name))
        .collect();
    let expected = [
        ("card", "card"),
        ("card_number", "card"),
        ("network_token", "network_token"),
        ("bank", "bank"),
    ];
    assert_eq!(names, expected);
    let (card, network_token) = (&described[0].2, &described[2].2);
    assert_eq!(
        (&card["bin"], &card["last4"]),
        (&json!("42424242"), &json!("4242"))
    );
    assert_eq!(described[1].2, *card);
    // What else there is depends on what is known of the first digits.
    for name in ["bin", "last4", "brand", "funding", "authentication"] {
        assert!(network_token.get(name).is_some(), "{name}");
    }
    assert_eq!(network_token["last4"], "4242");
    let bank = json!({"routing_number": "021000021", "account_number_last4": "0001"});
    assert_eq!(described[3].2, bank);
}

/// Covers 2.3, 3.6.
#[tokio::test]
async fn the_mask_is_shown_as_it_is_kept_and_the_types_own_applies_by_default() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = vault.client(&tenant, everything(Transform::Mask)).await;
    let last4 = json!("{{ data | reveal_last: 4 }}");
    let card = json!({
        "number": "{{ data.number | reveal_last: 4 }}",
        "expiration_month": "{{ data.expiration_month }}",
        "expiration_year": "{{ data.expiration_year }}",
    });
    let bank = json!({
        "routing_number": "{{ data.routing_number }}",
        "account_number": "{{ data.account_number | reveal_last: 4 }}",
    });
    let expected = [
        None,
        Some(card.clone()),
        Some(last4.clone()),
        Some(card),
        Some(bank),
        Some(last4.clone()),
        Some(last4.clone()),
        Some(last4.clone()),
        Some(last4),
    ];

    for ((kind, data, _), mask) in of_every_type().into_iter().zip(expected) {
        let absent = create(&client, json!({"type": kind, "data": data})).await;
        let null = create(&client, json!({"type": kind, "data": data, "mask": null})).await;
        let own = json!({"type": kind, "data": data, "mask": {"a": ["{{ data | stringify | size }}", 1, null]}});
        let own = create(&client, own).await;

        assert_eq!(absent.body.get("mask"), mask.as_ref(), "{kind}");
        assert_eq!(null.body.get("mask"), mask.as_ref(), "{kind}");
        assert_eq!(absent.body.get("data").is_some(), mask.is_some(), "{kind}");
        assert_ne!(absent.body.get("data"), Some(&data), "{kind}");
        assert_eq!(
            own.body["mask"],
            json!({"a": ["{{ data | stringify | size }}", 1, null]}),
            "{kind}"
        );
        assert!(own.body["data"]["a"][0].is_number(), "{kind}: {}", own.body);
    }
    let masked = create(
        &client,
        json!({"type": "token", "data": "x", "mask": "{{ data }}"}),
    )
    .await;
    let path = format!("/tokens/{}", masked.id());
    let removed = client.patch(&path, json!({"mask": null})).await;
    assert_eq!(
        (removed.body.get("mask"), removed.body.get("data")),
        (None, None)
    );
}

/// Covers 3.1.
#[tokio::test]
async fn without_an_id_a_token_gets_a_random_one() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;

    for id in [json!(null), json!("")] {
        let mut new = json!({"type": "token", "data": 1});
        new["id"] = id.clone();
        let answer = client.post("/tokens", new).await;
        if id.is_null() {
            let given = uuid::Uuid::parse_str(&answer.id()).unwrap();
            assert_eq!(given.get_version_num(), 4);
            assert_eq!(given.get_variant(), uuid::Variant::RFC4122);
            assert_eq!(given.hyphenated().to_string(), answer.id());
        } else {
            assert_eq!(answer.refused(), ["id"]);
        }
    }
}

/// Covers 3.2, 3.3, 3.4.
#[tokio::test]
async fn data_follows_the_rules_of_its_type() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;

    for (kind, valid, broken) in of_every_type() {
        create(&client, json!({"type": kind, "data": valid})).await;
        let refused = client
            .post("/tokens", json!({"type": kind, "data": broken}))
            .await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{kind}");
        assert!(
            refused.refused()[0].starts_with("data"),
            "{kind}: {}",
            refused.body
        );
    }
    for value in [json!(false), json!(0), json!(""), json!([]), json!({})] {
        let created = create(&client, json!({"type": "token", "data": value})).await;
        assert_eq!(created.body["data"], value);
    }
    for kind in [
        json!("Token"),
        json!("TOKEN"),
        json!("cards"),
        json!(" card"),
        json!(""),
    ] {
        let refused = client
            .post("/tokens", json!({"type": kind, "data": 1}))
            .await;
        assert_eq!(refused.refused(), ["type"], "{kind}");
    }
}

/// Covers 3.7, 2.9.
#[tokio::test]
async fn a_container_is_one_valid_path_in_lower_case() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    let long = format!("/{}/", "x".repeat(398));
    let too_long = format!("/{}/", "x".repeat(399));

    let valid = [
        (json!(["/"]), "/"),
        (json!(["/A/b-C/d_9/"]), "/a/b-c/d_9/"),
        (json!([long]), long.as_str()),
        (json!(null), "/general/high/"),
    ];
    for (containers, kept) in valid {
        let new = json!({"type": "token", "data": 1, "containers": containers});
        assert_eq!(create(&client, new).await.body["containers"], json!([kept]));
    }
    let broken = [
        (json!([]), "containers"),
        (json!(["/a/", "/b/"]), "containers"),
        (json!([""]), "containers[0]"),
        (json!(["a/"]), "containers[0]"),
        (json!(["/a"]), "containers[0]"),
        (json!(["/a//b/"]), "containers[0]"),
        (json!(["/a b/"]), "containers[0]"),
        (json!(["/\u{e4}/"]), "containers[0]"),
        (json!(["/a]/"]), "containers[0]"),
        (json!(["/{{ data }}/"]), "containers[0]"),
        (json!([too_long]), "containers[0]"),
    ];
    for (containers, path) in broken {
        let new = json!({"type": "token", "data": 1, "containers": containers});
        assert_eq!(
            client.post("/tokens", new).await.refused(),
            [path],
            "{containers}"
        );
    }
}

/// Covers 3.8, 2.10.
#[tokio::test]
async fn metadata_is_strings_and_drops_what_is_null() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;

    let cases = [
        (json!(null), Ok(None)),
        (json!({}), Ok(None)),
        (json!({"a": null}), Ok(None)),
        (
            json!({"a": null, "b": "", "c": "\u{e4}"}),
            Ok(Some(json!({"b": "", "c": "\u{e4}"}))),
        ),
        (json!({"a": 1}), Err("metadata.a")),
        (json!({"a": true}), Err("metadata.a")),
        (json!({"a": {}}), Err("metadata.a")),
    ];
    for (metadata, expected) in cases {
        let answer = client
            .post(
                "/tokens",
                json!({"type": "token", "data": 1, "metadata": metadata}),
            )
            .await;
        match expected {
            Ok(kept) => {
                let found = client.get(&format!("/tokens/{}", answer.id())).await;
                assert_eq!(found.body.get("metadata"), kept.as_ref(), "{metadata}");
            }
            Err(path) => assert_eq!(answer.refused(), [path], "{metadata}"),
        }
    }
}

/// Covers 3.9, 3.20, 2.11.
#[tokio::test]
async fn search_indexes_are_the_types_own_unless_given() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    let found = async |value: &str| {
        let query = json!({"query": format!("data:\"{value}\"")});
        let page = client.post("/v2/tokens/search", query).await;
        page.body["data"].as_array().unwrap().len()
    };
    let own = json!([
        "{{ data }}",
        "{{ data | replace: '-' }}",
        "{{ data | last4 }}"
    ]);

    for (kind, data, _) in of_every_type() {
        let shown = match kind {
            "social_security_number" | "employer_id_number" => own.clone(),
            _ => json!([]),
        };
        let marked = json!(["{{ 'mark' }}"]);
        for (given, shown) in [
            (json!(null), &shown),
            (json!([]), &json!([])),
            (marked.clone(), &marked),
        ] {
            let new = json!({"type": kind, "data": data, "search_indexes": given});
            let created = create(&client, new).await;
            assert_eq!(created.body["search_indexes"], *shown, "{kind} {given}");
        }
    }
    assert_eq!(found("mark").await, 9);
    for value in [
        "078-05-1120",
        "078051120",
        "1120",
        "12-3456789",
        "123456789",
        "6789",
    ] {
        assert_eq!(found(value).await, 1, "{value}");
    }
    assert_eq!(found("4242").await, 0);
}

/// Covers 3.13, 3.14.
#[tokio::test]
async fn what_is_broken_is_told_first_and_what_is_forbidden_next() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let mut granted = grants(&[]);
    granted.rules = vec![rule(
        1,
        "/mine/",
        Transform::Mask,
        &[Permission::TokenCreate],
    )];
    let client = vault.client(&tenant, granted).await;
    let owner = vault.client(&tenant, everything(Transform::Reveal)).await;
    create(&owner, json!({"id": "taken", "type": "token", "data": 1})).await;

    let broken = json!({
        "id": "a/b",
        "type": "token",
        "data": 1,
        "mask": "{{ data | nothing }}",
        "search_indexes": ["{{ data }}", "{{"],
        "fingerprint_expression": "{{ data | nothing }}",
        "expires_at": "soon",
        "containers": ["/theirs/"],
    });
    let broken = client.post("/tokens", broken).await;
    assert_eq!(broken.status, StatusCode::BAD_REQUEST);
    let expected = [
        "expires_at",
        "fingerprint_expression",
        "id",
        "mask",
        "search_indexes[1]",
    ];
    let mut refused = broken.refused();
    refused.sort_unstable();
    assert_eq!(refused, expected);

    // Nothing of this is looked at where the caller has no business.
    let forbidden = [
        json!({"id": "taken"}),
        json!({"search_indexes": ["{{ data.missing }}"]}),
        json!({"fingerprint_expression": "{{ data.missing }}"}),
        json!({"id": "{{ data.missing }}"}),
        json!({"expires_at": "2020-01-01"}),
        json!({"deduplicate_token": true}),
    ];
    for mut new in forbidden {
        new["type"] = json!("token");
        new["data"] = json!(1);
        new["containers"] = json!(["/theirs/"]);
        let answer = client.post("/tokens", new.clone()).await;
        assert_eq!(
            answer.status,
            StatusCode::FORBIDDEN,
            "{new}: {}",
            answer.body
        );
    }
    assert_eq!(count(&vault, "token").await, 1);
}

/// Covers 3.15, 3.29, 10.23.
#[tokio::test]
async fn each_search_index_gives_one_value_that_is_not_empty() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    let data = json!({
        "month": 4, "price": 19.90, "flag": false, "empty": "", "null": null, "list": [],
        "spaces": " ", "many": [{"x": 1}, {"x": 2}],
    });
    let create = async |indexes: Value| {
        client
            .post(
                "/tokens",
                json!({"type": "token", "data": data, "search_indexes": indexes}),
            )
            .await
    };

    let empty = [
        "{{ data.missing }}",
        "{{ data.empty }}",
        "{{ data.null }}",
        "{{ data.month.deep }}",
        "",
        "{{ data | json: '$.many[*].x' }}",
        "{{ data.month | divided_by: 0 }}",
    ];
    for expression in empty {
        let answer = create(json!(["{{ data.month }}", expression])).await;
        assert_eq!(answer.refused(), ["search_indexes[1]"], "{expression}");
    }
    let both = create(json!([
        "{{ data.missing }}",
        "{{ data.month }}",
        "{{ data.empty }}"
    ]))
    .await;
    assert_eq!(both.refused(), ["search_indexes[0]", "search_indexes[2]"]);

    let indexes = [
        "{{ data.month }}",
        "{{ data.price }}",
        "{{ data.flag }}",
        "{{ data.spaces }}",
        "m-{{ data.month }}",
    ];
    let created = create(json!(indexes)).await;
    assert_eq!(created.status, StatusCode::CREATED, "{}", created.body);
    for value in ["4", "19.9", "false", " ", "m-4"] {
        let query = json!({"query": format!("data:\"{value}\"")});
        let page = client.post("/v2/tokens/search", query).await;
        assert_eq!(
            page.body["data"][0]["id"], created.body["id"],
            "{value}: {}",
            page.body
        );
    }
}

/// Covers 3.16.
#[tokio::test]
async fn an_expression_that_gives_nothing_is_refused_unless_it_is_the_types_own() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;

    let given = ["{{ data }}", "{{ data.x }}", "{{ metadata.x }}", ""];
    for expression in given {
        let new = json!({"type": "token", "data": "", "fingerprint_expression": expression});
        let answer = client.post("/tokens", new).await;
        assert_eq!(answer.refused(), ["fingerprint_expression"], "{expression}");
    }
    for deduplicate in [false, true, true] {
        let new = json!({"type": "token", "data": "", "deduplicate_token": deduplicate});
        let created = create(&client, new).await;
        assert_eq!(created.body.get("fingerprint"), None);
        assert_eq!(created.body.get("fingerprint_expression"), None);
        assert_eq!(created.body["_extras"], json!({"deduplicated": false}));
    }
    assert_eq!(count(&vault, "token").await, 3);
}

/// Covers 3.17, 3.26, 3.27.
#[tokio::test]
async fn expressions_are_checked_when_they_are_written() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    let long = |characters: usize| format!("{{{{ data }}}}{}", "x".repeat(characters - 10));

    let cases = [
        ("mask", json!("{{ data | nothing }}"), Some("mask")),
        ("mask", json!({"a": ["{{ data"]}), Some("mask.a[0]")),
        ("mask", json!({"a": ["{{ data | }}"]}), Some("mask.a[0]")),
        ("mask", json!("{% nothing %}"), Some("mask")),
        ("id", json!("{{ data | nothing }}"), Some("id")),
        ("id", json!("{{ data | card_exp }}"), Some("id")),
        (
            "fingerprint_expression",
            json!("{{ data | nothing }}"),
            Some("fingerprint_expression"),
        ),
        (
            "fingerprint_expression",
            json!("{{ data | alias_preserve_length }}"),
            Some("fingerprint_expression"),
        ),
        ("fingerprint_expression", json!(long(400)), None),
        (
            "fingerprint_expression",
            json!(long(401)),
            Some("fingerprint_expression"),
        ),
        (
            "search_indexes",
            json!(["{{ data | nothing }}"]),
            Some("search_indexes[0]"),
        ),
        (
            "search_indexes",
            json!(["{{ data | alias_card }}"]),
            Some("search_indexes[0]"),
        ),
        (
            "search_indexes",
            json!(["{{ data }}", "{{ data | alias_preserve_format }}"]),
            Some("search_indexes[1]"),
        ),
        ("search_indexes", json!([long(400)]), None),
        (
            "search_indexes",
            json!([long(401)]),
            Some("search_indexes[0]"),
        ),
        ("search_indexes", json!(vec!["{{ data }}"; 10]), None),
        (
            "search_indexes",
            json!(vec!["{{ data }}"; 11]),
            Some("search_indexes"),
        ),
    ];
    for (attribute, value, refused) in cases {
        let mut new = json!({"type": "token", "data": "abc"});
        new[attribute] = value.clone();
        let answer = client.post("/tokens", new).await;
        match refused {
            Some(path) => assert_eq!(answer.refused(), [path], "{attribute} {value}"),
            None => assert_eq!(
                answer.status,
                StatusCode::CREATED,
                "{attribute} {value}: {}",
                answer.body
            ),
        }
    }
}

/// Covers 3.19.
#[tokio::test]
async fn a_refused_create_leaves_nothing_behind() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    let with = |more: Value| {
        let mut new = json!({
            "type": "token",
            "data": {"a": 1},
            "metadata": {"k": "v"},
            "search_indexes": ["{{ data.a }}"],
            "deduplicate_token": true,
        });
        for (name, value) in more.as_object().unwrap() {
            new[name] = value.clone();
        }
        new
    };
    create(
        &client,
        json!({"id": "taken", "type": "token", "data": "x", "search_indexes": ["{{ data }}"]}),
    )
    .await;
    let before = [
        count(&vault, "token").await,
        count(&vault, "term").await,
        count(&vault, "claim").await,
    ];

    let refused = [
        (json!({"id": "taken"}), StatusCode::CONFLICT),
        (json!({"expires_at": "2020-01-01"}), StatusCode::BAD_REQUEST),
        (
            json!({"search_indexes": ["{{ data.a }}", "{{ data.b }}"]}),
            StatusCode::BAD_REQUEST,
        ),
        (
            json!({"fingerprint_expression": "{{ data.b }}"}),
            StatusCode::BAD_REQUEST,
        ),
        (json!({"id": "{{ data.b }}"}), StatusCode::BAD_REQUEST),
        (
            json!({"metadata": {"pan": "4242424242424242"}}),
            StatusCode::BAD_REQUEST,
        ),
    ];
    for (more, status) in refused {
        let answer = client.post("/tokens", with(more.clone())).await;
        assert_eq!(answer.status, status, "{more}: {}", answer.body);
        let after = [
            count(&vault, "token").await,
            count(&vault, "term").await,
            count(&vault, "claim").await,
        ];
        assert_eq!(after, before, "{more}");
    }
    create(&client, with(json!({}))).await;
    assert_eq!(count(&vault, "claim").await, 1);
}

/// Covers 3.21, 2.2.
#[tokio::test]
async fn the_answer_shows_the_data_as_the_grant_for_creating_says() {
    use Permission::{TokenCreate, TokenRead};
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let new =
        json!({"type": "token", "data": "secret value", "mask": "{{ data | reveal_last: 4 }}"});

    let cases = [
        (
            Some(Transform::Reveal),
            Transform::Redact,
            Some("secret value"),
            None,
        ),
        (
            Some(Transform::Redact),
            Transform::Reveal,
            None,
            Some("secret value"),
        ),
        (
            Some(Transform::Mask),
            Transform::Reveal,
            Some("XXXXXXXXalue"),
            Some("secret value"),
        ),
        // A plain permission masks.
        (
            None,
            Transform::Reveal,
            Some("XXXXXXXXalue"),
            Some("secret value"),
        ),
    ];
    for (creating, reading, created, read) in cases {
        let mut granted = match creating {
            Some(_) => grants(&[]),
            None => grants(&[TokenCreate]),
        };
        granted.rules = vec![rule(2, "/", reading, &[TokenRead])];
        granted
            .rules
            .extend(creating.map(|transform| rule(1, "/", transform, &[TokenCreate])));
        let client = vault.client(&tenant, granted).await;

        let answer = create(&client, new.clone()).await;
        let location = format!("{}/tokens/{}", vault.base_url, answer.id());
        let found = client.get(&format!("/tokens/{}", answer.id())).await;

        assert_eq!(answer.header("location"), location);
        assert_eq!(
            answer.body.get("data").and_then(Value::as_str),
            created,
            "{creating:?}"
        );
        assert_eq!(
            found.body.get("data").and_then(Value::as_str),
            read,
            "{reading:?}"
        );
    }
}

/// Covers 3.10, 3.22, 3.25, 2.8, 2.12.
#[tokio::test]
async fn a_token_has_a_fingerprint_when_somebody_wants_one() {
    let vault = TestVault::start().await;
    let without = vault.tenant_with(&[("fingerprint_tokens", "false")]).await;
    let deduplicating = [
        ("fingerprint_tokens", "false"),
        ("deduplicate_tokens", "true"),
    ];
    let deduplicating = vault.tenant_with(&deduplicating).await;
    let usual = vault.tenant().await;
    let expression = "{{ data.number | last4 }}";
    let own = "{{ data.number }}";

    let cases = [
        (&usual, json!({}), Some(own)),
        (&usual, json!({"fingerprint_expression": null}), Some(own)),
        (
            &usual,
            json!({"fingerprint_expression": expression}),
            Some(expression),
        ),
        (&without, json!({}), None),
        (&without, json!({"deduplicate_token": false}), None),
        (
            &without,
            json!({"fingerprint_expression": expression}),
            Some(expression),
        ),
        (&without, json!({"deduplicate_token": true}), Some(own)),
        (&deduplicating, json!({}), Some(own)),
        (&deduplicating, json!({"deduplicate_token": false}), None),
    ];
    for (tenant, mut new, expected) in cases {
        let client = vault.client(tenant, everything(Transform::Reveal)).await;
        new["type"] = json!("card");
        new["data"] = json!({"number": "4242424242424242"});
        let created = create(&client, new.clone()).await;
        let read = client.get(&format!("/tokens/{}", created.id())).await;
        assert_eq!(
            created.body.get("fingerprint_expression"),
            expected.map(Value::from).as_ref(),
            "{new}"
        );
        assert_eq!(
            created.body.get("fingerprint").is_some(),
            expected.is_some(),
            "{new}"
        );
        assert_eq!(
            read.body.get("fingerprint"),
            created.body.get("fingerprint"),
            "{new}"
        );
    }
}

/// Covers 3.10, 3.23, 3.24.
#[tokio::test]
async fn equal_data_has_equal_fingerprints_within_a_type_and_tenant() {
    let vault = TestVault::start().await;
    let (first, second) = (vault.tenant().await, vault.tenant().await);
    let first = vault.client(&first, everything(Transform::Reveal)).await;
    let second = vault.client(&second, everything(Transform::Reveal)).await;
    let print = async |client: &Client, kind: &str, data: Value, more: Value| {
        let mut new = json!({"type": kind, "data": data});
        for (name, value) in more.as_object().unwrap() {
            new[name] = value.clone();
        }
        text(&create(client, new).await, "fingerprint").to_owned()
    };
    let none = || json!({});
    let number = json!("4242424242424242");

    let own = print(&first, "card_number", number.clone(), none()).await;
    assert_eq!(
        print(&first, "card_number", number.clone(), none()).await,
        own
    );
    let elsewhere = json!({"containers": ["/else/where/"], "metadata": {"a": "b"}, "mask": "x"});
    assert_eq!(
        print(&first, "card_number", number.clone(), elsewhere).await,
        own
    );
    let spelled_out = json!({"fingerprint_expression": "{{ data }}"});
    assert_eq!(
        print(&first, "card_number", number.clone(), spelled_out).await,
        own
    );

    let mut others = vec![
        own,
        print(&first, "card_number", json!("4111111111111111"), none()).await,
        print(&first, "token", number.clone(), none()).await,
        print(&first, "card", json!({"number": number}), none()).await,
        print(&second, "card_number", number.clone(), none()).await,
        print(&second, "token", number, none()).await,
    ];
    let by_metadata = json!({"fingerprint_expression": "{{ metadata.a }}", "metadata": {"a": "1"}});
    let by_other_metadata =
        json!({"fingerprint_expression": "{{ metadata.a }}", "metadata": {"a": "2"}});
    others.push(print(&first, "token", json!("same"), by_metadata).await);
    others.push(print(&first, "token", json!("same"), by_other_metadata).await);
    let distinct: std::collections::BTreeSet<&String> = others.iter().collect();
    assert_eq!(distinct.len(), others.len());

    // What a type ignores about its data, its fingerprint ignores as well.
    let dashes = print(
        &first,
        "social_security_number",
        json!("078-05-1120"),
        none(),
    )
    .await;
    assert_eq!(
        print(&first, "social_security_number", json!("078051120"), none()).await,
        dashes
    );
    let month = json!({"number": "4242424242424242", "expiration_month": "02"});
    let card = json!({"number": "4242424242424242"});
    assert_eq!(
        print(&first, "card", month, none()).await,
        print(&first, "card", card, none()).await
    );
    // Two spellings of the same letter.
    assert_eq!(
        print(&first, "token", json!("k\u{e4}se"), none()).await,
        print(&first, "token", json!("ka\u{308}se"), none()).await
    );
    let stringified = json!({"fingerprint_expression": "{{ data | stringify }}"});
    let object = json!({"a": [1.50, {"b": "\u{e4}\n"}], "c": null});
    assert_eq!(
        print(&first, "token", object.clone(), none()).await,
        print(&first, "token", object, stringified).await
    );
}

/// Covers 3.23.
#[tokio::test]
async fn a_fingerprint_is_32_bytes_in_base58() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    let mut lengths = std::collections::BTreeMap::new();

    for n in 0..150 {
        let created = create(&client, json!({"type": "token", "data": n})).await;
        let print = text(&created, "fingerprint");
        assert_eq!(bs58::decode(print).into_vec().unwrap().len(), 32, "{print}");
        *lengths.entry(print.len()).or_insert(0) += 1;
    }

    println!("characters of fingerprints: {lengths:?}");
    assert!(
        lengths.keys().all(|length| (43..=44).contains(length)),
        "{lengths:?}"
    );
}

/// I07: no digest that is kept depends on a security code.
///
/// Covers 3.28.
#[tokio::test]
async fn equal_cards_with_different_security_codes_leave_equal_digests() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    let database = vault.database.connect().await;
    let digests = async |id: &str| {
        let id = uuid::Uuid::parse_str(id).unwrap();
        let sql = "select encode(fingerprint, 'hex'), terms, alias, mask, metadata,
                          (select array_agg(term.term order by term.term) from term
                           where term.token_id = token.token_id)
                   from token where token_id = $1";
        let row = database.query_one(sql, &[&id]).await.unwrap();
        let listed: Vec<Vec<u8>> = row.get(5);
        assert!(listed.len() >= 4, "{}", listed.len());
        let clear: [Option<String>; 3] = [row.get(2), row.get(3), row.get(4)];
        (
            row.get::<_, String>(0),
            row.get::<_, Vec<Vec<u8>>>(1),
            listed,
            clear,
        )
    };

    for kind in ["card", "network_token"] {
        // The last expression sees all of the data, whatever that is.
        for expression in [json!(null), json!("{{ data | stringify }}")] {
            let mut seen = Vec::new();
            for code in [json!("123"), json!("124"), json!(9876), json!(null)] {
                let new = json!({
                    "type": kind,
                    "data": {"number": "4242424242424242", "cvc": code, "expiration_month": 4, "name": "A"},
                    "fingerprint_expression": expression,
                    "search_indexes": ["{{ data.number | last4 }}", "{{ data | stringify }}"],
                    "metadata": {"order": "1"},
                    "mask": {"all": "{{ data | stringify }}", "code": "{{ data.cvc }}"},
                });
                let created = create(&client, new).await;
                let id = created.id();
                seen.push((digests(&id).await, text(&created, "fingerprint").to_owned()));
            }
            assert!(
                seen.iter().all(|each| *each == seen[0]),
                "{kind} {expression}: {seen:?}"
            );
        }
    }
}

/// I07: expressions that are kept cannot ask for a security code.
///
/// Covers 3.28.
#[tokio::test]
async fn expressions_that_ask_for_the_security_code_are_refused() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;

    let asking = [
        "{{ data.cvc }}",
        "{{ data['cvc'] }}",
        "{{ data | json: '$.cvc' }}",
        "{{ data.number }}-{{ data.cvc }}",
        "{% if data.cvc == '123' %}a{% else %}b{% endif %}",
    ];
    for kind in ["card", "network_token"] {
        let card = || json!({"type": kind, "data": {"number": "4242424242424242", "cvc": "123"}});
        let plain = create(&client, card()).await.id();
        for expression in asking {
            for (attribute, value, path) in [
                (
                    "fingerprint_expression",
                    json!(expression),
                    "fingerprint_expression",
                ),
                (
                    "search_indexes",
                    json!(["{{ data.number }}", expression]),
                    "search_indexes[1]",
                ),
            ] {
                let mut new = card();
                new[attribute] = value.clone();
                let created = client.post("/tokens", new).await;
                let updated = client
                    .patch(&format!("/tokens/{plain}"), json!({(attribute): value}))
                    .await;
                assert_eq!(created.refused(), [path], "{kind} {expression}");
                assert_eq!(updated.refused(), [path], "{kind} {expression}");
            }
        }
        // An id is made of what is kept, and the code is not.
        let mut new = card();
        new["id"] = json!("{{ data.cvc }}");
        assert_eq!(
            client.post("/tokens", new).await.refused(),
            ["id"],
            "{kind}"
        );
    }
    // In data without rules a member of that name is a member like any other.
    let free =
        json!({"type": "token", "data": {"cvc": "123"}, "search_indexes": ["{{ data.cvc }}"]});
    create(&client, free).await;
}

/// Covers 1.1, 3.21.
#[tokio::test]
async fn a_public_application_creates_and_sees_the_mask() {
    let vault = TestVault::start().await;
    let tenant: Tenant = vault.tenant().await;
    let holder = vault
        .holder(
            &tenant,
            ApplicationKind::Public,
            grants(&[Permission::TokenCreate]),
        )
        .await;
    let client = vault.client_with(Some(&holder.key));

    let created = create(
        &client,
        json!({"type": "card_number", "data": "4242424242424242"}),
    )
    .await;

    assert_eq!(created.body["data"], "XXXXXXXXXXXX4242");
    assert_eq!(created.body["created_by"], holder.application.to_string());
    let read = client.get(&format!("/tokens/{}", created.id())).await;
    assert_eq!(read.status, StatusCode::FORBIDDEN);
}
