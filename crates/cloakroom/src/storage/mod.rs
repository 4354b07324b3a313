//! PostgreSQL and Redis: connections, deadlines, and what an answer or a silence means.

mod connection;
mod lease;
mod migrations;
mod redis;
mod server;
mod statement;
mod transaction;

use std::time::Duration;

use deadpool::managed::{Object, Pool, PoolError, Timeouts};
use tokio::time::error::Elapsed;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_postgres::Row;
use tokio_postgres::error::{DbError, Severity, SqlState};
use tokio_postgres::types::ToSql;

use self::connection::Connector;
pub use self::connection::{Connection, connect_once};
pub use self::lease::hold_lease;
pub use self::migrations::{MIGRATIONS, Migration, applied, check, grant, migrate};
pub use self::redis::{Away, Persistence, Redis, Script};
pub use self::server::{Session, clock_skew, session, settings};
pub use self::statement::Statement;
pub(crate) use self::statement::statements;
pub use self::transaction::Transaction;
use crate::config::Database;

/// Parameters of a statement, in order.
pub type Params<'a> = &'a [&'a (dyn ToSql + Sync)];

/// A standby is seldom asked.
const REPLICA_CONNECTIONS: usize = 2;

/// The pool of connections that every statement goes through.
///
/// What a statement keeps while it runs lies on the heap: it is large, and would be part of every request
/// that may have to ask the database, each of which is moved several times on its way.
#[derive(Clone)]
pub struct Db {
    pool: Pool<Connector>,
    read_deadline: Duration,
    write_deadline: Duration,
}

#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    #[error("the database address is not usable: {0}")]
    Address(String),
    #[error("the database cannot be reached: {0}")]
    Unavailable(String),
    #[error("the database did not answer {0} in time")]
    TooSlow(&'static str),
    /// The write may or may not have happened; nobody may say that it did.
    #[error("the outcome of {0} is unknown")]
    OutcomeUnknown(&'static str),
    /// Only the code and the constraint: the server's words may quote the row.
    #[error("the database refused {statement} ({code})")]
    Refused {
        statement: &'static str,
        code: String,
        constraint: Option<String>,
    },
    /// The server gave up a transaction, such as one of two that waited for each other, or an earlier
    /// statement of it had failed.
    #[error("the transaction was rolled back, so nothing was kept")]
    RolledBack,
    /// The answer has to be kept with the change that it tells of.
    #[error("the answer could not be made before the change")]
    Unanswerable,
    #[error("the address of Redis is not usable: {0}")]
    RedisAddress(String),
    #[error("{0}")]
    Migrations(String),
}

impl Error {
    /// One word for the log.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Address(_) | Self::Migrations(_) => "database_misconfigured",
            Self::RedisAddress(_) => "redis_misconfigured",
            Self::Unavailable(_) | Self::TooSlow(_) | Self::RolledBack => "database_unavailable",
            Self::OutcomeUnknown(_) => "outcome_unknown",
            Self::Refused { .. } => "database_refused",
            Self::Unanswerable => "answer_not_kept",
        }
    }

    /// Whether a write that failed so certainly did not happen.
    pub fn is_certain(&self) -> bool {
        !matches!(self, Self::OutcomeUnknown(_))
    }

    /// Whether the lease on a request with an idempotency key was lost to another one.
    pub fn is_lease_lost(&self) -> bool {
        matches!(self, Self::Refused { constraint: Some(hit), .. }
            if ["reply_pkey", "reply_has_lease"].contains(&hit.as_str()))
    }

    /// Whether the named unique constraint was hit.
    pub fn is_conflict(&self, constraint: &str) -> bool {
        matches!(self, Self::Refused { code, constraint: Some(hit), .. }
            if code == SqlState::UNIQUE_VIOLATION.code() && hit == constraint)
    }
}

impl Db {
    /// Prepares the pool; connections are made when they are first needed.
    pub fn open(config: &Database) -> Result<Self, Error> {
        Self::through(Connector::new(config)?, config.max_connections, config)
    }

    /// The same for a standby, if there is one: what it tells may be a moment old.
    pub fn open_replica(config: &Database) -> Result<Option<Self>, Error> {
        let Some(url) = &config.replica_url else {
            return Ok(None);
        };
        let connector = Connector::to_any(url, config)?;
        Self::through(connector, REPLICA_CONNECTIONS, config).map(Some)
    }

    fn through(connector: Connector, size: usize, config: &Database) -> Result<Self, Error> {
        let pool = Pool::builder(connector)
            .max_size(size)
            .timeouts(Timeouts {
                wait: Some(config.acquire_timeout),
                create: Some(config.connect_timeout),
                recycle: None,
            })
            .runtime(deadpool::Runtime::Tokio1)
            .build()
            .map_err(|error| Error::Address(error.to_string()))?;
        Ok(Self {
            pool,
            read_deadline: config.read_deadline,
            write_deadline: config.write_deadline,
        })
    }

    /// Runs a statement that changes nothing.
    pub async fn read(&self, statement: &Statement, params: Params<'_>) -> Result<Vec<Row>, Error> {
        Box::pin(self.run_read(statement, params)).await
    }

    async fn run_read(&self, statement: &Statement, params: Params<'_>) -> Result<Vec<Row>, Error> {
        let connection = self.connection().await?;
        let in_flight = InFlight::new(&connection);
        let answer = timeout(self.read_deadline, connection.query(statement, params)).await;
        match answer {
            Ok(answer) => {
                let rows = answer.map_err(|error| refusal(statement.name, &error))?;
                in_flight.landed();
                Ok(rows)
            }
            Err(_) => Err(Error::TooSlow(statement.name)),
        }
    }

