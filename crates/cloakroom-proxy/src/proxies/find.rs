//! Reads and lists proxies.

use cloakroom_core::access::Permission;
use cloakroom_core::audit::{EntityKind, Entry, Operation, Outcome};
use cloakroom_core::caller::Caller;
use cloakroom_platform::api::NumberedPage;
use cloakroom_platform::ids::TenantId;
use uuid::Uuid;

use super::{Error, Proxy, row, store};
use crate::server::ProxyServer;

/// Filter of a list; an absent one matches everything.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    pub ids: Option<Vec<Uuid>>,
    /// A pattern of SQL's `ilike`.
    pub name_pattern: Option<String>,
}

/// One page of proxies, and the total count.
pub struct ProxyPage {
    pub proxies: Vec<Proxy>,
    pub total: u64,
}

/// Finds a proxy, with its key and its configuration values. The read is durable in the audit log first.
pub async fn find(server: &ProxyServer, caller: &Caller, id: &str) -> Result<Proxy, Error> {
    caller.require_plain(Permission::ProxyRead)?;
    let proxy = find_by_id(server, caller.tenant, uuid(id)?).await?;
    record_reads(server, caller, std::slice::from_ref(&proxy)).await?;
    Ok(proxy)
}

/// Lists proxies, newest first.
///
/// A row that was modified by SQL fails its page instead of being omitted: clients must not act on an incomplete list.
pub async fn list(
    server: &ProxyServer,
    caller: &Caller,
    filter: &Filter,
    page: NumberedPage,
) -> Result<ProxyPage, Error> {
    caller.require_plain(Permission::ProxyRead)?;
    let (stored, total) = store::list(&server.db, caller.tenant, filter, page).await?;
    let mut proxies = Vec::with_capacity(stored.len());
    for stored in stored {
        proxies.push(row::open(server, caller.tenant, stored).await?);
    }
    record_reads(server, caller, &proxies).await?;
    Ok(ProxyPage {
        proxies,
        total: total.unsigned_abs(),
    })
}

async fn record_reads(
    server: &ProxyServer,
    caller: &Caller,
    proxies: &[Proxy],
) -> Result<(), Error> {
    let entries = proxies.iter().map(|proxy| {
        let entry = Entry::new(caller, Operation::Read, EntityKind::Proxy, proxy.id);
        entry.with_outcome(proxy.disclosure(caller))
    });
    Ok(server.audit.record_reads(entries.collect()).await?)
}

impl Proxy {
    /// How the configuration values are returned to a caller.
    pub(super) fn disclosure(&self, caller: &Caller) -> Outcome {
        match (
            self.sealed.configuration.is_empty(),
            caller.settings.mask_proxy_configuration,
        ) {
            (true, _) => Outcome::Done,
            (false, true) => Outcome::Masked,
            (false, false) => Outcome::Revealed,
        }
    }
}

/// Finds a proxy of a tenant and opens it.
pub(super) async fn find_by_id(
    server: &ProxyServer,
    tenant: TenantId,
    id: Uuid,
) -> Result<Proxy, Error> {
    let stored = store::find(&server.db, tenant, id).await?;
    row::open(server, tenant, stored.ok_or(Error::NotFound)?).await
}

/// Parses an id; an id that is not a UUID is not found.
pub(super) fn uuid(id: &str) -> Result<Uuid, Error> {
    id.parse().map_err(|_| Error::NotFound)
}
