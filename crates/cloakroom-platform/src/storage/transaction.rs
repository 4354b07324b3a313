//! A transaction of several statements.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use deadpool::managed::Object;
use tokio::time::{Instant, timeout_at};
use tokio_postgres::Row;

use super::connection::Connector;
use super::{Error, Params, Statement, classify_write};

/// An open transaction. Dropping it without `commit` closes the connection, and the server rolls back.
pub struct Transaction {
    connection: Object<Connector>,
    warnings_before: u64,
    deadline: Instant,
    open: bool,
    /// A statement failed, which aborts the transaction on the server: `commit` would roll back.
    failed: AtomicBool,
}

impl Transaction {
    pub(super) async fn begin(
        connection: Object<Connector>,
        write_deadline: Duration,
    ) -> Result<Self, Error> {
        let warnings_before = connection.warnings();
        let transaction = Self {
            connection,
            warnings_before,
            deadline: Instant::now() + write_deadline,
            open: true,
            failed: AtomicBool::new(false),
        };
        let result = timeout_at(transaction.deadline, transaction.connection.run("begin")).await;
        match result {
            Ok(Ok(())) => Ok(transaction),
            // Only `begin` was sent, so nothing was written.
            _ => Err(Error::Unavailable(
                "the transaction could not be started".into(),
            )),
        }
    }

    /// Runs one statement inside the transaction.
    pub async fn run(&self, statement: &Statement, params: Params<'_>) -> Result<Vec<Row>, Error> {
        let result = timeout_at(self.deadline, self.connection.query(statement, params)).await;
        let rows = classify_write(&self.connection, statement.name, result);
        if rows.is_err() {
            self.failed.store(true, Ordering::Relaxed);
        }
        rows
    }

    /// Commits. Returns only after the server confirmed the commit without a warning.
    pub async fn commit(mut self) -> Result<(), Error> {
        if self.failed.load(Ordering::Relaxed) {
            return Err(Error::RolledBack);
        }
        let result = timeout_at(self.deadline, self.connection.run("commit")).await;
        classify_write(&self.connection, "commit", result)?;
        if self.connection.warnings() != self.warnings_before {
            return Err(Error::OutcomeUnknown("commit"));
        }
        self.open = false;
        Ok(())
    }

    /// Rolls back and returns the connection to the pool, because opening one is expensive. If the rollback fails, the
    /// connection is closed.
    pub async fn roll_back(mut self) {
        let result = timeout_at(self.deadline, self.connection.run("rollback")).await;
        self.open = !matches!(result, Ok(Ok(())));
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if self.open {
            self.connection.close();
        }
    }
}
