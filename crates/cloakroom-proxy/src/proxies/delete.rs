//! Deletes proxies.

use cloakroom_core::access::{Bucket, Permission};
use cloakroom_core::access_change;
use cloakroom_core::audit::{EntityKind, Entry, Operation};
use cloakroom_core::caller::Caller;
use cloakroom_core::events::{Event, EventKind};
use cloakroom_core::idempotency::ResponseTemplate;

use super::find::uuid;
use super::{Change, Error, store};
use crate::server::ProxyServer;

/// Deletes a proxy. Its key is rejected by this node at once, and by every node within five seconds.
///
/// The row MAC is not verified first: deleting an altered row is safe.
pub async fn delete(server: &ProxyServer, caller: &Caller, id: &str) -> Result<(), Error> {
    caller.require_plain(Permission::ProxyDelete)?;
    let id = uuid(id)?;
    let bucket = Bucket::of_proxy(id);
    let mut transaction = access_change::begin(server, caller.tenant, &[bucket]).await?;
    let deleted = match store::delete(&transaction, caller.tenant, id).await {
        Ok(Some(row_mac)) => transaction.remove(bucket, &row_mac).map_err(Error::from),
        Ok(None) => Err(Error::NotFound),
        Err(error) => Err(error.into()),
    };
    let entry = |(): &()| {
        let entry = Entry::new(caller, Operation::Delete, EntityKind::Proxy, id);
        entry.with_event(Event::of_id(EventKind::ProxyDeleted, "proxy", id))
    };
    let change = Change {
        server,
        tenant: caller.tenant,
        transaction,
    };
    change
        .commit(deleted, entry, &ResponseTemplate::none())
        .await
}
