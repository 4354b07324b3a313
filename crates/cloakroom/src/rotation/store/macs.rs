//! SQL statements of the scan that proves that no MAC was made by a version of the control key.

use cloakroom_platform::storage::{Db, Error, Params, Statement, statements};
use cloakroom_webhooks::deliveries::RenewedUntil;

/// Counts rows, and those whose MAC names a version. Rows of deleted tenants grant nothing and are being deleted.
macro_rules! count_macs {
    ($table:literal, $mac:literal) => {
        count_macs!(
            $table,
            $mac,
            "
        where not exists (
            select
            from tenant
            where tenant.tenant_id = stored.tenant_id
              and deleted_at is not null
        )"
        )
    };
    ($table:literal, $mac:literal, $condition:literal) => {
        concat!(
            "select count(*), count(*) filter (where substring(",
            $mac,
            " from 1 for 4) = int4send($1))
        from ",
            $table,
            " stored",
            $condition
        )
    };
}

statements! {
    COUNT_STATES: "rotation::count_states" = count_macs!("access_state", "row_mac", "");
    COUNT_TENANTS: "rotation::count_tenants" = count_macs!("tenant", "row_mac", "");
    COUNT_DELETIONS: "rotation::count_deletions" = count_macs!("tenant_deletion", "row_mac");
    COUNT_BRANDINGS: "rotation::count_brandings" = count_macs!("branding", "row_mac");
    COUNT_WEBHOOK_MACS: "rotation::count_webhook_macs" = count_macs!("webhook", "row_mac");
    COUNT_EXPORTS: "rotation::count_exports" = count_macs!("export_request", "row_mac");
    COUNT_APPLICATIONS: "rotation::count_applications" = count_macs!("application", "row_mac");
    COUNT_API_KEYS: "rotation::count_api_keys" = count_macs!("application_key", "row_mac");
    COUNT_PROXY_MACS: "rotation::count_proxy_macs" = count_macs!("proxy", "row_mac");
    COUNT_BATCHES: "rotation::count_batches" = count_macs!("import_batch", "row_mac");
    COUNT_SESSIONS: "rotation::count_sessions" =
        count_macs!("session", "row_mac", "
        where expires_at > now()");
    COUNT_BIN_TABLES: "rotation::count_bin_tables" =
        count_macs!("bin_table", "digest", "
        where is_current");
    COUNT_BIN_CHUNKS: "rotation::count_bin_chunks" =
        count_macs!("bin_chunk", "digest", "
        where version = (
            select version
            from bin_table
            where is_current
        )");
    COUNT_RANGES: "rotation::count_ranges" =
        count_macs!("card_range_table", "digest", "
        where version > 0");
    // Rows of all tenants, in the order of their primary key.
    COUNT_EVENTS: "rotation::count_events" =
        "with page as materialized (
            select tenant_id, event_id, webhook_id, substring(mac from 1 for 4) as version
            from webhook_delivery
            where (tenant_id, event_id, webhook_id) > ($2, $3, $4)
            order by tenant_id, event_id, webhook_id
            limit $5
        ), counted as (
            select count(*) as rows, count(*) filter (where version = int4send($1)) as found
            from page
        )
        select rows, found, last.tenant_id, last.event_id, last.webhook_id
        from counted
        left join (
            select tenant_id, event_id, webhook_id
            from page
            order by tenant_id desc, event_id desc, webhook_id desc
            limit 1
        ) last on true";
}

/// All tables with MACs but that of events, which has many rows.
const TABLES: [(&str, &Statement); 14] = [
    ("access_state", &COUNT_STATES),
    ("tenant", &COUNT_TENANTS),
    ("tenant_deletion", &COUNT_DELETIONS),
    ("branding", &COUNT_BRANDINGS),
    ("webhook", &COUNT_WEBHOOK_MACS),
    ("export_request", &COUNT_EXPORTS),
    ("application", &COUNT_APPLICATIONS),
    ("application_key", &COUNT_API_KEYS),
    ("proxy", &COUNT_PROXY_MACS),
    ("import_batch", &COUNT_BATCHES),
    ("session", &COUNT_SESSIONS),
    ("bin_table", &COUNT_BIN_TABLES),
    ("bin_chunk", &COUNT_BIN_CHUNKS),
    ("card_range_table", &COUNT_RANGES),
];

/// Rows of each table, and how many of all have a MAC by the version. Without events.
pub(in crate::rotation) async fn count_macs(
    db: &Db,
    version: u32,
) -> Result<(Vec<(&'static str, u64)>, u64), Error> {
    let (mut scanned, mut found) = (Vec::new(), 0);
    for (table, statement) in TABLES {
        let row = db
            .read_optional(statement, &[&version.cast_signed()])
            .await?;
        let count = |index| {
            row.as_ref()
                .map_or(0, |row| row.get::<_, i64>(index).unsigned_abs())
        };
        scanned.push((table, count(0)));
        found += count(1);
    }
    Ok((scanned, found))
}

/// Counts a page of events like [`count_macs`]; `after` becomes the last one. `None` if there is none.
pub(in crate::rotation) async fn count_events(
    db: &Db,
    version: u32,
    after: &mut RenewedUntil,
    limit: i64,
) -> Result<Option<(u64, u64)>, Error> {
    let (version, from) = (version.cast_signed(), *after);
    let params: Params<'_> = &[&version, &from.tenant, &from.event, &from.webhook, &limit];
    let row = db.read_optional(&COUNT_EVENTS, params).await?;
    Ok(row.and_then(|row| {
        *after = RenewedUntil {
            tenant: row.get::<_, Option<i32>>(2)?,
            event: row.get(3),
            webhook: row.get(4),
        };
        let count = |index| row.get::<_, i64>(index).unsigned_abs();
        Some((count(0), count(1)))
    }))
}
