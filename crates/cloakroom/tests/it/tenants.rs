//! A tenant as its management keys see it: settings, quotas, usage, and its end.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use cloakroom::access::{self, ApplicationKind, Permission, RateLimit, Tenant, Transform};
use cloakroom::members::{self, Email, NewInvitation, NewMember, Role};
use cloakroom::tenants::{self, Changes};
use cloakroom::{ids, jobs};
use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::{Client, Lines, TestDatabase, TestVault, everything, grants};

const SELF: &str = "/tenants/self";
const QUOTAS: &str = "/tenants/self/quotas";

/// Someone who may do everything about a tenant, and nothing with tokens.
async fn manager(vault: &TestVault, tenant: &Tenant) -> Client {
    let permissions = [
        Permission::TenantRead,
        Permission::TenantUpdate,
        Permission::TenantDelete,
        Permission::ReportRead,
        Permission::LogRead,
    ];
    let holder = vault
        .holder(tenant, ApplicationKind::Management, grants(&permissions))
        .await;
    vault.client_with(Some(&holder.key))
}

/// Asks a node until it answers as expected, and tells how long it did not: the time when the last
/// request that was answered otherwise was sent.
async fn until(expected: StatusCode, ask: impl AsyncFn() -> StatusCode) -> Duration {
    let (started, mut last_other) = (Instant::now(), Duration::ZERO);
    loop {
        let asked = started.elapsed();
        if ask().await == expected {
            return last_other;
        }
        last_other = asked;
        assert!(
            asked < Duration::from_secs(20),
            "it never answered {expected}"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Covers 14.1, 14.2.
#[tokio::test]
async fn a_tenant_sees_itself() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant_with(&[("deduplicate_tokens", "true")]).await;
    let client = manager(&vault, &tenant).await;

    let answer = client.get(SELF).await;

    assert_eq!(answer.status, StatusCode::OK);
    assert_eq!(answer.body["id"], tenant.id.uuid.to_string());
    insta::assert_snapshot!(answer.told(&["id", "created_at"]), @r#"
    {
      "id": "[id]",
      "name": "A tenant",
      "type": "test",
      "settings": {
        "fingerprint_tokens": "true",
        "disable_ephemeral_proxy": "false",
        "deduplicate_tokens": "true",
        "token_deduplication_behavior": "read_existing"
      },
      "created_at": "[created_at]"
    }
    "#);
}

/// Covers 14.2.
#[tokio::test]
async fn a_tenant_names_its_owner_by_user() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = manager(&vault, &tenant).await;
    let owner = add(&vault, &tenant, "owner@example.com", Role::Owner).await;

    let answer = client.get(SELF).await;

    assert_eq!(answer.body["owner_id"], owner.user.id.to_string());
}

async fn add(vault: &TestVault, tenant: &Tenant, email: &str, role: Role) -> members::Member {
    let new = NewMember {
        email: Email::parse(email).unwrap(),
        role,
        first_name: None,
        last_name: None,
    };
    members::add(&vault.vault, tenant.id, new).await.unwrap()
}

/// Covers 14.3, 14.4.
#[tokio::test]
async fn given_settings_are_merged_and_the_others_stay() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = manager(&vault, &tenant).await;

    let first = json!({"name": "Shop", "settings": {"deduplicate_tokens": "true"}});
    let first = client.put(SELF, first).await;
    let second = json!({"name": "Shop 2", "settings": {
        "token_deduplication_behavior": "update_existing", "fingerprint_tokens": null
    }});
    client.put(SELF, second).await;
    let renamed = client
        .put(SELF, json!({"name": "Shop 3", "color": "red"}))
        .await;

    assert_eq!(first.status, StatusCode::OK, "{}", first.body);
    assert_eq!(first.body["settings"]["deduplicate_tokens"], "true");
    assert!(first.body["modified_at"].is_string() && first.body["modified_by"].is_string());
    assert_eq!(renamed.body["name"], "Shop 3");
    let kept = client.get(SELF).await.body;
    assert_eq!(kept, renamed.body);
    assert_eq!(
        kept["settings"],
        json!({
            "fingerprint_tokens": "true",
            "disable_ephemeral_proxy": "false",
            "deduplicate_tokens": "true",
            "token_deduplication_behavior": "update_existing",
        })
    );
}

/// Covers 14.5.
#[tokio::test]
async fn what_is_wrong_with_a_change_is_named_and_nothing_changes() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = manager(&vault, &tenant).await;
    let before = client.get(SELF).await.body;

    let cases = [
        (json!({}), "name"),
        (json!({"name": null}), "name"),
        (json!({"name": ""}), "name"),
        (json!({"name": "a\nb"}), "name"),
        (json!({"name": "n".repeat(201)}), "name"),
        (json!({"name": "4242 4242 4242 4242"}), "name"),
        (json!({"name": 7}), "name"),
        (json!({"name": "n", "settings": []}), "settings"),
        (
            json!({"name": "n", "settings": {"deduplicate_tokens": true}}),
            "settings.deduplicate_tokens",
        ),
        (
            json!({"name": "n", "settings": {"deduplicate_tokens": "yes"}}),
            "settings.deduplicate_tokens",
        ),
        (
            json!({"name": "n", "settings": {"token_deduplication_behavior": "keep"}}),
            "settings.token_deduplication_behavior",
        ),
        (
            json!({"name": "n", "settings": {"unknown_one": "true"}}),
            "settings.unknown_one",
        ),
        (
            json!({"name": "", "settings": {"unknown_one": "true", "deduplicate_tokens": "true"}}),
            "name settings.unknown_one",
        ),
    ];
    for (change, refused) in cases {
        let answer = client.put(SELF, change.clone()).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{change}");
        assert_eq!(answer.refused().join(" "), refused, "{change}");
    }

    assert_eq!(client.get(SELF).await.body, before);
}

