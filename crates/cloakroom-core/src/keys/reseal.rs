//! Seals stored rows again after their key was replaced: pages of a table, in the order of its primary key.

use cloakroom_platform::ids::TenantId;
use cloakroom_platform::storage::{Db, Error, Statement};
use uuid::Uuid;

use super::{Record, TenantKeys};

/// Bytes 3 to 22 of a sealed value: its key version and its salt. They identify one act of sealing.
const IDENTITY: std::ops::Range<usize> = 2..22;

/// SQL for a page of a tenant's rows with sealed data, after the id `$2`.
#[macro_export]
macro_rules! sealed_page {
    ($table:literal, $id:literal, $columns:expr) => {
        concat!(
            "select ",
            $columns,
            "
        from ",
            $table,
            "
        where ",
            $table,
            ".tenant_id = $1
          and ",
            $table,
            ".",
            $id,
            " > $2
        order by ",
            $table,
            ".",
            $id,
            "
        limit $3"
        )
    };
}

/// SQL that replaces sealed values, each only if it is still the one that was opened. No other column changes, so that
/// concurrent changes of a row do not conflict with it.
///
/// Commits asynchronously: nothing is promised to a client, and a lost commit is repeated. The order of commits in the
/// WAL is kept, so that a later, durable commit makes this one durable too.
#[macro_export]
macro_rules! replace_sealed {
    ($table:literal, $id:literal) => {
        concat!(
            "with at_once as materialized (
            select set_config('synchronous_commit', 'off', true)
        )
        update ",
            $table,
            "
        set sealed = ",
            $crate::fenced!("$1", "resealed.sealed"),
            "
        from at_once, unnest($2::uuid[], $3::bytea[], $4::bytea[]) as resealed (id, opened, sealed)
        where ",
            $table,
            ".tenant_id = $1
          and ",
            $table,
            ".",
            $id,
            " = resealed.id
          and substring(",
            $table,
            ".sealed from 3 for 20) = resealed.opened
        returning true"
        )
    };
}

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
        match (resealed, sealed.get(IDENTITY)) {
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
