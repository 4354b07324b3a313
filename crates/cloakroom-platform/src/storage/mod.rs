//! PostgreSQL and Redis: connections, deadlines, and the classification of failures.

mod composite;
mod connection;
mod database_clock;
mod db;
mod lease;
mod migrations;
mod redis;
mod server;
mod statement;
mod transaction;

use tokio::time::error::Elapsed;
use tokio_postgres::error::{DbError, Severity, SqlState};
use tokio_postgres::types::ToSql;

pub use self::composite::quote_field;
pub use self::connection::{Connection, connect_once};
pub use self::database_clock::{DatabaseClock, STATEMENTS};
pub use self::db::{Db, PoolStatus};
pub use self::lease::hold_lease;
pub use self::migrations::{
    MIGRATIONS, Migration, applied, check, grant, migrate, set_log_retention,
};
pub use self::redis::{Persistence, Redis, RedisUnavailable, Script};
pub use self::server::{Session, clock_skew, foreign_objects, session, settings};
pub use self::statement::{Statement, statements};
pub use self::transaction::Transaction;

/// Parameters of a statement, in order.
pub type Params<'a> = &'a [&'a (dyn ToSql + Sync)];

#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    #[error("the database URL is invalid: {0}")]
    Address(String),
    #[error("the database cannot be reached: {0}")]
    Unavailable(String),
    #[error("the database did not complete {0} in time")]
    TooSlow(&'static str),
    /// The write may or may not have been committed. It must not be acknowledged.
    #[error("the outcome of {0} is unknown")]
    OutcomeUnknown(&'static str),
    /// Contains only the SQLSTATE and the constraint: the server's message may quote the row.
    #[error("the database rejected {statement} ({code})")]
    Rejected {
        statement: &'static str,
        code: String,
        constraint: Option<String>,
    },
    /// A value was encrypted under a key that was replaced meanwhile. Nothing was stored: encrypt again with current keys.
    #[error("a value was encrypted under a key that was replaced; nothing was stored")]
    StaleKey,
    /// The server rolled back the transaction, for example after a deadlock, or an earlier statement of it failed.
    #[error("the transaction was rolled back; nothing was stored")]
    RolledBack,
    /// The caller gave up before it sent a write; has the value of `error.kind`.
    #[error("the write was not sent: {0}")]
    NotSent(&'static str),
    #[error("the Redis URL is invalid: {0}")]
    RedisAddress(String),
    #[error("{0}")]
    Migrations(String),
}

impl Error {
    /// The value of `error.kind` in the log.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Address(_) | Self::Migrations(_) => "database_misconfigured",
            Self::RedisAddress(_) => "redis_misconfigured",
            Self::Unavailable(_) | Self::TooSlow(_) | Self::RolledBack => "database_unavailable",
            Self::OutcomeUnknown(_) => "outcome_unknown",
            Self::Rejected { .. } => "database_refused",
            Self::StaleKey => "stale_key",
            Self::NotSent(kind) => kind,
        }
    }

    /// Whether a write that failed with this error is known not to be committed.
    pub fn is_certain(&self) -> bool {
        !matches!(self, Self::OutcomeUnknown(_))
    }

    /// Whether the server or the network caused the error, so that the same statement may succeed later.
    pub fn is_temporary(&self) -> bool {
        match self {
            Self::Unavailable(_)
            | Self::TooSlow(_)
            | Self::OutcomeUnknown(_)
            | Self::RolledBack => true,
            Self::Address(_)
            | Self::Rejected { .. }
            | Self::StaleKey
            | Self::NotSent(_)
            | Self::RedisAddress(_)
            | Self::Migrations(_) => false,
        }
    }

    /// The constraint that a write violated.
    pub fn violated_constraint(&self) -> Option<&str> {
        match self {
            Self::Rejected { constraint, .. } => constraint.as_deref(),
            _ => None,
        }
    }

    /// Whether the named unique constraint was violated.
    pub fn is_conflict(&self, constraint: &str) -> bool {
        matches!(self, Self::Rejected { code, constraint: Some(hit), .. }
            if code == SqlState::UNIQUE_VIOLATION.code() && hit == constraint)
    }
}

/// Classifies the result of a write: committed, rejected, or unknown.
fn classify_write<T>(
    connection: &Connection,
    statement: &'static str,
    result: Result<Result<T, tokio_postgres::Error>, Elapsed>,
) -> Result<T, Error> {
    match result {
        Ok(Ok(value)) => Ok(value),
        // Severity ERROR aborts the transaction. FATAL can follow the local commit, while the server waits for a
        // standby. After a lost connection the outcome is unknown.
        Ok(Err(error)) if has_error_severity(&error) => Err(statement_error(statement, &error)),
        Ok(Err(_)) | Err(_) => {
            connection.close();
            Err(Error::OutcomeUnknown(statement))
        }
    }
}

/// Whether the severity is ERROR, not FATAL or PANIC. Only the parsed severity is independent of `lc_messages`.
fn has_error_severity(error: &tokio_postgres::Error) -> bool {
    let severity = error.as_db_error().and_then(DbError::parsed_severity);
    severity == Some(Severity::Error)
}

/// Whether the server, not the statement, caused the error: it shuts down, lacks resources, or is a standby.
fn is_server_failure(code: &SqlState) -> bool {
    let class = code.code().get(..2);
    matches!(class, Some("08" | "53" | "57" | "58")) || *code == SqlState::READ_ONLY_SQL_TRANSACTION
}

/// Columns of encrypted values and of MACs. Statements set them to null if the key was replaced, which the database
/// rejects.
const KEYED_COLUMNS: [&str; 5] = ["sealed", "secret", "row_mac", "mac", "digest"];

fn is_stale_key(error: &DbError) -> bool {
    *error.code() == SqlState::NOT_NULL_VIOLATION
        && error
            .column()
            .is_some_and(|column| KEYED_COLUMNS.contains(&column))
}

/// Converts a driver error, dropping the server's message.
fn statement_error(statement: &'static str, error: &tokio_postgres::Error) -> Error {
    match error.as_db_error() {
        Some(db) if has_error_severity(error) && db.code().code().starts_with("40") => {
            Error::RolledBack
        }
        Some(db) if !has_error_severity(error) || is_server_failure(db.code()) => {
            Error::Unavailable(format!("{statement} failed with {}", db.code().code()))
        }
        Some(db) if is_stale_key(db) => Error::StaleKey,
        Some(db) => Error::Rejected {
            statement,
            code: db.code().code().to_owned(),
            constraint: db.constraint().map(str::to_owned),
        },
        None => Error::Unavailable(format!("the connection was lost during {statement}")),
    }
}