/// Covers 14.6.
#[tokio::test]
async fn a_setting_holds_here_at_once_and_on_every_node_within_five_seconds() {
    let vault = TestVault::start().await;
    let other = vault.second_node().await;
    let tenant = vault.tenant().await;
    let client = manager(&vault, &tenant).await;
    let holder = vault
        .holder(
            &tenant,
            ApplicationKind::Private,
            everything(Transform::Reveal),
        )
        .await;
    let new = || json!({"type": "token", "data": "the same"});
    let deduplicates = async |node: &TestVault| {
        let tokens = node.client_with(Some(&holder.key));
        let (one, two) = (
            tokens.post("/tokens", new()).await,
            tokens.post("/tokens", new()).await,
        );
        one.id() == two.id()
    };
    assert!(!deduplicates(&vault).await && !deduplicates(&other).await);

    let change = json!({"name": "Shop", "settings": {"deduplicate_tokens": "true"}});
    let changed = client.put(SELF, change).await;

    assert_eq!(changed.status, StatusCode::OK);
    assert!(deduplicates(&vault).await, "not even here");
    let lag = until(StatusCode::OK, async || match deduplicates(&other).await {
        true => StatusCode::OK,
        false => StatusCode::ACCEPTED,
    })
    .await;
    assert!(lag <= Duration::from_secs(5), "{lag:?}");
}

/// Covers 14.7.
#[tokio::test]
async fn a_changed_row_is_still_genuine_and_one_changed_by_sql_is_not_made_so() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = manager(&vault, &tenant).await;
    let change = json!({"name": "Shop", "settings": {"deduplicate_tokens": "true"}});
    client.put(SELF, change.clone()).await;
    client.put(QUOTAS, json!({"tokenize_limit": 7})).await;

    let intact = access::examine(&vault.vault).await.unwrap();
    // The key is remembered, so that the change is tried at all.
    assert_eq!(client.get(SELF).await.status, StatusCode::OK);
    let database = vault.database.connect().await;
    let meddle = "update tenant set quotas = '{\"tokenize_limit\":1000}'";
    database.execute(meddle, &[]).await.unwrap();
    let answers = [
        client.put(SELF, change).await,
        client.put(QUOTAS, json!({"detokenize_limit": 7})).await,
        client.get(SELF).await,
        client.delete(SELF).await,
    ];

    assert_eq!(intact.altered, Vec::<String>::new());
    for answer in answers {
        let status = StatusCode::INTERNAL_SERVER_ERROR;
        assert_eq!(answer.status, status, "{}", answer.body);
        assert_eq!(answer.body["code"], "altered_row");
    }
    let altered = access::examine(&vault.vault).await.unwrap().altered;
    assert_eq!(altered.len(), 1, "{altered:?}");
}

