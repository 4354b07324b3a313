//! The application of a proxy, whose permissions its transforms have.

use cloakroom_core::access::{self, ApplicationKind, Grants};
use cloakroom_core::authentication;
use cloakroom_core::caller::Caller;
use cloakroom_platform::api::FieldError;
use uuid::Uuid;

use super::Error;
use crate::server::ProxyServer;

/// Requires that an application belongs to the tenant, and that the caller may grant what it holds: a proxy must not give
/// a management key permissions that it does not have.
pub(super) async fn require_usable(
    server: &ProxyServer,
    caller: &Caller,
    application: Uuid,
) -> Result<(), Error> {
    let found = authentication::find_application(server, caller.tenant, application).await;
    let found = found.map_err(|error| match error {
        access::Error::Storage(error) => Error::Storage(error),
        _ => Error::Altered("application"),
    })?;
    let Some(row) = found.filter(|row| row.kind != ApplicationKind::Management) else {
        let rule = "must be the id of a private or public application of the tenant";
        return Err(Error::Invalid(vec![FieldError::new(
            "application.id",
            rule,
        )]));
    };
    let grants = Grants::parse(&row.grants).ok_or(Error::Altered("application"))?;
    Ok(caller.require_grantable(&server.config.tenants, row.kind, &grants)?)
}

/// The same for the application that a proxy had before a change. One that was deleted grants nothing.
pub(super) async fn require_replaceable(
    server: &ProxyServer,
    caller: &Caller,
    application: Uuid,
) -> Result<(), Error> {
    match require_usable(server, caller, application).await {
        Err(Error::Invalid(_)) => Ok(()),
        outcome => outcome,
    }
}
