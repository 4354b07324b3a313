//! Every token route with rules for containers.

mod grant;
mod token_request;

use std::collections::BTreeSet;
use std::sync::Arc;

use cloakroom::access::{ALL_PERMISSIONS, ApplicationKind, Permission};
use cloakroom::route_requirements::ROUTES;
use cloakroom_testkit::{Client, TestVault, grants};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use self::grant::Grant;
use self::token_request::{Outcome, TokenRequest, token_requests};
use super::CONCURRENCY;

/// Containers of the tokens; rules cover the first.
const CONTAINERS: [&str; 3] = ["/a/", "/a/b/", "/b/"];

const SECRET: &str = "the secret";

const MASKED: &str = "the mask";

fn new_token(container: &str) -> Value {
    json!({"type": "token", "data": SECRET, "mask": MASKED, "containers": [container]})
}

/// An application that holds a scoped permission, possibly with others.
struct ScopedHolder {
    held: Permission,
    kind: ApplicationKind,
    grant: Grant,
    client: Client,
}

/// Two tenants: one with tokens that do not change, and one for requests that change tokens.
struct Fixture {
    read_tokens: [String; 3],
    creator: Client,
}

impl Fixture {
    async fn token(client: &Client, container: &str) -> String {
        client.post("/tokens", new_token(container)).await.id()
    }

    async fn create(vault: &TestVault) -> (Self, Vec<ScopedHolder>) {
        let tenants = [vault.tenant().await, vault.tenant().await];
        let creating = || grants(&[Permission::TokenCreate]);
        let token_creator = vault.client(&tenants[0], creating()).await;
        let mut read_tokens = [const { String::new() }; 3];
        for (id, container) in read_tokens.iter_mut().zip(CONTAINERS) {
            *id = Self::token(&token_creator, container).await;
        }
        let creator = vault.client(&tenants[1], creating()).await;
        let mut holders = Vec::new();
        for held in ALL_PERMISSIONS.iter().copied() {
            if token_requests(held, "", "").is_empty() {
                continue;
            }
            for kind in held.kinds().iter().copied() {
                for grant in Grant::all() {
                    let tenant = &tenants[usize::from(changes_tokens(held))];
                    let holder = vault.holder(tenant, kind, grant.of(held, kind)).await;
                    holders.push(ScopedHolder {
                        held,
                        kind,
                        grant,
                        client: token_creator.with_key(&holder.key),
                    });
                }
            }
        }
        (
            Self {
                read_tokens,
                creator,
            },
            holders,
        )
    }
}

fn changes_tokens(held: Permission) -> bool {
    !matches!(held, Permission::TokenRead | Permission::TokenSearch)
}

impl ScopedHolder {
    /// Sends every request in every container; returns the number of cells and those with an unexpected outcome.
    async fn check_all_requests(&self, fixture: &Fixture) -> (usize, Vec<String>) {
        let (mut cells, mut wrong) = (0, Vec::new());
        for (position, container) in CONTAINERS.into_iter().enumerate() {
            let count = token_requests(self.held, "", container).len();
            for number in 0..count {
                let id = match changes_tokens(self.held) {
                    true => &Fixture::token(&fixture.creator, container).await,
                    false => &fixture.read_tokens[position],
                };
                let request = token_requests(self.held, id, container).swap_remove(number);
                let expected = request.expected(self.grant, container);
                wrong.extend(self.check(&request, id, expected).await);
                cells += 1;
            }
            if self.held == Permission::TokenUpdate {
                for to in CONTAINERS {
                    let id = Fixture::token(&fixture.creator, container).await;
                    let mut request = token_requests(self.held, &id, container).swap_remove(0);
                    request.body = json!({ "containers": [to] });
                    // Moving a token can disclose it to other callers, so the caller must see its data.
                    let may_move = container == to || self.grant.reveals(self.kind);
                    let is_allowed =
                        self.grant.holds_in(container) && self.grant.holds_in(to) && may_move;
                    let expected = match is_allowed {
                        true => Outcome::Returned(self.grant.shown()),
                        false => Outcome::Forbidden,
                    };
                    wrong.extend(self.check(&request, &id, expected).await);
                    cells += 1;
                }
            }
        }
        (cells, wrong)
    }

    async fn check(&self, request: &TokenRequest, id: &str, expected: Outcome) -> Option<String> {
        let outcome = request.send(&self.client, id).await;
        let Self {
            held, kind, grant, ..
        } = self;
        let TokenRequest { path, body, .. } = request;
        let case = format!("{path} {body} with {held} of {kind} by {grant:?}");
        (outcome != expected).then(|| format!("{case}: {outcome:?}, not {expected:?}"))
    }
}

/// The matrix of scoped permissions, ways to hold them, containers of the token, and requests for it; checks the
/// transform of the returned data.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rules_limit_where_a_permission_applies_and_what_it_shows() {
    let requested: BTreeSet<(String, &str)> = ALL_PERMISSIONS
        .iter()
        .flat_map(|held| token_requests(*held, "", ""))
        .map(|request| (request.route.0.to_string(), request.route.1))
        .collect();
    let scoped: BTreeSet<(String, &str)> = ROUTES
        .iter()
        .filter(|route| route.needs.permissions().iter().any(|it| it.is_scoped()))
        // Returns no token data; covered by the tests of enrichments.
        .filter(|route| !route.path.starts_with("/enrichments"))
        // Covered by the tests of the proxy, which have a destination.
        .filter(|route| !route.path.starts_with("/proxy"))
        .map(|route| (route.method.to_string(), route.path))
        .collect();
    assert_eq!(requested, scoped);
    let vault = TestVault::start_with_long_timeouts().await;
    let (fixture, mut holders) = Fixture::create(&vault).await;
    let (fixture, count) = (Arc::new(fixture), holders.len());

    let mut workers = JoinSet::new();
    while !holders.is_empty() {
        let chunk = holders.split_off(holders.len().saturating_sub(count.div_ceil(CONCURRENCY)));
        let fixture = fixture.clone();
        workers.spawn(async move {
            let (mut cells, mut wrong) = (0, Vec::new());
            for holder in chunk {
                let result = holder.check_all_requests(&fixture).await;
                cells += result.0;
                wrong.extend(result.1);
            }
            (cells, wrong)
        });
    }
    let results = workers.join_all().await;

    let cells: usize = results.iter().map(|result| result.0).sum();
    let wrong: Vec<String> = results.into_iter().flat_map(|result| result.1).collect();
    println!(
        "{cells} cells: {count} holders in {} containers",
        CONTAINERS.len()
    );
    assert!(wrong.is_empty(), "{} of {cells}: {wrong:#?}", wrong.len());
}
