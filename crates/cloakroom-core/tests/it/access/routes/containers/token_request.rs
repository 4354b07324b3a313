//! Requests for tokens, and their expected outcomes.

use cloakroom::access::Permission;
use cloakroom_testkit::Client;
use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::grant::Grant;
use super::new_token;
use crate::access::routes::fill_path;

/// A request that reads, changes or creates a token.
pub(super) struct TokenRequest {
    pub(super) route: (Method, &'static str),
    pub(super) path: String,
    pub(super) body: Value,
    /// Where the response contains the token.
    pub(super) location: TokenLocation,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum TokenLocation {
    /// The response is the token.
    Whole,
    /// The response is an array with the token as its only element.
    First,
    /// The response is a page, which omits the token if the permission does not cover it.
    Listed,
    /// The response is an array of the token and its data.
    Detokenized,
    /// The response has no body.
    NoBody,
}

/// The outcome of a token request.
#[derive(Debug, PartialEq)]
pub(super) enum Outcome {
    Forbidden,
    Omitted,
    Returned(Option<Value>),
    /// An unexpected response.
    Unexpected(String),
}

/// Every request for an existing or new token in `container` that `held` allows.
pub(super) fn token_requests(held: Permission, id: &str, container: &str) -> Vec<TokenRequest> {
    use TokenLocation::{Detokenized, First, Listed, NoBody, Whole};
    let request = |method: &Method, route, query: &str, body, location| TokenRequest {
        route: (method.clone(), route),
        path: format!("{}{query}", fill_path(route, id, "")),
        body,
        location,
    };
    let (get, post) = (&Method::GET, &Method::POST);
    let none = Value::Null;
    let (by_container, by_id) = (format!("?container={container}"), format!("?id={id}"));
    match held {
        Permission::TokenCreate => {
            let new = new_token(container);
            vec![
                request(post, "/tokens", "", new.clone(), Whole),
                request(post, "/tokenize", "", json!([new]), First),
            ]
        }
        Permission::TokenUpdate => {
            let body = json!({"metadata": {"k": "v"}});
            let (patch, route) = (&Method::PATCH, "/tokens/{id}");
            vec![request(patch, route, "", body, Whole)]
        }
        Permission::TokenRead => {
            let body = json!([format!("{{{{ token: {id} }}}}"), format!("{{{{ {id} }}}}")]);
            vec![
                request(get, "/tokens/{id}", "", none.clone(), Whole),
                request(get, "/v2/tokens", "", none.clone(), Listed),
                request(get, "/v2/tokens", &by_container, none.clone(), Listed),
                request(get, "/tokens", "", none.clone(), Listed),
                request(get, "/tokens", &by_id, none, Listed),
                request(post, "/detokenize", "", body, Detokenized),
            ]
        }
        Permission::TokenSearch => {
            let by_container = json!({ "query": format!("container:\"{container}\"") });
            let by_id = json!({ "query": format!("id:{id}") });
            let all = json!({});
            vec![
                request(post, "/v2/tokens/search", "", all.clone(), Listed),
                request(post, "/v2/tokens/search", "", by_container, Listed),
                request(post, "/tokens/search", "", all, Listed),
                request(post, "/tokens/search", "", by_id, Listed),
            ]
        }
        Permission::TokenDelete => {
            let (delete, route) = (&Method::DELETE, "/tokens/{id}");
            vec![request(delete, route, "", none, NoBody)]
        }
        _ => Vec::new(),
    }
}

impl TokenRequest {
    pub(super) async fn send(&self, client: &Client, id: &str) -> Outcome {
        let media = match self.route.0 {
            Method::PATCH => "application/merge-patch+json",
            _ => "application/json",
        };
        let request = client.request(self.route.0.clone(), &self.path);
        let request = request.header("content-type", media);
        let response = client.send(request.body(self.body.to_string())).await;
        if response.status == StatusCode::FORBIDDEN {
            return Outcome::Forbidden;
        }
        if !response.status.is_success() {
            return Outcome::Unexpected(response.body.to_string());
        }
        let data_of = |token: &Value| Outcome::Returned(token.get("data").cloned());
        match self.location {
            TokenLocation::NoBody => Outcome::Returned(None),
            TokenLocation::Whole => data_of(&response.body),
            TokenLocation::First => data_of(&response.body[0]),
            TokenLocation::Listed => {
                let item = response.items().iter().find(|item| item["id"] == id);
                item.map_or(Outcome::Omitted, data_of)
            }
            TokenLocation::Detokenized => {
                let filled = (!response.body[1].is_null()).then(|| response.body[1].clone());
                match response.body[0].get("data") == filled.as_ref() {
                    true => Outcome::Returned(filled),
                    false => Outcome::Unexpected(response.body.to_string()),
                }
            }
        }
    }

    pub(super) fn expected(&self, grant: Grant, container: &str) -> Outcome {
        let names_container = self.path.contains("container=")
            || self.body["query"]
                .as_str()
                .is_some_and(|it| it.starts_with("container"));
        match (grant.holds_in(container), self.location) {
            (true, TokenLocation::NoBody) => Outcome::Returned(None),
            (true, _) => Outcome::Returned(grant.shown()),
            (false, TokenLocation::Listed) if !names_container => Outcome::Omitted,
            (false, _) => Outcome::Forbidden,
        }
    }
}
