//! Management of a tenant: its settings, branding and members, its applications and their keys, sessions, and its audit log.

pub mod branding;
pub mod logs;
pub mod tenants;

pub mod applications;
pub mod members;
pub mod sessions;

use cloakroom_core::Vault;
use cloakroom_platform::storage::Statement;
use utoipa_axum::router::OpenApiRouter;

/// The routes of this area.
pub fn routes() -> OpenApiRouter<Vault> {
    applications::routes()
        .merge(sessions::routes())
        .merge(logs::routes())
        .merge(tenants::routes())
        .merge(branding::routes())
        .merge(members::routes())
}

/// All SQL statements of this crate, for the tests that check them against the schema.
pub fn statements() -> impl Iterator<Item = Statement> {
    [
        applications::STATEMENTS,
        applications::KEY_STATEMENTS,
        branding::STATEMENTS,
        members::STATEMENTS,
        members::INVITATION_STATEMENTS,
        sessions::STATEMENTS,
        tenants::STATEMENTS,
        tenants::DELETION_STATEMENTS,
        tenants::REMOVE_STATEMENTS,
    ]
    .into_iter()
    .flatten()
    .copied()
}
