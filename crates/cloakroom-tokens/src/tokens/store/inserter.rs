//! Batches inserts of tokens.
//!
//! A batch of one uses the statement that is fastest for a single row. Larger batches use one statement for all rows,
//! which is atomic. If a row makes it fail, the inserts are repeated in halves.

use cloakroom_core::audit::{AuditedStatement, ChainWriters, Entry};
use cloakroom_platform::batching::{BatchError, BatchHandler, Batcher};
use cloakroom_platform::config::Database;
use cloakroom_platform::ids::TenantId;
use cloakroom_platform::storage::Error;
use futures_util::future::join;

use super::change::{SealedToken, WriteContext};
use super::columns::WriteRow;
use super::insert::{insert, insert_many};
use super::reader::{limits, queue_full};

/// Batches inserts of tokens.
///
/// A client can choose an id or claim a fingerprint that exists already. Inserts that can conflict are batched
/// separately, so that a conflict fails only its own batch.
pub(crate) struct TokenInsertBatchers {
    conflict_free: Batcher<TokenInserter>,
    may_conflict: Batcher<TokenInserter>,
}

impl TokenInsertBatchers {
    pub(crate) fn new(writers: &ChainWriters, settings: &Database) -> Self {
        let batcher = || {
            let writers = writers.clone();
            Batcher::new(TokenInserter { writers }, limits(settings))
        };
        Self {
            conflict_free: batcher(),
            may_conflict: batcher(),
        }
    }

    /// Inserts a token; false if its expiry has passed.
    pub(crate) async fn insert(&self, new: PendingInsert) -> Result<bool, Error> {
        let batcher = match new.token.has_chosen_id || new.token.claims {
            true => &self.may_conflict,
            false => &self.conflict_free,
        };
        batcher.process(new).await.unwrap_or_else(|error| {
            Err(match error {
                BatchError::QueueFull => queue_full(),
                BatchError::OutcomeUnknown => Error::OutcomeUnknown("a batched insert"),
            })
        })
    }
}

/// Inserts new tokens.
pub(super) struct TokenInserter {
    writers: ChainWriters,
}

/// A token to insert, with the parameters that accompany it.
pub(crate) struct PendingInsert {
    pub tenant: TenantId,
    pub token: SealedToken,
    pub context: WriteContext,
    /// The response stored for an idempotency key.
    pub response_rows: Vec<String>,
}

impl BatchHandler for TokenInserter {
    type Item = PendingInsert;
    type Output = Result<bool, Error>;

    const NAME: &'static str = "token_writes";

    fn size_bytes(new: &PendingInsert) -> usize {
        let attributes = &new.token.attributes;
        let texts = [
            &attributes.mask,
            &attributes.metadata,
            &attributes.search_indexes,
        ];
        let texts = texts.map(|text| text.as_ref().map_or(0, String::len));
        let response_rows = new.response_rows.iter().map(String::len);
        let events = new.token.entries.iter().map(Entry::event_bytes);
        new.token.sealed.len()
            + texts.iter().sum::<usize>()
            + response_rows.sum::<usize>()
            + events.sum::<usize>()
    }

    async fn process(&self, items: Vec<PendingInsert>) -> Vec<Self::Output> {
        self.insert_all(&items).await
    }
}

impl TokenInserter {
    /// Inserts all items in one statement. If an item makes it fail, retries each half, recursively.
    async fn insert_all(&self, items: &[PendingInsert]) -> Vec<Result<bool, Error>> {
        if let [new] = items {
            return vec![self.insert(new).await];
        }
        match self.insert_many(items).await {
            Ok(true) => items.iter().map(|_| Ok(true)).collect(),
            Ok(false) | Err(Error::Rejected { .. } | Error::RolledBack | Error::StaleKey) => {
                let (left, right) = items.split_at(items.len() / 2);
                let halves = join(
                    Box::pin(self.insert_all(left)),
                    Box::pin(self.insert_all(right)),
                );
                let (mut left, right) = halves.await;
                left.extend(right);
                left
            }
            Err(error) => items.iter().map(|_| Err(error.clone())).collect(),
        }
    }

    async fn insert(&self, new: &PendingInsert) -> Result<bool, Error> {
        let (entries, responses) = (&new.token.entries, new.response_rows.clone());
        let change = AuditedStatement::of_batch(&self.writers, entries, responses).await?;
        insert(change, new.tenant, &new.token, new.context).await
    }

    async fn insert_many(&self, all: &[PendingInsert]) -> Result<bool, Error> {
        // A fixed order avoids deadlocks between batches with the same keys.
        let mut all: Vec<&PendingInsert> = all.iter().collect();
        all.sort_by_key(|new| (new.tenant.number, *new.token.id.key()));
        let entries: Vec<&Entry> = all.iter().flat_map(|new| &new.token.entries).collect();
        // Leases end in a fixed order across tenants, also to avoid deadlocks.
        let responses = all.iter().flat_map(|new| new.response_rows.clone());
        let mut responses: Vec<String> = responses.collect();
        responses.sort_unstable();
        let rows: Vec<WriteRow<'_>> = all
            .iter()
            .map(|new| WriteRow::encode(new.tenant, &new.token, new.context))
            .collect();
        let change = AuditedStatement::of_batch(&self.writers, entries, responses).await?;
        insert_many(change, &rows).await
    }
}
