//! Seals stored rows again after their key was replaced: pages of a table, in the order of its primary key.

use cloakroom_platform::ids::TenantId;
use cloakroom_platform::storage::{Db, Error, Statement};
use uuid::Uuid;

use crate::keys::{Record, TenantKeys};

/// Bytes 3 to 22 of a sealed value: its key version and its salt. They identify one act of sealing.
pub const SEALED_IDENTITY: std::ops::Range<usize> = 2..22;

/// A page of rows that is sealed again.
#[derive(Default)]
pub struct ResealedPage {
    ids: Vec<Uuid>,
    opened: Vec<Vec<u8>>,
    sealed: Vec<Vec<u8>>,
    /// The last row of the page; `None` after the end of the table.
    pub last: Option<Uuid>,
    pub scanned: u64,
    pub rewritten: u64,
    /// Rows that do not open: they were altered outside the vault. Their key cannot be destroyed.
    pub unreadable: u64,
}

impl ResealedPage {
    /// Seals a row again unless its key is the active one. `record` is `None` if the row is invalid.
    pub fn add(&mut self, keys: &TenantKeys, id: Uuid, record: Option<&Record<'_>>, sealed: &[u8]) {
        self.scanned += 1;
        self.last = Some(id);
        let resealed = record.map(|record| keys.reseal(record, sealed));
        match (resealed, sealed.get(SEALED_IDENTITY)) {
            (Some(Ok(None)), _) => {}
            (Some(Ok(Some(resealed))), Some(identity)) => {
                self.ids.push(id);
                self.opened.push(identity.to_vec());
                self.sealed.push(resealed);
            }
            _ => self.unreadable += 1,
        }
    }

    /// Writes the page with a statement of `replace_sealed!`.
    pub async fn write(
        mut self,
        db: &Db,
        statement: &Statement,
        tenant: TenantId,
    ) -> Result<Self, Error> {
        if !self.ids.is_empty() {
            let params: [&(dyn tokio_postgres::types::ToSql + Sync); 4] =
                [&tenant.number, &self.ids, &self.opened, &self.sealed];
            let rows = db.write(statement, &params).await?;
            self.rewritten = rows.len() as u64;
        }
        Ok(self)
    }
}

/// Rows that a scan has examined.
#[derive(Clone, Copy, Debug, Default)]
pub struct ScannedPage {
    pub rows: u64,
    /// Rows with a digest under another version, and rows that do not open.
    pub found: u64,
    /// The last row; `None` after the end of the table.
    pub last: Option<Uuid>,
}
