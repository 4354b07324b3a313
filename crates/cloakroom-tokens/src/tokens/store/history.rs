//! Statements that read tokens together with their last entries in the audit log.

use cloakroom_core::audit::{EntityKind, Operation};
use cloakroom_platform::ids;
use cloakroom_platform::storage::{Connection, Error, Params, statements};
use futures_util::{Stream, StreamExt as _, TryStreamExt as _};
use jiff::Timestamp;
use tokio_postgres::Row;
use uuid::Uuid;

use crate::tokens::freshness::Scope;

/// The entities and the operations of entries that concern the existence or the row of a token.
const ENTITIES: [i16; 3] = [
    EntityKind::Token as i16,
    EntityKind::Card as i16,
    EntityKind::Bank as i16,
];
const OPERATIONS: [i16; 4] = [
    Operation::Create as i16,
    Operation::Update as i16,
    Operation::Delete as i16,
    Operation::Expire as i16,
];

statements! {
    // All tokens of all tenants, and entries without a token unless their tenant is deleted. The database sorts the
    // entries on disk, so that memory is bounded.
    LIST_ALL: "tokens::list_histories" =
        "with last_entry as (
            select distinct on (tenant_id, entity_id) tenant_id, entity_id, operation, created_at
            from log
            where entity_kind = any($1::smallint[])
              and operation = any($2::smallint[])
            order by tenant_id, entity_id, created_at desc, chain desc, seq desc
        )
        select coalesce(token.tenant_id, last_entry.tenant_id),
               coalesce(token.alias, token.token_id::text, last_entry.entity_id),
               coalesce(token.modified_at, token.created_at), last_entry.operation,
               last_entry.created_at
        from token
        full join last_entry
          on last_entry.tenant_id = token.tenant_id
         and last_entry.entity_id = coalesce(token.alias, token.token_id::text)
        where token.token_id is not null
           or last_entry.tenant_id in (
               select tenant_id
               from tenant
               where deleted_at is null
           )";
    // Tokens before and after a place, one lookup each.
    LIST_SAMPLE: "tokens::sample_histories" =
        "select token.tenant_id, coalesce(token.alias, token.token_id::text),
               coalesce(token.modified_at, token.created_at), last_entry.operation,
               last_entry.created_at
        from (
            (
                select tenant_id, token_id, alias, created_at, modified_at
                from token
                where (tenant_id, token_id) >= ($3, $4)
                order by tenant_id, token_id
                limit $5
            )
            union all
            (
                select tenant_id, token_id, alias, created_at, modified_at
                from token
                where (tenant_id, token_id) < ($3, $4)
                order by tenant_id desc, token_id desc
                limit $5
            )
        ) token
        left join lateral (
            select operation, created_at
            from log
            where log.tenant_id = token.tenant_id
              and log.entity_id = coalesce(token.alias, token.token_id::text)
              and log.entity_kind = any($1::smallint[])
              and log.operation = any($2::smallint[])
            order by created_at desc, chain desc, seq desc
            limit 1
        ) last_entry on true";
    // To choose a random place of a sample.
    LAST_TENANT: "tokens::last_tenant" =
        "select coalesce(max(tenant_id), 1)
        from token";
}

/// A row of `token`, and the last entry of the token in the audit log.
pub(crate) struct TokenHistory {
    pub tenant_number: i32,
    pub token_id: String,
    /// When the row was written; `None` if there is none.
    pub written_at: Option<Timestamp>,
    /// Its operation and time.
    pub last_entry: Option<(i16, Timestamp)>,
}

impl TokenHistory {
    fn decode(row: &Row) -> Self {
        let (operation, at): (Option<i16>, Option<Timestamp>) = (row.get(3), row.get(4));
        Self {
            tenant_number: row.get(0),
            token_id: row.get(1),
            written_at: row.get(2),
            last_entry: operation.zip(at),
        }
    }
}

/// Reads the histories of tokens.
pub(crate) async fn stream_histories(
    connection: &Connection,
    scope: Scope,
) -> Result<impl Stream<Item = Result<TokenHistory, Error>> + use<>, Error> {
    let (entities, operations) = (&ENTITIES[..], &OPERATIONS[..]);
    let rows = match scope {
        Scope::All => {
            let rows = connection
                .stream(&LIST_ALL, &[&entities, &operations])
                .await?;
            rows.left_stream()
        }
        Scope::Sample(size) => {
            let (tenant, token) = random_place(connection).await?;
            let limit = i64::from(size);
            let params: Params<'_> = &[&entities, &operations, &tenant, &token, &limit];
            connection
                .stream(&LIST_SAMPLE, params)
                .await?
                .right_stream()
        }
    };
    Ok(rows.map_ok(|row| TokenHistory::decode(&row)))
}

/// A random tenant number and token id.
async fn random_place(connection: &Connection) -> Result<(i32, Uuid), Error> {
    let rows = connection.stream(&LAST_TENANT, &[]).await?;
    let rows: Vec<Row> = rows.try_collect().await?;
    let last: i32 = rows.first().map_or(1, |row| row.get(0));
    let id = ids::new_uuid();
    let (random, _) = id.as_u64_pair();
    let tenant = i32::try_from(random % u64::from(last.unsigned_abs().max(1))).unwrap_or_default();
    Ok((tenant + 1, ids::new_uuid()))
}
