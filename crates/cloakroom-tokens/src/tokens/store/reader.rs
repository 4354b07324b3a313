//! Batches reads of single tokens.
//!
//! A batch of one uses the statement that is fastest for a single row. Larger batches use one statement for all rows. If
//! a row makes it fail, the reads are repeated one by one.

use cloakroom_platform::batching::{BatchHandler, BatchLimits, Batcher};
use cloakroom_platform::config::Database;
use cloakroom_platform::storage::{Db, Error, Params, statements};
use futures_util::future::join_all;
use tokio_postgres::Row;
use uuid::Uuid;

use super::FIND;
use super::columns::{READ_COLUMNS, SEALED, token_columns};

statements! {
    // `tokens::find` for several tokens of several tenants. Large rows are returned without their data and fetched one
    // by one, so that they do not delay the rest of the batch.
    //
    // The lateral join forces one index lookup per key regardless of statistics: the plan is cached, possibly from when
    // the table was empty.
    FIND_MANY: "tokens::find_many" = concat!(
        "select found.*, asked.position
        from unnest($1::integer[], $2::uuid[]) with ordinality as asked (tenant_id, token_id, position)
        cross join lateral (
            select ", token_columns!("case when octet_length(token.sealed) <= 65536 then token.sealed end"), "
            from token
            where token.tenant_id = asked.tenant_id
              and token.token_id = asked.token_id
              and (token.expires_at is null or token.expires_at > now())
            offset 0
        ) as found"
    );
}

/// Batches reads of single tokens.
pub(crate) type TokenReadBatcher = Batcher<TokenReader>;

/// Finds tokens by their keys.
pub(crate) struct TokenReader {
    db: Db,
}

impl TokenReader {
    pub(crate) fn batched(db: &Db, settings: &Database) -> TokenReadBatcher {
        Batcher::new(Self { db: db.clone() }, limits(settings))
    }

    async fn find(&self, token_key: &TokenKey) -> Result<Option<Row>, Error> {
        let params: Params<'_> = &[&token_key.tenant, &token_key.key];
        self.db.read_optional(&FIND, params).await
    }
}

/// The key of a token to read.
pub(crate) struct TokenKey {
    pub tenant: i32,
    pub key: Uuid,
}

impl BatchHandler for TokenReader {
    type Item = TokenKey;
    /// A row of `token_columns!`.
    type Output = Result<Option<Row>, Error>;

    const NAME: &'static str = "token_reads";

    async fn process(&self, items: Vec<TokenKey>) -> Vec<Self::Output> {
        if let [token_key] = &items[..] {
            return vec![self.find(token_key).await];
        }
        let (tenants, keys): (Vec<i32>, Vec<Uuid>) = items
            .iter()
            .map(|token_key| (token_key.tenant, token_key.key))
            .unzip();
        match self.db.read(&FIND_MANY, &[&tenants, &keys]).await {
            Ok(rows) => {
                let mut found: Vec<Self::Output> = items.iter().map(|_| Ok(None)).collect();
                for row in rows {
                    let position = usize::try_from(row.get::<_, i64>(READ_COLUMNS) - 1);
                    let position = position.unwrap_or(usize::MAX);
                    if let Some(output) = found.get_mut(position) {
                        *output = match row.get::<_, Option<&[u8]>>(SEALED) {
                            Some(_) => Ok(Some(row)),
                            None => self.find(&items[position]).await,
                        };
                    }
                }
                found
            }
            // One row that makes the statement fail must not fail the others.
            Err(Error::Rejected { .. }) => {
                join_all(items.iter().map(|token_key| self.find(token_key))).await
            }
            Err(error) => items.iter().map(|_| Err(error.clone())).collect(),
        }
    }
}

pub(super) fn queue_full() -> Error {
    Error::Unavailable("timed out waiting for a batched statement".into())
}

pub(super) fn limits(settings: &Database) -> BatchLimits {
    BatchLimits::for_statements(settings.max_connections, settings.acquire_timeout)
}
