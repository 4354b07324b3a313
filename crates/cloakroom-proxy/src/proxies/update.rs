//! Changes proxies: replaces them, or applies a merge patch.

use cloakroom_core::access::{AuthenticatedRow as _, Permission};
use cloakroom_core::audit::{self, EntityKind, Entry, Operation};
use cloakroom_core::caller::Caller;
use cloakroom_core::idempotency::ResponseTemplate;
use cloakroom_core::keys;
use cloakroom_crypto::Sensitive;
use cloakroom_platform::api::{merge_patch, parse_json};
use serde_json::{Map, Value};

use super::find::{find_by_id, uuid};
use super::proxy::{Proxy, SealedPart};
use super::{Error, NewProxy, application, commit, destination, row, store};
use crate::server::ProxyServer;

/// Replaces everything but the key. Absent attributes are cleared.
pub async fn replace(
    server: &ProxyServer,
    caller: &Caller,
    id: &str,
    new: NewProxy,
    template: &ResponseTemplate<'_, Proxy>,
) -> Result<Proxy, Error> {
    caller.require_plain(Permission::ProxyUpdate)?;
    let stored = find_by_id(server, caller.tenant, uuid(id)?).await?;
    change(server, caller, stored, new, template).await
}

/// Applies a JSON merge patch (RFC 7386) to the proxy as a replacement would send it.
pub async fn patch(
    server: &ProxyServer,
    caller: &Caller,
    id: &str,
    patch: Map<String, Value>,
    template: &ResponseTemplate<'_, Proxy>,
) -> Result<Proxy, Error> {
    caller.require_plain(Permission::ProxyUpdate)?;
    let stored = find_by_id(server, caller.tenant, uuid(id)?).await?;
    let current = serde_json::to_value(NewProxy::from(&stored));
    let mut merged = current.map_err(|_| keys::Error::Integrity)?;
    remove_replaced_forms(&mut merged, &patch);
    merge_patch(&mut merged, Value::Object(patch));
    let text = Sensitive::new(merged.to_string());
    let new = parse_json(text.expose()).map_err(|error| Error::Invalid(vec![error]))?;
    change(server, caller, stored, new, template).await
}

/// A patch with one form of the transforms replaces those that were sent in the other form.
fn remove_replaced_forms(target: &mut Value, patch: &Map<String, Value>) {
    let forms = [
        ("request_transform", "request_transforms"),
        ("request_transforms", "request_transform"),
        ("response_transform", "response_transforms"),
        ("response_transforms", "response_transform"),
    ];
    for (form, other) in forms {
        let is_given = patch.get(form).is_some_and(|value| !value.is_null());
        if is_given && let Some(members) = target.as_object_mut() {
            members.shift_remove(other);
        }
    }
}

async fn change(
    server: &ProxyServer,
    caller: &Caller,
    stored: Proxy,
    new: NewProxy,
    template: &ResponseTemplate<'_, Proxy>,
) -> Result<Proxy, Error> {
    let is_masked = caller.settings.mask_proxy_configuration;
    let new = new.validate(is_masked.then_some(&stored.sealed.configuration))?;
    destination::require_allowed(server, caller, &new.destination_url)?;
    // Both the current and the new application are checked: changing a more privileged proxy is an escalation too.
    if let Some(current) = stored.application {
        application::require_replaceable(server, caller, current).await?;
    }
    if let Some(application) = new.application {
        application::require_usable(server, caller, application).await?;
    }
    let changed = Proxy {
        name: new.name,
        destination_url: new.destination_url,
        application: new.application,
        sealed: SealedPart {
            key: stored.sealed.key.clone(),
            configuration: new.configuration,
            request: new.request,
            response: new.response,
            require_auth: new.require_auth,
            disable_detokenization: new.disable_detokenization,
        },
        ..stored
    };
    write(server, caller, changed, template).await
}

/// Writes the next version of a proxy, unless it was changed meanwhile.
pub(super) async fn write(
    server: &ProxyServer,
    caller: &Caller,
    mut proxy: Proxy,
    template: &ResponseTemplate<'_, Proxy>,
) -> Result<Proxy, Error> {
    proxy.row_version += 1;
    let row = row::seal(server, caller.tenant, &proxy).await?;
    let row_mac = row.row_mac(server.keys.control());
    let transaction = audit::begin(&server.audit).await?;
    let modified_at = store::update(&transaction, &row, &row_mac, caller.application).await;
    let written = modified_at
        .map_err(Error::from)
        .and_then(|modified_at| modified_at.ok_or(Error::Contended))
        .map(|modified_at| {
            proxy.modified_by = Some(caller.application);
            proxy.modified_at = Some(modified_at);
            proxy
        });
    let entry = |proxy: &Proxy| {
        let entry = Entry::new(caller, Operation::Update, EntityKind::Proxy, proxy.id);
        entry.with_outcome(proxy.disclosure(caller))
    };
    commit(server, transaction, written, entry, template).await
}
