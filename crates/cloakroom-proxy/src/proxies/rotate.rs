//! Replaces the key of a proxy.

use cloakroom_core::access::Permission;
use cloakroom_core::caller::Caller;
use cloakroom_core::idempotency::ResponseTemplate;

use super::find::{find_by_id, uuid};
use super::proxy::{Proxy, new_key};
use super::{Error, application, update};
use crate::server::ProxyServer;

/// Gives a proxy a new key. The old one is rejected by this node at once, and by every node within five seconds.
pub async fn rotate_key(
    server: &ProxyServer,
    caller: &Caller,
    id: &str,
    template: &ResponseTemplate<'_, Proxy>,
) -> Result<Proxy, Error> {
    caller.require_plain(Permission::ProxyUpdate)?;
    let mut proxy = find_by_id(server, caller.tenant, uuid(id)?).await?;
    if let Some(application) = proxy.application {
        application::require_replaceable(server, caller, application).await?;
    }
    proxy.sealed.key = new_key();
    let outcome = proxy.disclosure(caller);
    update::write(server, caller, proxy, outcome, template).await
}
