//! The route table: every route with every permission, application type and container.

mod containers;
mod permissions;
mod table;
mod unauthorized;

use http::StatusCode;

const FORBIDDEN: StatusCode = StatusCode::FORBIDDEN;
/// Clients that send requests concurrently.
const CONCURRENCY: usize = 8;
const UNKNOWN_ID: &str = "c06d0789-0a38-40be-b7cc-c28a718f76f1";

fn fill_path(path: &str, id: &str, key_id: &str) -> String {
    path.replace("{id}", id)
        .replace("{key_id}", key_id)
        .replace("{request_id}", id)
}