    /// Runs a reading statement that finds one row at most.
    pub async fn read_optional(
        &self,
        statement: &Statement,
        params: Params<'_>,
    ) -> Result<Option<Row>, Error> {
        Ok(self.read(statement, params).await?.pop())
    }

    /// Runs one changing statement in a transaction of its own, in one round trip.
    ///
    /// Returns only after the commit was confirmed without a warning. A cancel request is never
    /// sent: past the deadline the connection is cut, and the outcome is unknown.
    pub async fn write(
        &self,
        statement: &Statement,
        params: Params<'_>,
    ) -> Result<Vec<Row>, Error> {
        Box::pin(self.run_write(statement, params)).await
    }

    async fn run_write(
        &self,
        statement: &Statement,
        params: Params<'_>,
    ) -> Result<Vec<Row>, Error> {
        let connection = self.connection().await?;
        let in_flight = InFlight::new(&connection);
        let warnings = connection.warnings();
        let deadline = Instant::now() + self.write_deadline;
        // Preparing changes nothing: only what is sent after it can have an unknown outcome.
        let prepared = timeout_at(deadline, connection.prepare(statement)).await;
        let prepared = prepared
            .map_err(|_| Error::TooSlow(statement.name))?
            .map_err(|error| refusal(statement.name, &error))?;
        let answer = timeout_at(deadline, connection.run_prepared(&prepared, params)).await;
        let rows = settle(&connection, statement.name, answer);
        if connection.warnings() != warnings {
            return Err(Error::OutcomeUnknown(statement.name));
        }
        // A refusal is an answer, too: the connection is as good as before.
        if matches!(rows, Ok(_) | Err(Error::Refused { .. } | Error::RolledBack)) {
            in_flight.landed();
        }
        rows
    }

    /// Starts a transaction for verbs that change several things at once.
    pub async fn begin(&self) -> Result<Transaction, Error> {
        let begun =
            async { Transaction::begin(self.connection().await?, self.write_deadline).await };
        Box::pin(begun).await
    }

    /// Lends a connection to work that changes nothing but needs several statements.
    pub async fn lend<T>(
        &self,
        work: impl AsyncFnOnce(&Connection) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let connection = self.connection().await?;
        let in_flight = InFlight::new(&connection);
        let done = timeout(self.read_deadline, work(&connection)).await;
        let value = done.map_err(|_| Error::TooSlow("an examination"))??;
        in_flight.landed();
        Ok(value)
    }

    /// Empties partitions of a table at once, without looking at their rows.
    pub async fn empty_partitions(&self, table: &'static str, slots: &[i16]) -> Result<(), Error> {
        const NAME: &str = "an emptying of partitions";
        if slots.is_empty() {
            return Ok(());
        }
        let connection = self.connection().await?;
        let in_flight = InFlight::new(&connection);
        let names: Vec<String> = slots.iter().map(|slot| format!("{table}_{slot}")).collect();
        let sql = format!("truncate table only {}", names.join(", only "));
        let answer = timeout(self.write_deadline, connection.run(&sql)).await;
        settle(&connection, NAME, answer)?;
        in_flight.landed();
        Ok(())
    }

    async fn connection(&self) -> Result<Object<Connector>, Error> {
        self.pool.get().await.map_err(|error| match error {
            PoolError::Backend(error) => error,
            PoolError::Timeout(_) => Error::Unavailable("no connection became free in time".into()),
            other => Error::Unavailable(other.to_string()),
        })
    }
}

/// A statement on its way. Dropped before it landed, it takes its connection along.
///
/// The caller may leave at any moment, and nobody else should wait behind what it left running.
struct InFlight<'a> {
    connection: &'a Connection,
    landed: bool,
}

impl<'a> InFlight<'a> {
    fn new(connection: &'a Connection) -> Self {
        Self {
            connection,
            landed: false,
        }
    }

    fn landed(mut self) {
        self.landed = true;
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        if !self.landed {
            self.connection.close();
        }
    }
}

/// Decides what is known about a write: done, refused, or unknown.
fn settle<T>(
    connection: &Connection,
    statement: &'static str,
    answer: Result<Result<T, tokio_postgres::Error>, Elapsed>,
) -> Result<T, Error> {
    match answer {
        Ok(Ok(value)) => Ok(value),
        // An ordinary error ends the transaction. A fatal one can come after the commit, while a
        // standby was waited for, and a lost connection says nothing at all.
        Ok(Err(error)) if is_ordinary(&error) => Err(refusal(statement, &error)),
        Ok(Err(_)) | Err(_) => {
            connection.close();
            Err(Error::OutcomeUnknown(statement))
        }
    }
}

/// Severities come in the server's language as well; only the parsed one can be relied on.
fn is_ordinary(error: &tokio_postgres::Error) -> bool {
    let severity = error.as_db_error().and_then(DbError::parsed_severity);
    severity == Some(Severity::Error)
}

/// Whether the server, rather than the statement, is the trouble: it stops, is full, or is a standby.
fn is_passing(code: &SqlState) -> bool {
    let class = code.code().get(..2);
    matches!(class, Some("08" | "53" | "57" | "58")) || *code == SqlState::READ_ONLY_SQL_TRANSACTION
}

fn refusal(statement: &'static str, error: &tokio_postgres::Error) -> Error {
    match error.as_db_error() {
        Some(db) if is_ordinary(error) && db.code().code().starts_with("40") => Error::RolledBack,
        Some(db) if !is_ordinary(error) || is_passing(db.code()) => {
            Error::Unavailable(format!("it answered {statement} with {}", db.code().code()))
        }
        Some(db) => Error::Refused {
            statement,
            code: db.code().code().to_owned(),
            constraint: db.constraint().map(str::to_owned),
        },
        None => Error::Unavailable(format!("the connection was lost during {statement}")),
    }
}