/// Covers 14.3.
#[tokio::test]
async fn changes_at_one_moment_are_all_kept() {
    let vault = TestVault::start_patient().await;
    let tenant = vault.tenant().await;
    let client = manager(&vault, &tenant).await;
    let names = ["fingerprint_tokens", "deduplicate_tokens"];

    for round in 0..10 {
        let text = if round % 2 == 0 { "false" } else { "true" };
        let change = |name: &str| client.put(SELF, json!({"name": "n", "settings": {name: text}}));
        let quota = json!({"tokenize_limit": round + 1});
        let (one, two, three) = tokio::join!(
            change(names[0]),
            change(names[1]),
            client.put(QUOTAS, quota)
        );

        for answer in [one, two, three] {
            assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
        }
        let kept = client.get(SELF).await.body;
        for name in names {
            assert_eq!(kept["settings"][name], text, "{round} {name}");
        }
        let quotas = client.get(QUOTAS).await.body;
        assert_eq!(quotas["tokenize_limit"], round + 1);
    }
}

/// Covers 14.8, 14.9.
#[tokio::test]
async fn quotas_are_the_deployments_unless_a_tenant_has_its_own() {
    let vault = TestVault::start_with(TestDatabase::create().await, |config| {
        config.quotas.tokenize = 6;
    })
    .await;
    let tenant = vault.tenant().await;
    let client = manager(&vault, &tenant).await;

    let before = client.get(QUOTAS).await;
    let own = json!({
        "rate_limit": "unlimited",
        "log_retention": 172_800,
        "tokenize_limit": 20,
        "detokenize_limit": 30,
        "cvc_retention": 1_800,
        "token_intent_retention": 3_600,
        "card_velocity_limit": 50,
        "threeds": false,
        "color": "red",
    });
    let changed = client.put(QUOTAS, own).await;
    let kept = client.get(QUOTAS).await;
    let some = client.put(QUOTAS, json!({"cvc_retention": null})).await;
    let nothing = client.put(QUOTAS, json!({})).await;
    let all: serde_json::Map<String, Value> = access::TenantQuotas::NAMES
        .into_iter()
        .map(|name| (name.to_owned(), Value::Null))
        .collect();
    let back = client.put(QUOTAS, Value::Object(all)).await;

    insta::assert_snapshot!(before.told(&[]), @r#"
    {
      "rate_limit": "default",
      "log_retention": 86400,
      "tokenize_limit": 6,
      "detokenize_limit": 5,
      "cvc_retention": 3600,
      "token_intent_retention": 86400,
      "card_velocity_limit": 10,
      "threeds": true
    }
    "#);
    insta::assert_snapshot!(changed.told(&[]), @r#"
    {
      "rate_limit": "unlimited",
      "log_retention": 172800,
      "tokenize_limit": 20,
      "detokenize_limit": 30,
      "cvc_retention": 1800,
      "token_intent_retention": 3600,
      "card_velocity_limit": 50,
      "threeds": false
    }
    "#);
    assert_eq!(kept.body, changed.body);
    assert_eq!(some.body["cvc_retention"], 3_600);
    assert_eq!(some.body["log_retention"], 172_800);
    assert_eq!(nothing.body, some.body);
    assert_eq!(back.body, before.body);
}

/// Covers 14.10.
#[tokio::test]
async fn quotas_out_of_range_are_refused_together() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = manager(&vault, &tenant).await;
    let before = client.get(QUOTAS).await.body;

    let answer = client
        .put(
            QUOTAS,
            json!({
                "rate_limit": "fast",
                "log_retention": 3_599,
                "tokenize_limit": 0,
                "detokenize_limit": 1_001,
                "cvc_retention": "1h",
                "token_intent_retention": 172_801,
                "card_velocity_limit": 0,
                "threeds": "yes",
            }),
        )
        .await;
    let one_of_two = json!({"tokenize_limit": 9, "detokenize_limit": -1});
    let one_of_two = client.put(QUOTAS, one_of_two).await;
    let no_object = client.put(QUOTAS, json!([])).await;

    assert_eq!(answer.status, StatusCode::BAD_REQUEST);
    let mut names = access::TenantQuotas::NAMES;
    names.sort_unstable();
    assert_eq!(answer.refused(), names);
    assert_eq!(one_of_two.refused(), ["detokenize_limit"]);
    assert_eq!(no_object.refused(), ["body"]);
    assert_eq!(client.get(QUOTAS).await.body, before);
}

/// Covers 14.11.
#[tokio::test]
async fn a_request_has_as_many_tokens_as_the_quota_says() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = manager(&vault, &tenant).await;
    let tokens = vault.client(&tenant, everything(Transform::Reveal)).await;
    let many = |count: usize| json!(vec!["x"; count]);
    assert_eq!(
        tokens.post("/tokenize", many(5)).await.status,
        StatusCode::OK
    );
    let id = tokens.post("/tokenize", json!("x")).await.body;
    let expression = format!("{{{{ {} }}}}", id.as_str().unwrap());
    let uses = |count: usize| json!(vec![&expression; count]);

    let own = json!({"tokenize_limit": 7, "detokenize_limit": 8});
    let changed = client.put(QUOTAS, own).await;

    assert_eq!(changed.status, StatusCode::OK);
    let cases = [
        ("/tokenize", many(7), StatusCode::OK),
        ("/tokenize", many(8), StatusCode::BAD_REQUEST),
        ("/detokenize", uses(8), StatusCode::OK),
        ("/detokenize", uses(9), StatusCode::BAD_REQUEST),
    ];
    for (path, body, expected) in cases {
        let answer = tokens.post(path, body).await;
        assert_eq!(answer.status, expected, "{path}: {}", answer.body);
    }
}

