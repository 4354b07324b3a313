//! Changes that cannot commit without audit entries: a transaction, or a single statement.

use std::ops::Deref;

use cloakroom_platform::storage::{Db, Error, Params, Statement, Transaction};
use tokio_postgres::Row;

use super::chain::ChainWriter;
use super::entry::{Entry, encode_events, encode_reads};
use super::{Audit, ChainWriters, store};
use crate::idempotency::PendingResponse;
use crate::keys::ControlKey;

/// An open transaction and the chain writer for its audit entries.
pub struct AuditedTransaction<'a> {
    transaction: Transaction,
    writer: ChainWriter<'a>,
    /// Authenticates the events.
    key: &'a ControlKey,
}

/// Starts a transaction whose commit is recorded in the audit log.
///
/// ```ignore
/// let transaction = audit::begin(&vault.audit).await?;
/// store::insert_application(&transaction, &row).await?;
/// let entry = Entry::new(caller, Operation::Create, EntityKind::Application, row.id);
/// transaction.commit(&[entry]).await?;
/// ```
pub async fn begin(audit: &Audit) -> Result<AuditedTransaction<'_>, Error> {
    // The chain writer is always acquired first: holding a connection while waiting for one could
    // deadlock.
    let writer = audit.chain_writer().await?;
    let transaction = audit.writers.db.begin().await?;
    Ok(AuditedTransaction {
        transaction,
        writer,
        key: &audit.writers.key,
    })
}

impl Deref for AuditedTransaction<'_> {
    type Target = Transaction;

    fn deref(&self) -> &Transaction {
        &self.transaction
    }
}

impl AuditedTransaction<'_> {
    /// Commits the transaction together with its audit entries.
    pub async fn commit(self, entries: &[Entry]) -> Result<(), Error> {
        self.commit_with(entries, PendingResponse::default()).await
    }

    /// Like [`Self::commit`], and stores the response for the request's idempotency key.
    pub async fn commit_with(
        mut self,
        entries: &[Entry],
        response: PendingResponse<'_>,
    ) -> Result<(), Error> {
        let rows = self.writer.append(entries);
        let events = encode_events(self.key, entries);
        let written = match response.rows(&encode_reads(entries)) {
            Ok(responses) => {
                store::insert_within(&self.transaction, &rows, &responses, &events).await
            }
            Err(error) => Err(error),
        };
        if let Err(error) = written {
            self.transaction.roll_back().await;
            self.writer.discard();
            return Err(error);
        }
        let committed = self.transaction.commit().await;
        self.writer.commit_if_written(&committed, |()| true);
        if committed.is_ok() {
            response.mark_stored();
        }
        committed
    }

    /// Rolls back the transaction.
    pub async fn roll_back(self) {
        self.transaction.roll_back().await;
        self.writer.discard();
    }
}

/// Inserts the audit entries and events of a change and stores its response, if the CTE `$done` wrote a row.
///
/// For statements of [`AuditedStatement`], whose last three parameters are the entries, the responses and the events:
/// `audited!("fresh", entries = "$9", responses = "$10", events = "$11")`.
#[macro_export]
macro_rules! audited {
    ($done:literal, entries = $entries:expr, responses = $responses:expr, events = $events:expr) => {
        concat!(
            $crate::insert_response!($responses, $done),
            ", ",
            $crate::logged!($entries, $done),
            ", ",
            $crate::insert_events!($events, $done)
        )
    };
}
pub use crate::audited;

/// A connection for exactly one statement, which must contain `audited!`.
pub struct AuditedStatement<'a> {
    connection: Connection<'a>,
    entries: Vec<String>,
    responses: Vec<String>,
    events: Vec<String>,
}

enum Connection<'a> {
    /// The statement commits by itself. Boxed, because it is much larger.
    Single(Box<SingleStatement<'a>>),
    /// The transaction inserts the audit entries and events and stores the response when it commits.
    Within(&'a Transaction),
}

struct SingleStatement<'a> {
    db: &'a Db,
    writer: ChainWriter<'a>,
    /// Its lease ends with the commit.
    response: PendingResponse<'a>,
}

/// Starts a change that consists of one statement.
///
/// ```ignore
/// let change = audit::begin_statement(&vault.audit, &[entry], response).await?;
/// store::insert(change, &row).await?;
/// ```
pub async fn begin_statement<'a>(
    audit: &'a Audit,
    entries: &[Entry],
    response: PendingResponse<'a>,
) -> Result<AuditedStatement<'a>, Error> {
    let responses = response.rows(&encode_reads(entries))?;
    AuditedStatement::single(audit.chain_writers(), entries, responses, response).await
}

impl<'a> AuditedStatement<'a> {
    /// Starts a statement that makes the changes of several requests. Their responses are encrypted already, and each
    /// request ends its own lease.
    pub async fn of_batch<'e>(
        writers: &'a ChainWriters,
        entries: impl IntoIterator<Item = &'e Entry>,
        responses: Vec<String>,
    ) -> Result<Self, Error> {
        Self::single(writers, entries, responses, PendingResponse::default()).await
    }

    /// A statement of a transaction that consists of several.
    pub fn within(transaction: &'a AuditedTransaction<'_>) -> Self {
        Self {
            connection: Connection::Within(transaction),
            entries: Vec::new(),
            responses: Vec::new(),
            events: Vec::new(),
        }
    }

    async fn single<'e>(
        writers: &'a ChainWriters,
        entries: impl IntoIterator<Item = &'e Entry>,
        responses: Vec<String>,
        response: PendingResponse<'a>,
    ) -> Result<Self, Error> {
        // Acquired first, as in `begin`.
        let mut writer = writers.acquire().await?;
        let entries: Vec<&Entry> = entries.into_iter().collect();
        let events = encode_events(&writers.key, entries.iter().copied());
        let entries = writer.append(entries);
        let single = SingleStatement {
            db: &writers.db,
            writer,
            response,
        };
        Ok(Self {
            connection: Connection::Single(Box::new(single)),
            entries,
            responses,
            events,
        })
    }

    /// Runs the statement with `params`, the audit entries, the responses and the events. The change was made if it returns rows.
    pub async fn run(self, statement: &Statement, params: Params<'_>) -> Result<Vec<Row>, Error> {
        let mut params = params.to_vec();
        params.extend_from_slice(&[&self.entries, &self.responses, &self.events]);
        let single = match self.connection {
            Connection::Within(transaction) => return transaction.run(statement, &params).await,
            Connection::Single(single) => *single,
        };
        let written = single.db.write(statement, &params).await;
        single
            .writer
            .commit_if_written(&written, |rows| !rows.is_empty());
        let rows = written?;
        if !rows.is_empty() {
            single.response.mark_stored();
        }
        Ok(rows)
    }
}
