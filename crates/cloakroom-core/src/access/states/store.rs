//! SQL statements for access states.

use std::collections::BTreeMap;

use cloakroom_platform::ids::TenantId;
use cloakroom_platform::storage::{Db, Error, Params, Statement, Transaction, statements};
use tokio_postgres::Row;
use uuid::Uuid;

use super::{Bucket, StateRow};
use crate::access::renew::OutdatedMacs;
use crate::{application_bucket, fenced_mac, key_member, proxy_bucket};

/// Every row of a tenant that has a bucket: bucket, kind, id and MAC. Keys have no MAC of their own: their columns take its
/// place.
macro_rules! members {
    () => {
        concat!(
            "select 0 as bucket, 'tenant' as kind, public_id as id, row_mac
            from tenant
            where tenant_id = $1
            union all
            select 1, 'deletion requested by application', requested_by, row_mac
            from tenant_deletion
            where tenant_id = $1
            union all
            select 1, 'branding', branding_id, row_mac
            from branding
            where tenant_id = $1
            union all
            select 1, 'webhook', webhook_id, row_mac
            from webhook
            where tenant_id = $1
            union all
            select 1, 'requested export', export_id, row_mac
            from export_request
            where tenant_id = $1
            union all
            select ",
            application_bucket!("application_id"),
            ", 'application', application_id, row_mac
            from application
            where tenant_id = $1
            union all
            select ",
            application_bucket!("application_id"),
            ", 'API key', key_id, row_mac
            from application_key
            where tenant_id = $1
            union all
            select ",
            proxy_bucket!("proxy_id"),
            ", 'proxy', proxy_id, row_mac
            from proxy
            where tenant_id = $1
            union all
            select 256, 'key of purpose ' || purpose || ', version ' || version, null, ",
            key_member!(),
            "
            from tenant_key
            where tenant_id = $1
            union all
            select 256, 'key of purpose ' || purpose || ', version ' || version, null, ",
            key_member!(),
            "
            from system_key
            where $1 = 0"
        )
    };
}

/// SQL that stores MACs computed again after the control key was replaced, in a table of tenants, each only if the row
/// still has the one that was verified. No other column changes. Rows are locked in the order of their ids, as everywhere.
macro_rules! replace_row_macs {
    ($table:literal, $id:literal) => {
        concat!(
            "with locked as materialized (
            select stored.",
            $id,
            " as id, renewed.before, renewed.after
            from unnest($2::uuid[], $3::bytea[], $4::bytea[]) as renewed (id, before, after)
            join ",
            $table,
            " stored on stored.tenant_id = $1
             and stored.",
            $id,
            " = renewed.id
             and stored.row_mac = renewed.before
            order by stored.",
            $id,
            "
            for update of stored
        )
        update ",
            $table,
            "
        set row_mac = locked.after
        from locked
        where ",
            $table,
            ".tenant_id = $1
          and ",
            $table,
            ".",
            $id,
            " = locked.id
        returning locked.before, locked.after"
        )
    };
}

statements! {
    // Inserts the state of an empty bucket or locks the existing one.
    LOCK: "access::lock_state" = concat!(
        "insert into access_state
            (tenant_id, bucket, generation, digest, row_mac)
        values ($1, $2, $3, $4, ", fenced_mac!("$5"), ")
        on conflict (tenant_id, bucket) do update
        set generation = access_state.generation
        returning generation, digest, row_mac");
    LIST_BUCKET: "access::list_bucket" = concat!(
        "select kind, id, row_mac
        from (
            ", members!(), "
        ) member
        where bucket = $2::smallint
        order by kind, id");
    // `$6` has the versions that made the MACs of the rows which the change inserted.
    WRITE: "access::write_state" = concat!(
        "update access_state
        set generation = $3,
            digest = $4,
            row_mac = ", fenced_mac!("$5", "
                  and not exists (
                    select
                    from system_key
                    where purpose = 7
                      and version = any($6::integer[])
                      and state not in (2, 5)
                  )"), "
        where tenant_id = $1
          and bucket = $2");
    LIST_OUTDATED: "access::list_outdated_states" =
        "select bucket
        from access_state
        where tenant_id = $1
          and substring(row_mac from 1 for 4) <> int4send($2)
        order by bucket";
    // States and rows in one statement, so that both are of the same moment.
    LIST: "access::list_states" = concat!(
        "select bucket::integer, null as kind, null as id, row_mac, generation, digest
        from access_state
        where tenant_id = $1
        union all
        select bucket, kind, id, row_mac, null, null
        from (
            ", members!(), "
        ) member
        order by bucket, kind, id");
    RENEW_TENANT: "access::renew_tenant" = replace_row_macs!("tenant", "public_id");
    RENEW_DELETION: "access::renew_deletion" =
        replace_row_macs!("tenant_deletion", "requested_by");
    RENEW_BRANDING: "access::renew_branding" = replace_row_macs!("branding", "branding_id");
    RENEW_WEBHOOK: "access::renew_webhook" = replace_row_macs!("webhook", "webhook_id");
    RENEW_EXPORT: "access::renew_export" = replace_row_macs!("export_request", "export_id");
    RENEW_APPLICATION: "access::renew_application" =
        replace_row_macs!("application", "application_id");
    RENEW_KEY: "access::renew_key" = replace_row_macs!("application_key", "key_id");
    RENEW_PROXY: "access::renew_proxy" = replace_row_macs!("proxy", "proxy_id");
    // Tenants whose own row was deleted by SQL: Cloakroom keeps those of deleted tenants.
    LIST_ORPHANS: "access::list_orphaned_states" =
        "select distinct tenant_id
        from access_state
        where tenant_id <> 0
          and not exists (
            select true
            from tenant
            where tenant.tenant_id = access_state.tenant_id
        )
        order by tenant_id";
}

/// A table whose rows have MACs and are in a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MacTable {
    Tenant,
    TenantDeletion,
    Branding,
    Webhook,
    ExportRequest,
    Application,
    ApplicationKey,
    Proxy,
}

impl MacTable {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Tenant => "tenant",
            Self::TenantDeletion => "tenant_deletion",
            Self::Branding => "branding",
            Self::Webhook => "webhook",
            Self::ExportRequest => "export_request",
            Self::Application => "application",
            Self::ApplicationKey => "application_key",
            Self::Proxy => "proxy",
        }
    }

    fn renewal(self) -> &'static Statement {
        match self {
            Self::Tenant => &RENEW_TENANT,
            Self::TenantDeletion => &RENEW_DELETION,
            Self::Branding => &RENEW_BRANDING,
            Self::Webhook => &RENEW_WEBHOOK,
            Self::ExportRequest => &RENEW_EXPORT,
            Self::Application => &RENEW_APPLICATION,
            Self::ApplicationKey => &RENEW_KEY,
            Self::Proxy => &RENEW_PROXY,
        }
    }
}

