//! Creates proxies.

use cloakroom_core::access::{AuthenticatedRow as _, Bucket, Permission};
use cloakroom_core::access_change;
use cloakroom_core::audit::{EntityKind, Entry, Operation};
use cloakroom_core::caller::Caller;
use cloakroom_core::current_keys::with_current_keys;
use cloakroom_core::events::EventKind;
use cloakroom_core::idempotency::ResponseTemplate;
use cloakroom_platform::ids;
use jiff::Timestamp;

use super::proxy::{Proxy, SealedPart, new_key};
use super::{Change, Error, NewProxy, application, destination, row, store};
use crate::server::ProxyServer;

/// Bounds the cost of a list, whose name filter reads every row of the tenant.
const PROXIES_MAX: i64 = 1_000;

/// Creates a proxy with a new key.
pub async fn create(
    server: &ProxyServer,
    caller: &Caller,
    new: NewProxy,
    template: &ResponseTemplate<'_, Proxy>,
) -> Result<Proxy, Error> {
    let create = || create_once(server, caller, new.clone(), template);
    with_current_keys(&server.keys, caller, create).await
}

async fn create_once(
    server: &ProxyServer,
    caller: &Caller,
    new: NewProxy,
    template: &ResponseTemplate<'_, Proxy>,
) -> Result<Proxy, Error> {
    caller.require_plain(Permission::ProxyCreate)?;
    let new = new.validate(None)?;
    destination::require_allowed(server, caller, &new.destination_url)?;
    if let Some(application) = new.application {
        application::require_usable(server, caller, application).await?;
    }
    let mut proxy = Proxy {
        id: ids::new_uuid(),
        name: new.name,
        destination_url: new.destination_url,
        application: new.application,
        sealed: SealedPart {
            key: new_key(),
            configuration: new.configuration,
            request: new.request,
            response: new.response,
            require_auth: new.require_auth,
            disable_detokenization: new.disable_detokenization,
            allowed_requests: new.allowed_requests,
        },
        row_version: 1,
        row_mac: Vec::new(),
        created_by: caller.application,
        created_at: Timestamp::UNIX_EPOCH,
        modified_by: None,
        modified_at: None,
    };
    let row = row::seal(server, caller.tenant, &proxy).await?;
    let row_mac = row.row_mac(server.keys.control());
    let bucket = Bucket::of_proxy(row.id);
    let mut transaction = access_change::begin(server, caller.tenant, &[bucket]).await?;
    let by = caller.application;
    let created_at = store::insert(&transaction, &row, &row_mac, by, PROXIES_MAX).await;
    let created = created_at
        .map_err(Error::from)
        .and_then(|created_at| created_at.ok_or(Error::TooMany(PROXIES_MAX)))
        .and_then(|created_at| {
            transaction.insert(bucket, &row_mac)?;
            proxy.created_at = created_at;
            Ok(proxy)
        });
    let entry = |proxy: &Proxy| {
        let entry = Entry::new(caller, Operation::Create, EntityKind::Proxy, proxy.id);
        let entry = entry.with_outcome(proxy.disclosure(caller));
        entry.with_event(proxy.event(EventKind::ProxyCreated))
    };
    let tenant = caller.tenant;
    let change = Change {
        server,
        tenant,
        transaction,
    };
    change.commit(created, entry, template).await
}
