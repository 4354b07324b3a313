//! The one table of what may stand in the service's source folder, and in which order.

use std::path::{Component, Path};

pub(super) const SOURCE: &str = "crates/cloakroom/src";

/// From top to bottom: a row may use the rows below it, never one above.
pub(super) const LAYERS: [&[&str]; 14] = [
    &[
        "server", "router", "jobs", "admin", "openapi", "doctor", "doors", "fuzzing",
    ],
    &["threeds_browser"],
    &["proxy", "reactors", "threeds", "webhooks"],
    &[
        "token_queries",
        "token_documents",
        "enrichments",
        "erasures",
        "formulas",
        "reports",
        "threeds_requests",
        "threeds_pages",
    ],
    &["tokens"],
    &["token_rows"],
    &["token_intents"],
    &["token_attributes"],
    &[
        "token_types",
        "bins",
        "security_codes",
        "containers",
        "client_encryption",
        "card_networks",
    ],
    &["applications", "tenants", "members", "sessions"],
    &["velocity", "audit", "deprecations"],
    &["access", "rate_limits", "idempotency"],
    &["events", "keys", "convoy", "turnstile"],
    &[
        "telemetry",
        "api",
        "storage",
        "config",
        "clock",
        "ids",
        "card_numbers",
    ],
];

/// Handed to every verb: named by any room, and made of any room.
pub(super) const CONTEXT: [&str; 2] = ["vault", "caller"];

/// The rooms that stand in front of every request.
pub(super) const GATED: [&str; 4] = ["access", "rate_limits", "idempotency", "deprecations"];

/// The lowest row is shared vocabulary: its folders have files of any kind.
pub(super) fn is_vocabulary(room: &str) -> bool {
    depth_of(room) == Some(LAYERS.len() - 1)
}

/// How far down a room stands; 0 is the top.
pub(super) fn depth_of(room: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&room))
}

pub(super) fn is_known(name: &str) -> bool {
    depth_of(name).is_some() || CONTEXT.contains(&name)
}

/// The module path of a file of the service: `tokens/store.rs` is `["tokens", "store"]`.
pub(super) fn module_of(path: &Path) -> Option<Vec<String>> {
    let inside = path.strip_prefix(SOURCE).ok()?.with_extension("");
    let mut parts: Vec<String> = inside
        .components()
        .filter_map(|part| match part {
            Component::Normal(name) => name.to_str().map(str::to_owned),
            _ => None,
        })
        .collect();
    if parts
        .last()
        .is_some_and(|last| last == "mod" || last == "lib")
    {
        parts.pop();
    }
    Some(parts)
}
