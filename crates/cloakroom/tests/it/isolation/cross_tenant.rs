//! Requests of one tenant that name resources of another.

use std::collections::BTreeMap;
use std::sync::Arc;

use cloakroom::access::{ApplicationKind, Permission};
use cloakroom::route_requirements::{ROUTES, Requirement, RouteRequirement};
use cloakroom_testkit::{SeededRng, TestDatabase, TestVault, calls, grants, use_long_timeouts};
use http::{Method, StatusCode};
use serde_json::json;

use super::attempt::{Attempt, History, Parties};
use super::tenant::TestTenant;

/// Makes some thousand requests in CI; `CLOAKROOM_TEST_CALLS` raises it to the hundred thousand of the security
/// design.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tenants_are_isolated_on_every_route() {
    let vault = TestVault::start_with(TestDatabase::create().await, |config| {
        use_long_timeouts(config);
        config.tenants.immediate_deletion = true;
    });
    let vault = Arc::new(vault.await);
    let mut tenants = Vec::new();
    for index in 0..3 {
        tenants.push(TestTenant::new(&vault, index).await);
    }
    let tenants = Arc::new(tenants);
    let total = calls(2_000);
    let mut chance = SeededRng::from_environment();

    // Each caller runs sequentially, so that the resources it creates and deletes do not affect its own requests.
    let mut callers = tokio::task::JoinSet::new();
    for caller in 0..tenants.len() {
        let (vault, tenants, mut chance) = (vault.clone(), tenants.clone(), chance.fork());
        let count = total / 3 + usize::from(caller < total % 3);
        callers.spawn(async move {
            let caller = &tenants[caller];
            call_others(&vault, caller, &tenants, count, &mut chance).await
        });
    }
    let mut attempts: BTreeMap<String, usize> = BTreeMap::new();
    let mut failures_by_route: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (counts, failures) in callers.join_all().await {
        for (route, count) in counts {
            *attempts.entry(route).or_default() += count;
        }
        for (route, failure) in failures {
            failures_by_route.entry(route).or_default().push(failure);
        }
    }

    let successes: usize = failures_by_route.values().map(Vec::len).sum();
    println!("{total} calls, {successes} successes: {attempts:#?}");
    let first: Vec<&String> = failures_by_route
        .values()
        .map(|failures| &failures[0])
        .collect();
    assert!(first.is_empty(), "{successes} of {total}: {first:#?}");
    assert_eq!(attempts.len(), authenticated_routes().count());
    // A node without caches reads the database.
    let second = vault.second_node().await;
    for tenant in tenants.iter() {
        tenant.check_unchanged(&second.base_url).await;
    }
}

/// Every route that identifies its caller.
fn authenticated_routes() -> impl Iterator<Item = &'static RouteRequirement> {
    let is_open = |needs| matches!(needs, Requirement::Nothing | Requirement::KeyInUrl);
    ROUTES.iter().filter(move |route| !is_open(route.needs))
}

/// Sends random requests of one tenant that name resources of the others, over all routes in turn.
async fn call_others(
    vault: &TestVault,
    caller: &TestTenant,
    tenants: &[TestTenant],
    count: usize,
    chance: &mut SeededRng,
) -> (BTreeMap<String, usize>, Vec<(String, String)>) {
    let (mut attempts, mut failures) = (BTreeMap::new(), Vec::new());
    let mut history = History::default();
    let others: Vec<&TestTenant> = tenants
        .iter()
        .filter(|other| other.tenant.id != caller.tenant.id)
        .collect();
    let routes: Vec<_> = authenticated_routes().collect();
    for turn in 0..count {
        let route = routes[turn % routes.len()];
        let owner = *chance.pick(&others);
        let result = match (&route.method, route.path) {
            (&Method::DELETE, "/tenants/self") => delete_another(vault, caller).await,
            (&Method::POST, "/sessions/authorize") => authorize_another(caller, owner).await,
            _ => {
                let parties = Parties { caller, owner };
                let attempt = Attempt::new(chance, route, parties);
                attempt.execute(parties, &mut history).await
            }
        };
        *attempts.entry(route.to_string()).or_default() += 1;
        failures.extend(result.err().map(|failure| (route.to_string(), failure)));
    }
    (attempts, failures)
}

