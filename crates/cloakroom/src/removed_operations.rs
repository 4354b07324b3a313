//! Routes of removed operations (410), of removed attributes (400 that names them) and of operations that are not built
//! (501).
//!
//! Reactors run code of tenants, which is not built. Their paths report the attributes that were removed from them, to
//! help with migrating an older integration; every other request to them is a 501 that names the alternative.

use std::sync::Arc;

use axum::Extension;
use cloakroom_core::caller::Caller;
use cloakroom_core::deprecations::DeprecatedFeature;
use cloakroom_platform::api::{ApiError, FieldError, KeyErrors, Problem, Received};
use serde_json::{Map, Value};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// The routes of removed features.
pub fn routes<S: Clone + Send + Sync + 'static>() -> OpenApiRouter<S> {
    OpenApiRouter::new()
        .routes(routes!(list_reactor_formulas))
        .routes(routes!(create_reactor_formula))
        .routes(routes!(find_reactor_formula))
        .routes(routes!(replace_reactor_formula))
        .routes(routes!(delete_reactor_formula))
        .routes(routes!(list_reactors))
        .routes(routes!(create_reactor))
        .routes(routes!(find_reactor))
        .routes(routes!(delete_reactor))
        .routes(routes!(replace_reactor))
        .routes(routes!(change_reactor))
        .routes(routes!(react))
        .routes(routes!(react_later))
        .routes(routes!(find_reaction))
}

/// Operations on reactor formulas, which were removed.
macro_rules! removed_operations {
    ($($handler:ident: $method:ident $path:literal $(($id:ident))?, $summary:literal;)+) => {$(
        #[doc = $summary]
        ///
        /// Removed: use the `code` of the reactor.
        #[utoipa::path(
            $method, path = $path, tag = "Deprecated",
            $(params(("id" = String, Path, description = stringify!($id))),)?
            responses(
                (status = 401, description = "The API key is missing or invalid.", body = Problem),
                (status = 410, description = "Removed; the detail names the replacement.", body = Problem),
            ),
        )]
        async fn $handler(Extension(caller): Extension<Arc<Caller>>) -> ApiError {
            caller.deprecated_features.reject(DeprecatedFeature::ReactorFormulas)
        }
    )+};
}

removed_operations! {
    list_reactor_formulas: get "/reactor-formulas", "List reactor formulas.";
    create_reactor_formula: post "/reactor-formulas", "Create a reactor formula.";
    find_reactor_formula: get "/reactor-formulas/{id}" (formula), "Read a reactor formula.";
    replace_reactor_formula: put "/reactor-formulas/{id}" (formula), "Change a reactor formula.";
    delete_reactor_formula: delete "/reactor-formulas/{id}" (formula), "Delete a reactor formula.";
}

/// Operations that are not implemented, and the attributes that were removed from them.
macro_rules! unimplemented_operations {
    ($($handler:ident: $method:ident $path:literal $(($($id:literal $what:ident),+))?, $summary:literal, $removed:ident;)+) => {$(
        #[doc = $summary]
        ///
        /// Not built. An attribute that was removed from the interface is named, with its replacement.
        #[utoipa::path(
            $method, path = $path, tag = "Not built",
            $(params($(($id = String, Path, description = stringify!($what))),+),)?
            responses(
                KeyErrors,
                (status = 400, description = "An attribute was removed from the interface.", body = Problem),
                (status = 501, description = "Not built; `detail` names the alternative.", body = Problem),
            ),
        )]
        async fn $handler(
            Extension(caller): Extension<Arc<Caller>>,
            Extension(received): Extension<Arc<Received>>,
        ) -> ApiError {
            reject_removed(&caller, &received, $removed)
        }
    )+};
}

unimplemented_operations! {
    list_reactors: get "/reactors", "List reactors.", NOTHING;
    find_reactor: get "/reactors/{id}" ("id" reactor), "Read a reactor.", NOTHING;
    delete_reactor: delete "/reactors/{id}" ("id" reactor), "Delete a reactor.", NOTHING;
    create_reactor: post "/reactors", "Create a reactor.", REACTOR;
    replace_reactor: put "/reactors/{id}" ("id" reactor), "Change a reactor.", REACTOR;
    change_reactor: patch "/reactors/{id}" ("id" reactor), "Change parts of a reactor.", REACTOR;
    react: post "/reactors/{id}/react" ("id" reactor), "Run a reactor.", REACT;
    react_later: post "/reactors/{id}/react-async" ("id" reactor), "Run a reactor asynchronously.", REACT;
    find_reaction: get "/reactors/{id}/results/{request_id}" ("id" reactor, "request_id" request), "Read the result of a reactor.", NOTHING;
}

/// A removed attribute, and the row of the table that describes it.
type RemovedAttribute = (&'static str, DeprecatedFeature);

const NOTHING: &[RemovedAttribute] = &[];
const REACTOR: &[RemovedAttribute] = &[("formula", DeprecatedFeature::ReactorFormulas)];
const REACT: &[RemovedAttribute] = &[("callback_url", DeprecatedFeature::ReactorCallbackUrl)];

/// Null counts as absent: clients that know the attribute send it so.
fn reject_removed(caller: &Caller, received: &Received, removed: &[RemovedAttribute]) -> ApiError {
    let bytes = received.bytes().unwrap_or_default();
    let body: Map<String, Value> = serde_json::from_slice(bytes).unwrap_or_default();
    let mut broken = Vec::new();
    for (attribute, deprecated) in removed {
        if body.get(*attribute).is_some_and(|value| !value.is_null()) {
            caller.deprecated_features.mark(*deprecated);
            broken.push(FieldError::new(*attribute, deprecated.row().rule()));
        }
    }
    match broken.is_empty() {
        true => ApiError::not_built(
            "Reactors are not built: the vault does not run code of tenants. Send requests with tokens through /proxy, \
             with the transforms of a pre-configured proxy, and run other code in your own service.",
        ),
        false => ApiError::all_invalid(broken),
    }
}
