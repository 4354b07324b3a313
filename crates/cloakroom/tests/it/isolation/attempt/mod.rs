//! Requests of one tenant that name resources of another, and the responses they must get.

mod management;
mod response;
mod tokens;

use std::collections::HashMap;

use cloakroom::route_requirements::RouteRequirement;
use cloakroom_testkit::SeededRng;
use http::StatusCode;
use serde_json::Value;

use super::tenant::TestTenant;

/// A request that names a resource of another tenant.
pub(super) struct Attempt {
    route: &'static RouteRequirement,
    path: String,
    body: Option<Value>,
    /// The ids in the path and body that belong to another tenant.
    foreign: Vec<String>,
    expected: Expected,
}

enum Expected {
    /// This status, and exactly the bytes that the same request gets for an id that does not exist.
    Unknown(StatusCode),
    /// An empty page.
    Empty,
    /// A page of the caller's own resources: this many, or any number.
    Own(Option<usize>),
    Status(StatusCode),
    /// A member of the response that belongs to the caller.
    Member(&'static str, Value),
    /// An array with only this resource.
    Only(String),
    /// A report that counts only the caller's tokens.
    CounterKind,
    /// A resource that now belongs to the caller, or did before.
    Fresh,
}

/// What earlier requests of a caller established.
#[derive(Default)]
pub(super) struct History {
    /// Responses for ids that do not exist, by method, path and body.
    unknown: HashMap<String, (StatusCode, Vec<u8>)>,
    /// Ids of other tenants that the caller used for its own resources. They may appear in its log.
    named: Vec<String>,
    /// Number of resources the caller created.
    created: usize,
}

/// The tenant that sends a request, and the tenant that owns the resources it names.
#[derive(Clone, Copy)]
pub(super) struct Parties<'a> {
    pub(super) caller: &'a TestTenant,
    pub(super) owner: &'a TestTenant,
}

impl Attempt {
    /// Builds a random request for one route. The test fails if no case covers the route.
    pub(super) fn new(
        chance: &mut SeededRng,
        route: &'static RouteRequirement,
        parties: Parties<'_>,
    ) -> Self {
        let mut attempt = Self {
            route,
            path: route.path.to_owned(),
            body: None,
            foreign: Vec::new(),
            expected: Expected::Unknown(StatusCode::NOT_FOUND),
        };
        // Each of these returns whether it covers the route.
        let is_known = attempt.build_tokens(chance, parties)
            || attempt.build_intents(parties)
            || attempt.build_applications(chance, parties)
            || attempt.build_logs(chance, parties)
            || attempt.build_tenant(chance, parties)
            || attempt.build_members(chance, parties)
            || attempt.build_pages(parties)
            || attempt.build_keys(parties)
            || attempt.build_proxies(chance, parties)
            || attempt.build_webhooks(parties)
            || attempt.build_enrichments(chance, parties)
            || attempt.build_threeds(chance, parties)
            || attempt.build_proxy(parties)
            || attempt.build_shared_resources(parties);
        assert!(is_known, "no cross-tenant request covers {route}");
        attempt
    }

    fn method_and_path(&self) -> (&'static str, &'static str) {
        (self.route.method.as_str(), self.route.path)
    }

    /// Inserts an id of the other tenant into the path.
    fn insert_foreign_id(&mut self, place: &str, id: impl ToString) {
        let id = id.to_string();
        self.path = self.path.replace(place, &id);
        self.foreign.push(id);
    }

    fn query(&mut self, query: &str, expected: Expected) {
        self.path = format!("{}{query}", self.path);
        self.expected = expected;
    }
}

fn own(count: usize) -> Expected {
    Expected::Own(Some(count))
}