/// Covers 14.12.
#[tokio::test]
async fn a_security_code_lives_as_long_as_the_quota_says() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = manager(&vault, &tenant).await;
    let tokens = vault.client(&tenant, everything(Transform::Reveal)).await;
    let card = || {
        json!({"type": "card", "data": {"number": "4242424242424242",
            "expiration_month": 12, "expiration_year": 2099, "cvc": "123"}})
    };
    let long = tokens.post("/tokens", card()).await.id();

    client.put(QUOTAS, json!({"cvc_retention": 2})).await;
    let short = tokens.post("/tokens", card()).await.id();

    let code = async |id: &str| {
        let answer = tokens.get(&format!("/tokens/{id}")).await;
        answer.body["data"]["cvc"].as_str().map(str::to_owned)
    };
    assert_eq!(code(&short).await.as_deref(), Some("123"));
    tokio::time::sleep(Duration::from_millis(2_200)).await;
    assert_eq!(code(&short).await, None);
    assert_eq!(code(&long).await.as_deref(), Some("123"));
}

/// Covers 14.9.
#[tokio::test]
async fn callers_carry_the_quotas_that_hold_for_their_tenant() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = manager(&vault, &tenant).await;
    let holder = vault
        .holder(
            &tenant,
            ApplicationKind::Private,
            grants(&[Permission::TokenUse]),
        )
        .await;
    let quotas = async || {
        let holder = access::authenticate(&vault.vault, &holder.key).await;
        holder.unwrap().quotas.clone()
    };
    let before = quotas().await;

    let own = json!({
        "rate_limit": "unlimited", "log_retention": 7_200, "token_intent_retention": 60
    });
    client.put(QUOTAS, own).await;

    let after = quotas().await;
    let day = Duration::from_secs(24 * 60 * 60);
    assert_eq!(before.rate_limit, RateLimit::Default);
    assert_eq!(
        (before.log_retention, before.token_intent_retention),
        (day, day)
    );
    assert_eq!(after.rate_limit, RateLimit::Unlimited);
    assert_eq!(after.log_retention, Duration::from_secs(7_200));
    assert_eq!(after.token_intent_retention, Duration::from_secs(60));
    assert_eq!(after.cvc_retention, before.cvc_retention);
}

