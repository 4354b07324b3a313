//! Requests, approves, cancels and lists exports.

use cloakroom_core::access::{AuthenticatedRow as _, Bucket, Tenant};
use cloakroom_core::access_change::{self, AccessChange};
use cloakroom_core::audit::{EntityKind, Entry, Operation, Operator};
use cloakroom_core::vault::Vault;
use cloakroom_management::tenants;
use cloakroom_platform::ids;
use uuid::Uuid;

use super::{Error, ExportRequest, NewExport, store};

/// Requests an export.
pub async fn request(
    vault: &Vault,
    tenant: &Tenant,
    new: NewExport,
    by: &Operator,
) -> Result<ExportRequest, Error> {
    new.check()?;
    let request = ExportRequest {
        tenant: tenant.id,
        id: ids::new_uuid(),
        filter: new.filter,
        receiver: new.receiver,
        reason: new.reason,
        requested_by: by.as_str().to_owned(),
        // PostgreSQL stores microseconds.
        requested_at: microseconds(vault.clock.now().await?),
        approved_by: None,
        approved_at: None,
    };
    let mut change = access_change::begin(vault, tenant.id, &[Bucket::RESOURCES]).await?;
    let row_mac = request.row_mac(vault.keys.control());
    let written = async {
        store::insert(&change, &request, &row_mac).await?;
        Ok(change.insert(Bucket::RESOURCES, &row_mac)?)
    };
    let written = written.await;
    finish(change, written, entry(&request, Operation::Create)).await?;
    Ok(request)
}

/// Approves an export that another person requested. `receiver` is the fingerprint of the receiver's key, which the approver
/// has from the receiver.
pub async fn approve(
    vault: &Vault,
    tenant: &Tenant,
    id: Uuid,
    receiver: &str,
    by: &Operator,
) -> Result<ExportRequest, Error> {
    let now = microseconds(vault.clock.now().await?);
    let mut change = access_change::begin(vault, tenant.id, &[Bucket::RESOURCES]).await?;
    let approved = async {
        let (request, before) = find(vault, &change, tenant, id).await?;
        request.require_receiver(receiver)?;
        let approved = request.approve(by, now)?;
        let row_mac = approved.row_mac(vault.keys.control());
        store::approve(&change, &approved, &row_mac).await?;
        change.replace(Bucket::RESOURCES, &before, &row_mac)?;
        Ok(approved)
    };
    match approved.await {
        Ok(approved) => {
            change
                .commit(&[entry(&approved, Operation::Authorize)])
                .await?;
            Ok(approved)
        }
        Err(error) => {
            change.roll_back().await;
            Err(error)
        }
    }
}

/// Cancels an export, approved or not. One that is running is not published.
pub async fn cancel(vault: &Vault, tenant: &Tenant, id: Uuid) -> Result<(), Error> {
    let mut change = access_change::begin(vault, tenant.id, &[Bucket::RESOURCES]).await?;
    let removed = async {
        let (_, row_mac) = find(vault, &change, tenant, id).await?;
        store::remove(&change, tenant.id, id).await?;
        Ok(change.remove(Bucket::RESOURCES, &row_mac)?)
    };
    let removed = removed.await;
    let (number, operation) = (tenant.id.number, Operation::Delete);
    let entry = Entry::by_system(number, operation, EntityKind::Export, id);
    finish(change, removed, entry).await
}

/// Lists the requests of a tenant that have not run, oldest first.
pub async fn list(vault: &Vault, tenant: &Tenant) -> Result<Vec<ExportRequest>, Error> {
    let stored = store::list(&vault.db, tenant.id).await?;
    let genuine = stored.into_iter().map(|(request, row_mac)| {
        match request.is_genuine(vault.keys.control(), &row_mac) {
            true => Ok(request),
            false => Err(Error::Altered(request.id)),
        }
    });
    genuine.collect()
}

/// Verifies the requests of all tenants. Returns one sentence for each that was changed outside the vault.
pub async fn verify_requests(vault: &Vault) -> Result<Vec<String>, Error> {
    let mut findings = Vec::new();
    for tenant in tenants::list(vault).await? {
        for (request, row_mac) in store::list(&vault.db, tenant.id).await? {
            if !request.is_genuine(vault.keys.control(), &row_mac) {
                let (id, tenant) = (request.id, tenant.id.uuid);
                findings.push(format!(
                    "the requested export {id} of tenant {tenant} was changed outside the vault"
                ));
            }
        }
    }
    Ok(findings)
}

/// Finds a request and its MAC. The bucket is locked, so that the request is a current one.
pub(super) async fn find(
    vault: &Vault,
    change: &AccessChange<'_>,
    tenant: &Tenant,
    id: Uuid,
) -> Result<(ExportRequest, Vec<u8>), Error> {
    let found = store::find(change, tenant.id, id).await?;
    let (request, row_mac) = found.ok_or(Error::NotFound(id))?;
    match request.is_genuine(vault.keys.control(), &row_mac) {
        true => Ok((request, row_mac)),
        false => Err(Error::Altered(id)),
    }
}

fn entry(request: &ExportRequest, operation: Operation) -> Entry {
    let number = request.tenant.number;
    Entry::by_system(number, operation, EntityKind::Export, request.summary())
}

async fn finish(
    change: AccessChange<'_>,
    written: Result<(), Error>,
    entry: Entry,
) -> Result<(), Error> {
    match written {
        Ok(()) => Ok(change.commit(&[entry]).await?),
        Err(error) => {
            change.roll_back().await;
            Err(error)
        }
    }
}

fn microseconds(at: jiff::Timestamp) -> jiff::Timestamp {
    jiff::Timestamp::from_microsecond(at.as_microsecond()).unwrap_or(at)
}
