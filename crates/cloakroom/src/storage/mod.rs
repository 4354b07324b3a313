//! PostgreSQL: connections, deadlines, and what an answer or a silence of the database means.

mod connection;
mod migrations;
mod server;
mod statement;
mod transaction;

use std::time::Duration;

use deadpool::managed::{Object, Pool, PoolError, Timeouts};
use tokio_postgres::Row;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;

use self::connection::Connector;
pub use self::connection::{Connection, connect_once};
pub use self::migrations::{MIGRATIONS, Migration, applied, check, grant, migrate};
pub use self::server::{Role, clock_skew, role, settings};
pub use self::statement::Statement;
pub(crate) use self::statement::statements;
pub use self::transaction::Transaction;
use crate::config::Database;

/// Parameters of a statement, in order.
pub type Params<'a> = &'a [&'a (dyn ToSql + Sync)];

/// The pool of connections that every statement goes through.
#[derive(Clone)]
pub struct Db {
    pool: Pool<Connector>,
    read_deadline: Duration,
    write_deadline: Duration,
}

#[derive(Debug, thiserror::Error)]
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
    #[error("{0}")]
    Migrations(String),
}

impl Error {
    /// Whether the named unique constraint was hit.
    pub fn is_conflict(&self, constraint: &str) -> bool {
        matches!(self, Self::Refused { code, constraint: Some(hit), .. }
            if code == SqlState::UNIQUE_VIOLATION.code() && hit == constraint)
    }
}

impl Db {
    /// Prepares the pool; connections are made when they are first needed.
    pub fn open(config: &Database) -> Result<Self, Error> {
        let connector = Connector::new(config)?;
        let pool = Pool::builder(connector)
            .max_size(config.max_connections)
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
        let connection = self.connection().await?;
        match tokio::time::timeout(self.read_deadline, connection.query(statement, params)).await {
            Ok(answer) => answer.map_err(|error| refusal(statement.name, &error)),
            Err(_) => {
                connection.close();
                Err(Error::TooSlow(statement.name))
            }
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
        let connection = self.connection().await?;
        let warnings = connection.warnings();
        let answer =
            tokio::time::timeout(self.write_deadline, connection.query(statement, params)).await;
        let rows = settle(&connection, statement.name, answer)?;
        if connection.warnings() != warnings {
            connection.close();
            return Err(Error::OutcomeUnknown(statement.name));
        }
        Ok(rows)
    }

    /// Starts a transaction for verbs that change several things at once.
    pub async fn begin(&self) -> Result<Transaction, Error> {
        Transaction::begin(self.connection().await?, self.write_deadline).await
    }

    /// A connection for work that does not fit `read` and `write`: migrations and examinations.
    pub async fn connection(&self) -> Result<Object<Connector>, Error> {
        self.pool.get().await.map_err(|error| match error {
            PoolError::Backend(error) => error,
            PoolError::Timeout(_) => Error::Unavailable("no connection became free in time".into()),
            other => Error::Unavailable(other.to_string()),
        })
    }
}

/// Decides what is known about a write: done, refused, or unknown.
fn settle<T>(
    connection: &Connection,
    statement: &'static str,
    answer: Result<Result<T, tokio_postgres::Error>, tokio::time::error::Elapsed>,
) -> Result<T, Error> {
    match answer {
        Ok(Ok(value)) => Ok(value),
        // An ordinary error ends the transaction. A fatal one can come after the commit, while a
        // standby was waited for, and a lost connection says nothing at all.
        Ok(Err(error))
            if error
                .as_db_error()
                .is_some_and(|db| db.severity() == "ERROR") =>
        {
            Err(refusal(statement, &error))
        }
        Ok(Err(_)) | Err(_) => {
            connection.close();
            Err(Error::OutcomeUnknown(statement))
        }
    }
}

fn refusal(statement: &'static str, error: &tokio_postgres::Error) -> Error {
    match error.as_db_error() {
        Some(db) => Error::Refused {
            statement,
            code: db.code().code().to_owned(),
            constraint: db.constraint().map(str::to_owned),
        },
        None => Error::Unavailable(format!("the connection was lost during {statement}")),
    }
}