/// Covers 14.13.
#[tokio::test]
async fn a_security_contact_is_kept() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = manager(&vault, &tenant).await;
    let path = "/tenants/self/security-contact";

    let none = client.get(path).await;
    let set = client
        .put(path, json!({"email": "security@example.com"}))
        .await;
    let kept = client.get(path).await;

    assert_eq!((none.status, none.body), (StatusCode::OK, json!({})));
    assert_eq!(set.status, StatusCode::OK);
    assert_eq!(set.body, json!({"email": "security@example.com"}));
    assert_eq!(kept.body, set.body);
    for refused in [json!({}), json!({"email": null}), json!({"email": "x"})] {
        let answer = client.put(path, refused.clone()).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{refused}");
        assert_eq!(answer.refused(), ["email"], "{refused}");
    }
    // Nothing that has a digest was touched.
    let examined = access::examine(&vault.vault).await.unwrap();
    assert_eq!(examined.altered, Vec::<String>::new());
}

/// Covers 14.14.
#[tokio::test]
async fn sign_on_is_gone() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = manager(&vault, &tenant).await;
    let path = "/tenants/self/connections";

    for answer in [
        client
            .post(path, json!({"strategy": "x", "options": {}}))
            .await,
        client.delete(path).await,
    ] {
        assert_eq!(answer.status, StatusCode::GONE);
        let detail = answer.body["detail"].as_str().unwrap();
        assert!(
            detail.contains("Sign-on is not part of this system"),
            "{detail}"
        );
    }
}

/// Covers 14.15, 14.16.
#[tokio::test]
async fn a_usage_report_counts_what_is_there_and_what_is_worked_with() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = manager(&vault, &tenant).await;
    let tokens = vault.client(&tenant, everything(Transform::Reveal)).await;
    let stranger = vault.revealing_client().await;
    let report = async || client.get("/tenants/self/reports/usage").await.body;
    let empty = report().await;

    let card = json!({"type": "card", "data": {"number": "4242424242424242",
        "expiration_month": 12, "expiration_year": 2099}});
    let mut ids = Vec::new();
    for new in [card, note("a"), note("b"), note("c")] {
        let created = tokens.post("/tokens", new).await;
        assert_eq!(created.status, StatusCode::CREATED, "{}", created.body);
        ids.push(created.id());
    }
    stranger.post("/tokens", note("of somebody else")).await;
    tokens.delete(&format!("/tokens/{}", ids[3])).await;
    let last = tokens.get(&format!("/tokens/{}", ids[2])).await;
    let full = report().await;

    assert_eq!(
        empty,
        json!({
            "token_report": {
                "metrics_by_type": {},
                "included_monthly_active_tokens": 0,
                "monthly_active_tokens": 0,
                "total_tokens": 0,
            },
            "total_tokens": 0,
        })
    );
    let by_type = &full["token_report"]["metrics_by_type"];
    assert_eq!(by_type["token"]["count"], 2);
    assert_eq!(by_type["token"]["last_created_at"], last.body["created_at"]);
    assert_eq!(by_type["card"]["count"], 1);
    assert_eq!(by_type.as_object().unwrap().len(), 2);
    assert_eq!(full["total_tokens"], 3);
    assert_eq!(full["token_report"]["total_tokens"], 3);
    // The deleted one was worked with this month, too.
    assert_eq!(full["token_report"]["monthly_active_tokens"], 4);
}

fn note(data: &str) -> Value {
    json!({"type": "token", "data": data})
}

/// Covers 14.16.
#[tokio::test]
async fn tokens_of_earlier_months_are_active_when_they_are_worked_with() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = manager(&vault, &tenant).await;
    let tokens = vault.client(&tenant, everything(Transform::Mask)).await;
    let mut ids = Vec::new();
    for data in ["a", "b", "c"] {
        ids.push(tokens.post("/tokens", note(data)).await.id());
    }
    let active = async || {
        let report = client.get("/tenants/self/reports/usage").await;
        report.body["token_report"]["monthly_active_tokens"].clone()
    };
    assert_eq!(active().await, 3);

    // What was recorded so far happened in another month.
    let database = vault.database.connect().await;
    let earlier = "update log set created_at = created_at - interval '40 days'";
    database.execute(earlier, &[]).await.unwrap();
    let none = active().await;
    for _ in 0..2 {
        tokens.get(&format!("/tokens/{}", ids[0])).await;
    }
    let read = active().await;
    tokens.get("/v2/tokens?size=2").await;

    assert_eq!((none, read), (json!(0), json!(1)));
    assert!(active().await.as_u64().unwrap() >= 2);
}

