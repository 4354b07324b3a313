//! Several statements that count together or not at all.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use deadpool::managed::Object;
use tokio::time::{Instant, timeout_at};
use tokio_postgres::Row;

use super::connection::Connector;
use super::{Error, Params, Statement, settle};

/// An open transaction. Dropping it without `commit` cuts the connection, and the server rolls back.
pub struct Transaction {
    connection: Object<Connector>,
    warnings_before: u64,
    deadline: Instant,
    open: bool,
    /// A failed statement has ended the transaction on the server: its commit would be a rollback.
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
        let answer = timeout_at(transaction.deadline, transaction.connection.run("begin")).await;
        match answer {
            Ok(Ok(())) => Ok(transaction),
            // Only `begin` was sent, which changes nothing, so nothing can have happened.
            _ => Err(Error::Unavailable("a transaction did not start".into())),
        }
    }

    /// Runs one statement inside the transaction.
    pub async fn run(&self, statement: &Statement, params: Params<'_>) -> Result<Vec<Row>, Error> {
        let answer = timeout_at(self.deadline, self.connection.query(statement, params)).await;
        let settled = settle(&self.connection, statement.name, answer);
        if settled.is_err() {
            self.failed.store(true, Ordering::Relaxed);
        }
        settled
    }

    /// Makes everything durable; returns only when the server confirmed it without a warning.
    pub async fn commit(mut self) -> Result<(), Error> {
        if self.failed.load(Ordering::Relaxed) {
            return Err(Error::RolledBack);
        }
        let answer = timeout_at(self.deadline, self.connection.run("commit")).await;
        settle(&self.connection, "commit", answer)?;
        if self.connection.warnings() != self.warnings_before {
            return Err(Error::OutcomeUnknown("commit"));
        }
        self.open = false;
        Ok(())
    }

    /// Gives everything up and keeps the connection, which is dear to make. Without an answer it is
    /// cut like any other.
    pub async fn roll_back(mut self) {
        let answer = timeout_at(self.deadline, self.connection.run("rollback")).await;
        self.open = !matches!(answer, Ok(Ok(())));
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if self.open {
            self.connection.close();
        }
    }
}
