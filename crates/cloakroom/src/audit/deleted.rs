//! Listing what was deleted for good in all tenants, for whoever keeps backups.

use jiff::Timestamp;

use super::entry::{EntityKind, Operation};
use super::list::slots;
use super::store::{self, DeletedRow};
use crate::storage;
use crate::vault::Vault;

/// What a backup would bring back, and nobody but its owner may.
const KINDS: [EntityKind; 6] = [
    EntityKind::Application,
    EntityKind::ApplicationKey,
    EntityKind::Bank,
    EntityKind::Card,
    EntityKind::Tenant,
    EntityKind::Token,
];
const PAGE: i64 = 10_000;

/// Something that was deleted.
pub(crate) struct Deleted {
    pub at: Timestamp,
    pub tenant_number: i32,
    pub kind: EntityKind,
    pub id: String,
}

/// Everything that was deleted in a span of time, oldest first.
pub(crate) async fn list_deleted(
    vault: &Vault,
    from: Timestamp,
    to: Timestamp,
) -> Result<Vec<Deleted>, storage::Error> {
    let span = (&slots(from, to)[..], from, to);
    let kinds = KINDS.map(|kind| kind as i16);
    let wanted = (Operation::Delete as i16, &kinds[..]);
    let (mut all, mut after) = (Vec::new(), (from, 0, 0));
    loop {
        let page = store::list_deleted(&vault.db, span, wanted, after, PAGE).await?;
        let Some(last) = page.last() else {
            return Ok(all);
        };
        after = last.place;
        all.extend(page.into_iter().filter_map(deleted));
    }
}

fn deleted(row: DeletedRow) -> Option<Deleted> {
    Some(Deleted {
        at: row.at,
        tenant_number: row.tenant_number,
        kind: EntityKind::from_number(row.kind)?,
        id: row.id,
    })
}