/// Covers 14.15.
#[tokio::test]
async fn expired_tokens_are_not_counted() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = manager(&vault, &tenant).await;
    let tokens = vault.client(&tenant, everything(Transform::Mask)).await;
    tokens.post("/tokens", note("stays")).await;
    let soon = json!({"type": "token", "data": "goes", "expires_at": "2099-01-01"});
    let id = tokens.post("/tokens", soon).await.id();

    let database = vault.database.connect().await;
    let expire = format!("update token set expires_at = now() where token_id = '{id}'");
    assert_eq!(database.execute(&expire, &[]).await.unwrap(), 1);

    let report = client.get("/tenants/self/reports/usage").await;
    assert_eq!(report.body["total_tokens"], 1);
}

/// Rows of a tenant, by table, for every table that names tenants.
async fn rows_of(vault: &TestVault, tenant: &Tenant) -> Vec<(String, i64)> {
    let database = vault.database.connect().await;
    let mut rows = Vec::new();
    for table in tables(vault).await {
        let count = format!("select count(*) from {table} where tenant_id = $1");
        let row = database.query_one(&count, &[&tenant.id.number]).await;
        rows.push((table, row.unwrap().get(0)));
    }
    rows
}

/// Every table that names tenants; partitions count as their table.
async fn tables(vault: &TestVault) -> Vec<String> {
    let database = vault.database.connect().await;
    let sql = "select c.relname::text
        from pg_class c
        join pg_attribute a on a.attrelid = c.oid and a.attname = 'tenant_id'
        where c.relnamespace = 'public'::regnamespace
          and c.relkind in ('r', 'p')
          and not c.relispartition
        order by 1";
    let rows = database.query(sql, &[]).await.unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

/// What stays of a deleted tenant: its mark, so that its number is never given to another; that its keys
/// were destroyed; and the record of what was done, which nobody may change.
const STAYS: [&str; 3] = ["log", "tenant", "tenant_key"];

#[tokio::test]
async fn every_table_that_names_tenants_is_swept() {
    let vault = TestVault::start().await;
    let swept: BTreeSet<String> = cloakroom::statements()
        .filter_map(|statement| statement.name.strip_prefix("tenants::remove_"))
        .map(str::to_owned)
        .collect();

    let tables: BTreeSet<String> = tables(&vault)
        .await
        .into_iter()
        .filter(|table| !STAYS.contains(&table.as_str()))
        .collect();

    assert_eq!(swept, tables);
}

/// Puts something into almost every table, and gives somebody who works with the tokens.
async fn furnish(vault: &TestVault, tenant: &Tenant) -> Client {
    let tokens = vault.client(tenant, everything(Transform::Reveal)).await;
    for data in ["a", "b", "c"] {
        let new = json!({"type": "token", "data": data, "metadata": {"m": data},
            "deduplicate_token": true});
        let created = tokens.post("/tokens", new).await;
        assert_eq!(created.status, StatusCode::CREATED, "{}", created.body);
    }
    let card = json!({"type": "card", "data": {"number": "4242424242424242",
        "expiration_month": 12, "expiration_year": 2099, "cvc": "123"}});
    tokens.post("/tokens", card).await;
    let intents = vault
        .client(tenant, grants(&[Permission::TokenIntentCreate]))
        .await;
    intents.post("/token-intents", note("later")).await;
    let public = grants(&[Permission::TokenCreate]);
    let public = vault.holder(tenant, ApplicationKind::Public, public).await;
    let browser = vault.client_with(Some(&public.key));
    browser.post("/sessions", json!({})).await;
    let keys = grants(&[Permission::KeysCreate]);
    let keys = vault
        .holder(tenant, ApplicationKind::Management, keys)
        .await;
    let keys = vault.client_with(Some(&keys.key));
    keys.post("/keys", json!({})).await;
    add(vault, tenant, "ada@example.com", Role::Owner).await;
    let new = NewInvitation {
        email: Email::parse("grace@example.com").unwrap(),
        role: Role::Admin,
    };
    let invited = members::invite_by_command(&vault.vault, tenant.id, &new).await;
    invited.unwrap();
    tokens
}

/// Covers 14.17, 14.18.
#[tokio::test]
async fn a_deleted_tenant_is_dead_on_every_node_and_its_rows_are_removed() {
    let vault = TestVault::start().await;
    let other = vault.second_node().await;
    let (tenant, neighbour) = (vault.tenant().await, vault.tenant().await);
    let tokens = furnish(&vault, &tenant).await;
    let unharmed = furnish(&vault, &neighbour).await;
    let client = manager(&vault, &tenant).await;
    let holder = vault
        .holder(
            &tenant,
            ApplicationKind::Private,
            everything(Transform::Reveal),
        )
        .await;
    let elsewhere = other.client_with(Some(&holder.key));
    assert_eq!(elsewhere.get("/v2/tokens").await.items().len(), 4);
    let before = rows_of(&vault, &tenant).await;
    let filled = before.iter().filter(|(_, count)| *count > 0).count();
    assert!(filled >= 15, "{before:?}");
    let neighbours = rows_of(&vault, &neighbour).await;
    let lines = Lines::capture();

    let deleted = client.delete(SELF).await;

    assert_eq!(deleted.status, StatusCode::NO_CONTENT);
    let dead = StatusCode::UNAUTHORIZED;
    assert_eq!(tokens.get("/v2/tokens").await.status, dead);
    assert_eq!(client.get(SELF).await.status, dead);
    let lag = until(dead, async || elsewhere.get("/v2/tokens").await.status).await;
    assert!(lag <= Duration::from_secs(5), "{lag:?}");
    // Nobody is called because somebody uses an old key.
    assert_eq!(lines.count("altered_row"), 0, "{}", lines.text());
    assert!(keys_are_destroyed(&vault, &tenant).await);
    assert!(tenants::find(&vault.vault, tenant.id.uuid).await.is_err());

    let swept = jobs::sweep_once(&vault.vault, ids::new_uuid()).await;
    assert_eq!(swept.unwrap(), Some(0));
    for (table, count) in rows_of(&vault, &tenant).await {
        let stays = STAYS.contains(&table.as_str());
        assert_eq!(count > 0, stays, "{table}: {count} of {before:?}");
    }
    let left = rows_of(&vault, &neighbour).await;
    assert_eq!(left, neighbours);
    assert_eq!(unharmed.get("/v2/tokens").await.items().len(), 4);
    let examined = access::examine(&vault.vault).await.unwrap();
    assert_eq!(examined.altered, Vec::<String>::new());
}

async fn keys_are_destroyed(vault: &TestVault, tenant: &Tenant) -> bool {
    let database = vault.database.connect().await;
    let kept = "select state, length(wrapped) from tenant_key where tenant_id = $1";
    let rows = database.query(kept, &[&tenant.id.number]).await.unwrap();
    let is_destroyed =
        |row: &tokio_postgres::Row| (row.get::<_, i16>(0), row.get::<_, i32>(1)) == (4, 0);
    rows.len() == 5 && rows.iter().all(is_destroyed)
}

/// Covers 14.18.
#[tokio::test]
async fn what_arrives_late_is_swept_too() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = manager(&vault, &tenant).await;
    let sweep = async || {
        jobs::sweep_once(&vault.vault, ids::new_uuid())
            .await
            .unwrap()
    };
    client.delete(SELF).await;
    // The lease belongs to whoever swept last.
    let database = vault.database.connect().await;
    let release = async || database.execute("delete from lease", &[]).await.unwrap();
    sweep().await;

    // A node that does not know yet adds a member.
    add(&vault, &tenant, "late@example.com", Role::Admin).await;
    release().await;
    sweep().await;
    let members = async || {
        let rows = rows_of(&vault, &tenant).await;
        rows.into_iter()
            .find(|(table, _)| table == "member")
            .unwrap()
            .1
    };
    assert_eq!(members().await, 0);

    // When nobody can be late any more, it is not looked at again.
    let is_swept = async || {
        let row = database
            .query_one("select swept_at is not null from tenant", &[])
            .await;
        row.unwrap().get::<_, bool>(0)
    };
    assert!(!is_swept().await);
    let hour = Duration::from_secs(60 * 60);
    for (late, expected) in [(hour, false), (Duration::ZERO, true)] {
        tenants::sweep(&vault.vault, late).await.unwrap();
        assert_eq!(is_swept().await, expected, "{late:?}");
    }
    add(&vault, &tenant, "never@example.com", Role::Admin).await;
    let removed = tenants::sweep(&vault.vault, Duration::ZERO).await.unwrap();
    assert_eq!(removed, 0);
}

