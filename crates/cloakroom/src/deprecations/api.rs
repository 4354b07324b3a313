//! What was removed, over HTTP: operations that are gone, and attributes that are named in a 400.
//!
//! There are no reactors and no proxies here yet. Their addresses say what was removed from them, so
//! that somebody who moves an older integration learns of it; everything else is a 404 as before.

use std::sync::Arc;

use axum::Extension;
use serde_json::{Map, Value};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::Deprecated;
use crate::api::{ApiError, Broken, Problem, Received};
use crate::caller::Caller;
use crate::vault::Vault;

/// The routes of this room.
pub fn routes() -> OpenApiRouter<Vault> {
    OpenApiRouter::new()
        .routes(routes!(list_formulas))
        .routes(routes!(create_formula))
        .routes(routes!(find_formula))
        .routes(routes!(replace_formula))
        .routes(routes!(delete_formula))
        .routes(routes!(list_reactors))
        .routes(routes!(create_reactor))
        .routes(routes!(find_reactor))
        .routes(routes!(delete_reactor))
        .routes(routes!(replace_reactor))
        .routes(routes!(change_reactor))
        .routes(routes!(react))
        .routes(routes!(react_later))
        .routes(routes!(list_proxies))
        .routes(routes!(create_proxy))
        .routes(routes!(find_proxy))
        .routes(routes!(delete_proxy))
        .routes(routes!(replace_proxy))
        .routes(routes!(change_proxy))
}

/// Operations on reactor formulas, which are gone.
macro_rules! gone {
    ($($handler:ident: $method:ident $path:literal $(($id:ident))?, $summary:literal;)+) => {$(
        #[doc = $summary]
        ///
        /// Gone: the code stands in the reactor itself.
        #[utoipa::path(
            $method,
            path = $path,
            tag = "Deprecated",
            $(params(("id" = String, Path, description = stringify!($id))),)?
            responses(
                (status = 401, description = "No valid key.", body = Problem),
                (status = 410, description = "This is gone; the detail says what to use.",
                 body = Problem),
            ),
        )]
        async fn $handler(Extension(caller): Extension<Arc<Caller>>) -> ApiError {
            caller.uses.refuse(Deprecated::ReactorFormulas)
        }
    )+};
}

gone! {
    list_formulas: get "/reactor-formulas", "List reactor formulas.";
    create_formula: post "/reactor-formulas", "Create a reactor formula.";
    find_formula: get "/reactor-formulas/{id}" (formula), "Read a reactor formula.";
    replace_formula: put "/reactor-formulas/{id}" (formula), "Change a reactor formula.";
    delete_formula: delete "/reactor-formulas/{id}" (formula), "Delete a reactor formula.";
}

/// Operations that are not built, and the attributes that were removed from them.
macro_rules! unbuilt {
    ($($handler:ident: $method:ident $path:literal $(($id:ident))?, $summary:literal, $removed:ident;)+) => {$(
        #[doc = $summary]
        ///
        /// Not built yet. An attribute that was removed from the interface is named, with what to use
        /// instead.
        #[utoipa::path(
            $method,
            path = $path,
            tag = "Not built",
            $(params(("id" = String, Path, description = stringify!($id))),)?
            responses(
                (status = 400, description = "An attribute was removed.", body = Problem),
                (status = 401, description = "No valid key.", body = Problem),
                (status = 404, description = "There is no such thing here.", body = Problem),
            ),
        )]
        async fn $handler(
            Extension(caller): Extension<Arc<Caller>>,
            Extension(received): Extension<Arc<Received>>,
        ) -> ApiError {
            name_removed(&caller, &received, $removed)
        }
    )+};
}

unbuilt! {
    list_reactors: get "/reactors", "List reactors.", NOTHING;
    find_reactor: get "/reactors/{id}" (reactor), "Read a reactor.", NOTHING;
    delete_reactor: delete "/reactors/{id}" (reactor), "Delete a reactor.", NOTHING;
    create_reactor: post "/reactors", "Create a reactor.", REACTOR;
    replace_reactor: put "/reactors/{id}" (reactor), "Change a reactor.", REACTOR;
    change_reactor: patch "/reactors/{id}" (reactor), "Change parts of a reactor.", REACTOR;
    react: post "/reactors/{id}/react" (reactor), "Run a reactor.", REACT;
    react_later: post "/reactors/{id}/react-async" (reactor), "Run a reactor, later.", REACT;
    list_proxies: get "/proxies", "List proxies.", NOTHING;
    find_proxy: get "/proxies/{id}" (proxy), "Read a proxy.", NOTHING;
    delete_proxy: delete "/proxies/{id}" (proxy), "Delete a proxy.", NOTHING;
    create_proxy: post "/proxies", "Create a proxy.", PROXY;
    replace_proxy: put "/proxies/{id}" (proxy), "Change a proxy.", PROXY;
    change_proxy: patch "/proxies/{id}" (proxy), "Change parts of a proxy.", PROXY;
}

/// An attribute that was removed, and the row that says so.
type Removed = (&'static str, Deprecated);

const NOTHING: &[Removed] = &[];
const REACTOR: &[Removed] = &[("formula", Deprecated::ReactorFormulas)];
const REACT: &[Removed] = &[("callback_url", Deprecated::ReactorCallbackUrl)];
const PROXY: &[Removed] = &[
    ("request_reactor_id", Deprecated::ProxyReactors),
    ("response_reactor_id", Deprecated::ProxyReactors),
];

/// Null means the same as nothing: clients that know the attribute send it so.
fn name_removed(caller: &Caller, received: &Received, removed: &[Removed]) -> ApiError {
    let bytes = received.bytes().unwrap_or_default();
    let body: Map<String, Value> = serde_json::from_slice(bytes).unwrap_or_default();
    let mut broken = Vec::new();
    for (attribute, deprecated) in removed {
        if body.get(*attribute).is_some_and(|value| !value.is_null()) {
            caller.uses.note(*deprecated);
            broken.push(Broken::new(*attribute, deprecated.row().rule()));
        }
    }
    match broken.is_empty() {
        true => ApiError::not_found("There is no such path."),
        false => ApiError::all_invalid(broken),
    }
}
