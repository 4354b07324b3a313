//! Finds checkout sessions: for merchants by their id, for browsers by the key of their page.

use std::net::IpAddr;
use std::sync::Arc;

use cloakroom_core::access::{ApplicationKind, Grants, Permission};
use cloakroom_core::audit::{EntityKind, Entry, Operation};
use cloakroom_core::authentication;
use cloakroom_core::caller::Caller;
use cloakroom_tokens::TokenVault;
use uuid::Uuid;

use super::create::{page_digest, require_private};
use super::new_session::check_url;
use super::session::Session;
use super::{Error, sealed, store};

/// Finds a session of the caller's tenant.
pub async fn find(vault: &TokenVault, caller: &Caller, id: &str) -> Result<Session, Error> {
    require_private(caller)?;
    caller.require_plain(Permission::TokenIntentRead)?;
    let id: Uuid = id.parse().map_err(|_| Error::NotFound)?;
    let stored = store::find(&vault.db, caller.tenant, id).await?;
    let session = sealed::open(vault, caller.tenant, stored.ok_or(Error::NotFound)?).await?;
    let entry = Entry::new(caller, Operation::Read, EntityKind::CheckoutSession, id);
    vault.audit.enqueue(vec![entry]).await?;
    Ok(session)
}

/// A browser that opened a page.
pub(super) struct Visitor {
    pub trace_id: Arc<str>,
    pub address: Option<IpAddr>,
}

/// A session that a browser has opened, and the caller that it acts as.
pub(super) struct OpenedPage {
    pub session: Session,
    pub caller: Caller,
}

/// Finds the session of a page and checks that its URLs are still allowed.
///
/// The page acts for the application that created the session, with the single permission that it needs, and counts as a
/// public client: limits against card testing apply to the application and the visitor's address. It works until the
/// application is deleted or loses the permission.
pub(super) async fn find_by_page(
    vault: &TokenVault,
    page_key: &str,
    visitor: Visitor,
) -> Result<OpenedPage, Error> {
    let digest = page_digest(page_key);
    let found = store::find_by_page(&vault.db, &digest).await?;
    let (tenant_number, stored) = found.ok_or(Error::NotFound)?;
    let application = stored.columns.as_ref().map(|columns| columns.created_by);
    let application = application.ok_or(Error::NotFound)?;
    let principal =
        authentication::keyless_principal(vault, tenant_number, Some(application), application);
    let mut principal = principal.await?.ok_or(Error::NotFound)?;
    principal.require_anywhere(Permission::TokenIntentCreate)?;
    principal.application_kind = ApplicationKind::Public;
    principal.grants = Grants {
        permissions: [Permission::TokenIntentCreate].into_iter().collect(),
        rules: Vec::new(),
    };
    let session = sealed::open(vault, principal.tenant, stored).await?;
    let caller = Caller::new(Arc::new(principal), visitor.trace_id, visitor.address);
    let urls = [&session.facts.return_url, &session.facts.cancel_url];
    let is_allowed = urls.iter().all(|url| check_url(&caller, url).is_ok());
    match is_allowed {
        true => Ok(OpenedPage { session, caller }),
        false => Err(Error::HostNotAllowed),
    }
}