/// Covers 14.18.
#[tokio::test]
async fn a_mark_made_by_sql_deletes_nothing() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    furnish(&vault, &tenant).await;
    let before = rows_of(&vault, &tenant).await;

    let database = vault.database.connect().await;
    database
        .execute("update tenant set deleted_at = now()", &[])
        .await
        .unwrap();
    jobs::sweep_once(&vault.vault, ids::new_uuid())
        .await
        .unwrap();

    assert_eq!(rows_of(&vault, &tenant).await, before);
}

/// Covers 14.17.
#[tokio::test]
async fn a_deleted_tenant_is_not_brought_back_by_sql() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = manager(&vault, &tenant).await;
    client.delete(SELF).await;

    let database = vault.database.connect().await;
    database
        .execute("update tenant set deleted_at = null", &[])
        .await
        .unwrap();

    assert_eq!(client.get(SELF).await.status, StatusCode::UNAUTHORIZED);
}

/// Covers 14.17.
#[tokio::test]
async fn the_number_of_a_deleted_tenant_is_not_given_away() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = manager(&vault, &tenant).await;
    client.delete(SELF).await;
    jobs::sweep_once(&vault.vault, ids::new_uuid())
        .await
        .unwrap();

    let next = vault.tenant().await;

    assert_ne!(next.id.number, tenant.id.number);
    let listed = tenants::list(&vault.vault).await.unwrap();
    assert_eq!(listed.len(), 1);
}