/// Tries to authorize a session of another tenant, which must stay unauthorized until its own tenant does it.
async fn authorize_another(caller: &TestTenant, owner: &TestTenant) -> Result<(), String> {
    let [nonce, session_key] = owner.create_session().await;
    let authorize = async |tenant: &TestTenant, nonce: &str| {
        let body = json!({"nonce": nonce, "permissions": ["token:read"]});
        tenant.client.post("/sessions/authorize", body).await
    };
    let session = owner.client.with_key(&session_key);
    let (foreign, unknown) = (
        authorize(caller, &nonce).await,
        authorize(caller, "22222222222222222222222").await,
    );
    let before = session.get(&owner.tokens[0].path).await.status;
    let own = authorize(owner, &nonce).await.status;
    let after = session.get(&owner.tokens[0].path).await.status;
    let statuses = [foreign.status, before, own, after];
    let expected = [
        StatusCode::NOT_FOUND,
        StatusCode::FORBIDDEN,
        StatusCode::OK,
        StatusCode::OK,
    ];
    match statuses == expected && foreign.bytes == unknown.bytes {
        true => Ok(()),
        false => Err(format!("a session of another tenant: {statuses:?}")),
    }
}

/// Deletes a tenant that was created for this, which must affect no other tenant: the caller is checked here, the
/// others by their own requests.
async fn delete_another(vault: &TestVault, caller: &TestTenant) -> Result<(), String> {
    let tenant = vault.tenant().await;
    let grants = grants(&[Permission::TenantDelete, Permission::TenantRead]);
    let kind = ApplicationKind::Management;
    let holder = vault.holder(&tenant, kind, grants).await;
    let client = caller.client.with_key(&holder.key);
    let deleted = client.delete("/tenants/self").await.status;
    let (gone, stays) = (
        client.get("/tenants/self").await.status,
        caller.manager.get("/tenants/self").await.status,
    );
    let expected = [
        StatusCode::NO_CONTENT,
        StatusCode::UNAUTHORIZED,
        StatusCode::OK,
    ];
    match [deleted, gone, stays] == expected {
        true => Ok(()),
        false => Err(format!("deleting a tenant: {deleted}, {gone}, {stays}")),
    }
}

#[tokio::test]
async fn cursors_of_other_tenants_are_rejected() {
    let vault = TestVault::start().await;
    let (one, two) = (
        TestTenant::new(&vault, 1).await,
        TestTenant::new(&vault, 2).await,
    );
    let request = async |tenant: &TestTenant, cursors: &[String; 3]| {
        let listed = format!("/v2/tokens?size=2&start={}", cursors[0]);
        let searched = json!({"size": 2, "start": cursors[1]});
        [
            tenant.client.get(&listed).await,
            tenant.client.post("/v2/tokens/search", searched).await,
        ]
    };

    for (tenant, other) in [(&one, &two), (&two, &one)] {
        for response in request(tenant, &tenant.cursors).await {
            assert_eq!(response.body["pagination"]["page_size"], 2);
        }
        for response in request(tenant, &other.cursors).await {
            assert_eq!(response.status, StatusCode::BAD_REQUEST);
            assert_eq!(response.refused(), ["start"]);
        }
    }
}

#[tokio::test]
async fn equal_data_of_two_tenants_shares_no_stored_value() {
    let vault = TestVault::start().await;
    let (one, two) = (
        TestTenant::new(&vault, 0).await,
        TestTenant::new(&vault, 0).await,
    );

    // Both have the same tokens with the same names.
    for (a, b) in one.tokens.iter().zip(&two.tokens) {
        assert_eq!(a.new["data"], b.new["data"]);
        assert_ne!(a.fingerprint, b.fingerprint);
    }
    let database = vault.database.connect().await;
    let shared = "select count(*) from (select term from term group by term
            having count(distinct tenant_id) > 1) shared,
        (select fingerprint from claim group by fingerprint
            having count(distinct tenant_id) > 1) claimed";
    let shared: i64 = database.query_one(shared, &[]).await.unwrap().get(0);
    assert_eq!(shared, 0);
    // A name refers to the caller's own token, whichever tenants use it.
    let name = &one.tokens[6].path;
    let changed = one
        .client
        .patch(name, json!({"data": {"secret": "new"}}))
        .await;
    assert_eq!(changed.status, StatusCode::OK);
    assert_eq!(two.client.get(name).await.bytes, two.tokens[6].snapshot);
    one.client.delete(name).await;
    assert_eq!(two.client.get(name).await.bytes, two.tokens[6].snapshot);
}
