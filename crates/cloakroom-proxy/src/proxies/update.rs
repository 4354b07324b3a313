//! Changes proxies: replaces them, or applies a merge patch.

use std::collections::BTreeMap;

use cloakroom_core::access::{AuthenticatedRow as _, Bucket, Permission};
use cloakroom_core::access_change;
use cloakroom_core::audit::{EntityKind, Entry, Operation, Outcome};
use cloakroom_core::caller::Caller;
use cloakroom_core::current_keys::with_current_keys;
use cloakroom_core::events::EventKind;
use cloakroom_core::idempotency::ResponseTemplate;
use cloakroom_core::keys;
use cloakroom_crypto::Sensitive;
use cloakroom_platform::api::{merge_patch, parse_json};
use serde_json::{Map, Value};

use super::find::{find_by_id, uuid};
use super::proxy::{Proxy, SealedPart};
use super::{Change, Error, NewProxy, application, destination, row, store};
use crate::server::ProxyServer;
use crate::transforms;

/// Replaces everything but the key. Absent attributes are cleared, except `allowed_requests`: clients that do not know it
/// would remove it.
pub async fn replace(
    server: &ProxyServer,
    caller: &Caller,
    id: &str,
    mut new: NewProxy,
    template: &ResponseTemplate<'_, Proxy>,
) -> Result<Proxy, Error> {
    caller.require_plain(Permission::ProxyUpdate)?;
    let stored = find_by_id(server, caller.tenant, uuid(id)?).await?;
    let allowed = &stored.sealed.allowed_requests;
    new.allowed_requests.get_or_insert_with(|| allowed.clone());
    let changed = change(server, caller, stored, new).await?;
    let outcome = changed.disclosure(caller);
    write(server, caller, changed, outcome, template).await
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
    let is_masked = caller.settings.mask_proxy_configuration;
    let current = serde_json::to_value(NewProxy::of(&stored, is_masked));
    let mut merged = current.map_err(|_| keys::Error::Integrity)?;
    remove_replaced_forms(&mut merged, &patch);
    merge_patch(&mut merged, Value::Object(patch));
    let text = Sensitive::new(merged.to_string());
    let new = parse_json(text.expose()).map_err(|error| Error::Invalid(vec![error]))?;
    let changed = change(server, caller, stored, new).await?;
    write(server, caller, changed, Outcome::Done, template).await
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

/// Whether configuration values are used as before. A value that the caller may not see must not be sent elsewhere, nor to
/// another place of the request, where the caller could see it or learn about it.
fn keeps_use_of_configuration(stored: &Proxy, new: &NewProxy) -> bool {
    let transforms = new.request_transform.iter();
    let mut transforms = transforms.chain(new.request_transforms.iter().flatten());
    new.destination_url.as_ref() == Some(&stored.destination_url)
        && transforms.all(|transform| {
            let stored = &stored.sealed.request.transforms;
            stored.contains(transform) || !transforms::refers_to_configuration(transform)
        })
}

/// The proxy with a valid change, not yet written.
async fn change(
    server: &ProxyServer,
    caller: &Caller,
    stored: Proxy,
    new: NewProxy,
) -> Result<Proxy, Error> {
    let kept = match keeps_use_of_configuration(&stored, &new) {
        true => stored.sealed.configuration.clone(),
        false => BTreeMap::new(),
    };
    let is_masked = caller.settings.mask_proxy_configuration;
    let new = new.validate(is_masked.then_some(&kept))?;
    destination::require_allowed(server, caller, &new.destination_url)?;
    // Both the current and the new application are checked: changing a more privileged proxy is an escalation too.
    if let Some(current) = stored.application {
        application::require_replaceable(server, caller, current).await?;
    }
    if let Some(application) = new.application {
        application::require_usable(server, caller, application).await?;
    }
    Ok(Proxy {
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
            allowed_requests: new.allowed_requests,
        },
        ..stored
    })
}

/// Writes the next version of a proxy, unless it was changed meanwhile. `outcome` is how the response shows its
/// configuration values.
pub(super) async fn write(
    server: &ProxyServer,
    caller: &Caller,
    proxy: Proxy,
    outcome: Outcome,
    template: &ResponseTemplate<'_, Proxy>,
) -> Result<Proxy, Error> {
    let write = || write_once(server, caller, proxy.clone(), outcome, template);
    with_current_keys(&server.keys, caller, write).await
}

async fn write_once(
    server: &ProxyServer,
    caller: &Caller,
    mut proxy: Proxy,
    outcome: Outcome,
    template: &ResponseTemplate<'_, Proxy>,
) -> Result<Proxy, Error> {
    proxy.row_version += 1;
    let row = row::seal(server, caller.tenant, &proxy).await?;
    let row_mac = row.row_mac(server.keys.control());
    let bucket = Bucket::of_proxy(row.id);
    let mut transaction = access_change::begin(server, caller.tenant, &[bucket]).await?;
    let former_mac = proxy.row_mac.clone();
    let modified_at = store::update(&transaction, &row, &row_mac, caller.application).await;
    let written = modified_at
        .map_err(Error::from)
        .and_then(|modified_at| modified_at.ok_or(Error::Contended))
        .and_then(|modified_at| {
            transaction.replace(bucket, &former_mac, &row_mac)?;
            proxy.modified_by = Some(caller.application);
            proxy.modified_at = Some(modified_at);
            proxy.row_mac = row_mac.to_vec();
            Ok(proxy)
        });
    let entry = |proxy: &Proxy| {
        let entry = Entry::new(caller, Operation::Update, EntityKind::Proxy, proxy.id);
        let entry = entry.with_outcome(outcome);
        entry.with_event(proxy.event(EventKind::ProxyUpdated))
    };
    let tenant = caller.tenant;
    let change = Change {
        server,
        tenant,
        transaction,
    };
    change.commit(written, entry, template).await
}