/// Covers 14.19.
#[tokio::test]
async fn what_is_done_to_a_tenant_is_recorded() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = manager(&vault, &tenant).await;

    client.get(SELF).await;
    client.put(SELF, json!({"name": "n"})).await;
    client.put(SELF, json!({"name": ""})).await;
    client.get(QUOTAS).await;
    client.put(QUOTAS, json!({"tokenize_limit": 9})).await;
    let contact = "/tenants/self/security-contact";
    client.put(contact, json!({"email": "a@b"})).await;
    client.get(contact).await;
    let changes = Changes {
        name: Some("by command".to_owned()),
        ..Changes::default()
    };
    tenants::update_by_command(&vault.vault, tenant.id, &changes)
        .await
        .unwrap();

    let logs = client.get("/logs?entity_type=tenant").await;
    let told: Vec<String> = logs
        .items()
        .iter()
        .map(|record| {
            assert_eq!(record["entity_id"], tenant.id.uuid.to_string());
            let word = |name: &str| record[name].as_str().unwrap().to_owned();
            format!("{} {}", word("actor_type"), word("operation"))
        })
        .collect();
    let mut sorted = told.clone();
    sorted.sort();
    assert_eq!(
        sorted,
        [
            "application read",
            "application read",
            "application read",
            "application update",
            "application update",
            "application update",
            "system create",
            "system update",
        ],
        "{told:?}"
    );
}

/// Covers 14.20.
#[tokio::test]
async fn bodies_may_be_any_json_media_type_and_must_be_json() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let client = manager(&vault, &tenant).await;
    let send = async |media: &str, body: &'static str| {
        let request = client
            .request(Method::PUT, SELF)
            .header("content-type", media);
        client.send(request.body(body)).await.status
    };
    let good = r#"{"name": "n"}"#;

    assert_eq!(
        send("application/json-patch+json", good).await,
        StatusCode::OK
    );
    assert_eq!(
        send("application/json; charset=utf-8", good).await,
        StatusCode::OK
    );
    assert_eq!(
        send("text/plain", good).await,
        StatusCode::UNSUPPORTED_MEDIA_TYPE
    );
    assert_eq!(send("application/json", "{").await, StatusCode::BAD_REQUEST);
    assert_eq!(
        send("application/json", "[]").await,
        StatusCode::BAD_REQUEST
    );
}