/// Replaces MACs, each if the row still has the one before. Returns those that were replaced, before and after.
pub(crate) async fn renew(
    transaction: &Transaction,
    tenant: TenantId,
    table: MacTable,
    macs: &OutdatedMacs,
) -> Result<Vec<(Vec<u8>, Vec<u8>)>, Error> {
    let params: Params<'_> = &[&tenant.number, &macs.ids, &macs.before, &macs.after];
    let rows = transaction.run(table.renewal(), params).await?;
    Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
}

/// A row of a bucket.
pub(super) struct Member {
    pub kind: String,
    /// `None` for a key, which its purpose and version identify.
    pub id: Option<Uuid>,
    pub row_mac: Vec<u8>,
}

/// A state as stored, with its MAC.
pub(super) type Stored = (StateRow, Vec<u8>);

/// Locks the state of a bucket until the end of the transaction; inserts `initial` if there is none.
pub(super) async fn lock(
    transaction: &Transaction,
    initial: &StateRow,
    row_mac: &[u8],
) -> Result<Option<Stored>, Error> {
    let (tenant_number, bucket) = (initial.tenant_number, initial.bucket);
    let params: Params<'_> = &[
        &tenant_number,
        &bucket.number(),
        &initial.generation,
        &initial.digest,
        &row_mac,
    ];
    let rows = transaction.run(&LOCK, params).await?;
    Ok(rows.first().map(|row| {
        let state = StateRow {
            tenant_number,
            bucket,
            generation: row.get(0),
            digest: row.get(1),
        };
        (state, row.get(2))
    }))
}

/// Lists the rows of a bucket, within the transaction that holds its lock.
pub(super) async fn list_bucket(
    transaction: &Transaction,
    tenant: i32,
    bucket: Bucket,
) -> Result<Vec<Member>, Error> {
    let rows = transaction
        .run(&LIST_BUCKET, &[&tenant, &bucket.number()])
        .await?;
    let member = |row: &Row| Member {
        kind: row.get(0),
        id: row.get(1),
        row_mac: row.get(2),
    };
    Ok(rows.iter().map(member).collect())
}

/// Writes a state. `versions` are those that made the MACs of inserted rows.
pub(super) async fn write(
    transaction: &Transaction,
    state: &StateRow,
    row_mac: &[u8],
    versions: &[i32],
) -> Result<(), Error> {
    let params: Params<'_> = &[
        &state.tenant_number,
        &state.bucket.number(),
        &state.generation,
        &state.digest,
        &row_mac,
        &versions,
    ];
    transaction.run(&WRITE, params).await?;
    Ok(())
}

/// Lists buckets of a tenant whose state has a MAC by another version of the control key.
pub(crate) async fn list_outdated(
    db: &Db,
    tenant: TenantId,
    version: u32,
) -> Result<Vec<Bucket>, Error> {
    let params: Params<'_> = &[&tenant.number, &version.cast_signed()];
    let rows = db.read(&LIST_OUTDATED, params).await?;
    let bucket = |row: &Row| Bucket::from_number(row.get(0));
    Ok(rows.iter().map(bucket).collect())
}

/// A bucket of a tenant: its state, if it has one, and its rows.
#[derive(Default)]
pub(super) struct ListedBucket {
    pub state: Option<Stored>,
    pub members: Vec<Member>,
}

/// Lists all buckets of a tenant that have a state or rows.
pub(super) async fn list(
    db: &Db,
    tenant: TenantId,
) -> Result<BTreeMap<Bucket, ListedBucket>, Error> {
    let mut buckets: BTreeMap<Bucket, ListedBucket> = BTreeMap::new();
    for row in db.read(&LIST, &[&tenant.number]).await? {
        let number: i32 = row.get(0);
        let bucket = Bucket::from_number(i16::try_from(number).unwrap_or(i16::MAX));
        let listed = buckets.entry(bucket).or_default();
        let Some(kind) = row.get::<_, Option<String>>(1) else {
            let state = StateRow {
                tenant_number: tenant.number,
                bucket,
                generation: row.get(4),
                digest: row.get(5),
            };
            listed.state = Some((state, row.get(3)));
            continue;
        };
        listed.members.push(Member {
            kind,
            id: row.get(2),
            row_mac: row.get(3),
        });
    }
    Ok(buckets)
}

/// Lists the numbers of tenants that have states and no row of their own.
pub(crate) async fn list_orphans(db: &Db) -> Result<Vec<i32>, Error> {
    let rows = db.read(&LIST_ORPHANS, &[]).await?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}
