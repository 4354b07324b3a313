//! SQL statements of the scans that prove that nothing depends on a version of a key.

use cloakroom_platform::ids::TenantId;
use cloakroom_platform::storage::{Db, Error, Params, Statement, statements};
use jiff::Timestamp;
use tokio_postgres::Row;
use uuid::Uuid;

/// Counts a page of a tenant's rows, and those that are sealed under a version. Large values are not read as a whole.
macro_rules! count_page {
    ($table:literal, $id:literal, $sealed:literal) => {
        concat!(
            "with page as materialized (
            select ",
            $id,
            " as id, substring(",
            $sealed,
            " from 3 for 4) as version
            from ",
            $table,
            "
            where tenant_id = $1
              and ",
            $id,
            " > $2
            order by ",
            $id,
            "
            limit $3
        )
        select count(*), count(*) filter (where version = int4send($4)),
               (select id from page order by id desc limit 1)
        from page"
        )
    };
}

statements! {
    COUNT_TOKENS: "rotation::count_tokens" = count_page!("token", "token_id", "sealed");
    COUNT_INTENTS: "rotation::count_intents" = count_page!("token_intent", "intent_id", "sealed");
    COUNT_CLIENT_KEYS: "rotation::count_client_keys" = count_page!("client_key", "key_id", "sealed");
    COUNT_THREEDS: "rotation::count_threeds" =
        count_page!("threeds_session", "session_id", "sealed");
    COUNT_CHECKOUTS: "rotation::count_checkouts" =
        count_page!("checkout_session", "session_id", "sealed");
    COUNT_PROXIES: "rotation::count_proxies" = count_page!("proxy", "proxy_id", "sealed");
    COUNT_WEBHOOKS: "rotation::count_webhooks" = count_page!("webhook", "webhook_id", "secret");
    // Stored responses expire by themselves; whether one is left is all that matters.
    COUNT_RESPONSES: "rotation::count_responses" =
        "select 0::bigint, count(*), null::uuid
        from (
            select
            from reply
            where tenant_id = $1
              and substring(sealed from 3 for 4) = int4send($2)
            limit 1
        ) found";
    // Responses and leases of requests that were started before `$2`, which is later than every request under the old key.
    COUNT_REQUESTS: "rotation::count_requests" =
        "select 0::bigint, count(*), null::uuid
        from (
            select
            from reply
            where tenant_id = $1
              and until > now()
              and until < $2
            union all
            select
            from reply_lease
            where tenant_id = $1
              and until > now()
              and until < $2
            limit 1
        ) found";
}

/// Tables with data that is sealed under the data key, in the order in which they are rewritten.
pub(in crate::rotation) const TABLES: [(&str, &Statement); 7] = [
    ("token", &COUNT_TOKENS),
    ("token_intent", &COUNT_INTENTS),
    ("client_key", &COUNT_CLIENT_KEYS),
    ("threeds_session", &COUNT_THREEDS),
    ("checkout_session", &COUNT_CHECKOUTS),
    ("proxy", &COUNT_PROXIES),
    ("webhook", &COUNT_WEBHOOKS),
];

/// A page of rows: how many, how many under the version, and the last id.
pub(in crate::rotation) struct CountedPage {
    pub rows: u64,
    pub found: u64,
    pub last: Option<Uuid>,
}

/// Counts up to `limit` rows after an id, with a statement of [`TABLES`].
pub(in crate::rotation) async fn count_page(
    db: &Db,
    statement: &Statement,
    (tenant, version): (TenantId, u32),
    after: Uuid,
    limit: i64,
) -> Result<CountedPage, Error> {
    let params: Params<'_> = &[&tenant.number, &after, &limit, &version.cast_signed()];
    Ok(CountedPage::read(
        db.read_optional(statement, params).await?.as_ref(),
    ))
}

/// Whether a response is stored under the version.
pub(in crate::rotation) async fn count_responses(
    db: &Db,
    tenant: TenantId,
    version: u32,
) -> Result<CountedPage, Error> {
    let params: Params<'_> = &[&tenant.number, &version.cast_signed()];
    let row = db.read_optional(&COUNT_RESPONSES, params).await?;
    Ok(CountedPage::read(row.as_ref()))
}

/// Whether a response or a lease is stored that ends after now and before a time.
pub(in crate::rotation) async fn any_requests(
    db: &Db,
    tenant: TenantId,
    before: Timestamp,
) -> Result<bool, Error> {
    let params: Params<'_> = &[&tenant.number, &before];
    let row = db.read_optional(&COUNT_REQUESTS, params).await?;
    Ok(CountedPage::read(row.as_ref()).found > 0)
}

impl CountedPage {
    fn read(row: Option<&Row>) -> Self {
        let count = |index| row.map_or(0, |row| row.get::<_, i64>(index)).unsigned_abs();
        Self {
            rows: count(0),
            found: count(1),
            last: row.and_then(|row| row.get(2)),
        }
    }
}
