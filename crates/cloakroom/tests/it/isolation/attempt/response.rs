//! Sending an attempt, and verifying its response.

use cloakroom::access::ApplicationKind;
use cloakroom::route_requirements::{Requirement, RouteRequirement};
use cloakroom_testkit::{Client, TestResponse};
use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::{Attempt, Expected, History, Parties};
use crate::isolation::tenant::TestTenant;

/// An id that does not exist.
const UNKNOWN: &str = "c06d0789-0a38-40be-b7cc-c28a718f76f1";

/// Whether only a management application may hold the permissions of this route.
fn is_managed(route: &RouteRequirement) -> bool {
    let needed = route.needs.permissions();
    needed.iter().any(|it| it.fits(ApplicationKind::Management))
}

impl Attempt {
    fn client<'a>(&self, caller: &'a TestTenant) -> &'a Client {
        match self.route.needs {
            Requirement::Kinds([ApplicationKind::Public]) => &caller.browser,
            _ if is_managed(self.route) => &caller.manager,
            _ => &caller.client,
        }
    }

    /// Sends the request and returns what is wrong with the response.
    pub(in crate::isolation) async fn execute(
        &self,
        parties: Parties<'_>,
        history: &mut History,
    ) -> Result<(), String> {
        let Parties { caller, owner } = parties;
        let body = self.body.as_ref().map(Value::to_string).unwrap_or_default();
        let response = self.send(caller, &self.path, body.clone()).await;
        let sent = format!("{} {body}", self.path.replace("%20", " ").replace('+', " "));
        let text = String::from_utf8(response.bytes.clone()).unwrap();
        let wrong = |what: &str| {
            let status = response.status;
            Err(format!("{what}: {} {sent}: {status} {text}", self.route))
        };
        let is_own_log =
            |trace: &String| self.route.path == "/logs" && history.named.contains(trace);
        let leaks =
            |trace: &&String| text.contains(*trace) && !sent.contains(*trace) && !is_own_log(trace);
        if owner.traces.iter().find(leaks).is_some() {
            return wrong("reveals data of another tenant");
        }
        match &self.expected {
            Expected::Unknown(status) => {
                if response.status != *status {
                    return wrong("unexpected status");
                }
                let unknown = self.send_with_unknown_ids(caller, body, history).await;
                match (response.status, &response.bytes) == (unknown.0, &unknown.1) {
                    true => Ok(()),
                    false => wrong("differs from the response for an unknown id"),
                }
            }
            Expected::Empty if !is_empty(&response) => wrong("not empty"),
            Expected::Own(count) if !is_own(&response, caller, *count) => wrong("not the caller's"),
            Expected::Status(status) if response.status != *status => wrong("unexpected status"),
            Expected::Member(name, value) if response.body[name] != *value => {
                wrong("not the caller's")
            }
            Expected::Only(id) if !is_only(&response, id) => wrong("not the caller's"),
            Expected::CounterKind if !counts_own(&response, caller, history.created) => {
                wrong("not the caller's")
            }
            Expected::Fresh => {
                let named = self.named_token();
                let was_own = named.as_ref().is_some_and(|id| history.named.contains(id));
                // Ids of the caller's deleted tokens stay reserved.
                if was_own && response.status == StatusCode::CONFLICT {
                    return Ok(());
                }
                history.created += 1;
                history.named.extend(named);
                let undone = self.undo(caller, &response).await;
                undone.or_else(|what| wrong(&what))
            }
            _ => Ok(()),
        }
    }

    async fn send(&self, caller: &TestTenant, path: &str, body: String) -> TestResponse {
        let media = match self.route.method {
            Method::PATCH => "application/merge-patch+json",
            _ => "application/json",
        };
        let client = self.client(caller);
        let mut request = client.request(self.route.method.clone(), path);
        if !body.is_empty() {
            request = request.header("content-type", media).body(body);
        }
        client.send(request).await
    }

    /// Sends the same request with ids that do not exist.
    async fn send_with_unknown_ids(
        &self,
        caller: &TestTenant,
        body: String,
        history: &mut History,
    ) -> (StatusCode, Vec<u8>) {
        let (mut path, mut body) = (self.path.clone(), body);
        for id in &self.foreign {
            path = path.replace(id, UNKNOWN);
            body = body.replace(id, UNKNOWN);
        }
        let call = format!("{} {path} {body}", self.route.method);
        if let Some(known) = history.unknown.get(&call) {
            return known.clone();
        }
        let response = self.send(caller, &path, body).await;
        let unknown = (response.status, response.bytes);
        history.unknown.insert(call, unknown.clone());
        unknown
    }

    /// The id chosen for a new token.
    fn named_token(&self) -> Option<String> {
        let new = match (self.route.path, self.body.as_ref()?) {
            ("/tokens", new) => new,
            ("/tokenize", document) => document.get(0)?,
            _ => return None,
        };
        Some(new["id"].as_str()?.to_owned())
    }

    /// Verifies that the resource belongs to the caller, and deletes it unless it existed before.
    async fn undo(&self, caller: &TestTenant, response: &TestResponse) -> Result<(), String> {
        let created = match &response.body {
            Value::Array(tokens) => &tokens[0],
            created => created,
        };
        // Client encryption keys have no tenant id; the deletion below verifies the owner.
        let is_own = match self.route.path {
            "/keys" => response.status == StatusCode::CREATED,
            _ => created["tenant_id"] == caller.tenant.id.uuid.to_string(),
        };
        if !is_own {
            return Err("not created".to_owned());
        }
        let id = created["id"].as_str().unwrap_or_default();
        if !caller.tokens.iter().any(|own| own.id == id) {
            let folder = self.route.path.replace("/tokenize", "/tokens");
            let path = format!("{folder}/{}", id.replace(' ', "%20"));
            let deleted = self.client(caller).delete(&path).await;
            if deleted.status != StatusCode::NO_CONTENT {
                return Err("does not belong to the caller".to_owned());
            }
        }
        Ok(())
    }
}

fn is_empty(response: &TestResponse) -> bool {
    response.status == StatusCode::OK
        && response.body["data"] == json!([])
        && response.body["pagination"].get("next").is_none()
        && response.body["pagination"]
            .get("total_items")
            .is_none_or(|total| *total == json!(0))
}

fn is_only(response: &TestResponse, id: &str) -> bool {
    let items = response.body.as_array();
    items.is_some_and(|items| items.len() == 1 && items[0]["id"] == id)
}

/// Resources that the caller created and deleted count as active, too.
fn counts_own(response: &TestResponse, caller: &TestTenant, created: usize) -> bool {
    let total = json!(caller.tokens.len());
    let report = &response.body["token_report"];
    let active = report["monthly_active_tokens"].as_u64();
    let active_max = (caller.tokens.len() + created) as u64;
    response.body["total_tokens"] == total
        && report["total_tokens"] == total
        && active.is_some_and(|active| active <= active_max)
}

fn is_own(response: &TestResponse, caller: &TestTenant, count: Option<usize>) -> bool {
    let tenant = json!(caller.tenant.id.uuid);
    let total = response.body["pagination"].get("total_items");
    let Some(items) = response.body["data"].as_array() else {
        return false;
    };
    let is_counted = match count {
        None => !items.is_empty(),
        Some(count) => items.len() == count && total.is_none_or(|total| *total == json!(count)),
    };
    is_counted && items.iter().all(|item| item["tenant_id"] == tenant)
}
