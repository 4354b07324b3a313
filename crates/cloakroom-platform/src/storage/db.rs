//! The connection pool.

use std::time::Duration;

use deadpool::managed::{Object, Pool, PoolError, TimeoutType, Timeouts};
use tokio::time::{Instant, timeout, timeout_at};
use tokio_postgres::Row;

use super::connection::Connector;
use super::{Connection, Error, Params, Statement, Transaction, classify_write, statement_error};
use crate::config::Database;
use crate::telemetry::catalog;

/// Few statements run on the standby.
const REPLICA_CONNECTIONS: usize = 2;

/// The connection pool that every statement uses.
///
/// The futures of statements are boxed: they are large, and would otherwise be part of the future of every request that
/// may query the database, which is moved several times.
#[derive(Clone)]
pub struct Db {
    pool: Pool<Connector>,
    read_deadline: Duration,
    write_deadline: Duration,
}

impl Db {
    /// Creates the pool. Connections are opened on first use.
    pub fn open(config: &Database) -> Result<Self, Error> {
        Self::with_connector(Connector::new(config)?, config.max_connections, config)
    }

    /// Creates a pool for the standby, if one is configured. Its rows may be slightly stale.
    pub fn open_replica(config: &Database) -> Result<Option<Self>, Error> {
        let Some(url) = &config.replica_url else {
            return Ok(None);
        };
        let connector = Connector::new_any_server(url, config)?;
        Self::with_connector(connector, REPLICA_CONNECTIONS, config).map(Some)
    }

    fn with_connector(connector: Connector, size: usize, config: &Database) -> Result<Self, Error> {
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

    /// Runs a read-only statement.
    pub async fn read(&self, statement: &Statement, params: Params<'_>) -> Result<Vec<Row>, Error> {
        Box::pin(self.run_read(statement, params)).await
    }

    async fn run_read(&self, statement: &Statement, params: Params<'_>) -> Result<Vec<Row>, Error> {
        let connection = self.connection().await?;
        let in_flight = InFlight::new(&connection);
        let result = timeout(self.read_deadline, connection.query(statement, params)).await;
        match result {
            Ok(result) => {
                let rows = result.map_err(|error| statement_error(statement.name, &error))?;
                in_flight.complete();
                Ok(rows)
            }
            Err(_) => Err(Error::TooSlow(statement.name)),
        }
    }

    /// Runs a read-only statement that returns at most one row.
    pub async fn read_optional(
        &self,
        statement: &Statement,
        params: Params<'_>,
    ) -> Result<Option<Row>, Error> {
        Ok(self.read(statement, params).await?.pop())
    }

    /// Runs one writing statement in its own transaction, in one round trip.
    ///
    /// Returns only after the server confirmed the commit without a warning. It never sends a cancel request: past the
    /// deadline it closes the connection, and the outcome is unknown.
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
        // Preparing writes nothing, so its failure has a known outcome.
        let prepared = timeout_at(deadline, connection.prepare(statement)).await;
        let prepared = prepared
            .map_err(|_| Error::TooSlow(statement.name))?
            .map_err(|error| statement_error(statement.name, &error))?;
        let result = timeout_at(deadline, connection.run_prepared(&prepared, params)).await;
        let rows = classify_write(&connection, statement.name, result);
        if connection.warnings() != warnings {
            return Err(Error::OutcomeUnknown(statement.name));
        }
        // The connection is still usable after an error that the server reported.
        if matches!(
            rows,
            Ok(_) | Err(Error::Rejected { .. } | Error::RolledBack | Error::StaleKey)
        ) {
            in_flight.complete();
        }
        rows
    }

    /// Begins a transaction.
    pub async fn begin(&self) -> Result<Transaction, Error> {
        let transaction =
            async { Transaction::begin(self.connection().await?, self.write_deadline).await };
        Box::pin(transaction).await
    }

    /// Runs `work`, several read-only statements, on one connection.
    pub async fn with_connection<T>(
        &self,
        work: impl AsyncFnOnce(&Connection) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let connection = self.connection().await?;
        let in_flight = InFlight::new(&connection);
        let done = timeout(self.read_deadline, work(&connection)).await;
        let value = done.map_err(|_| Error::TooSlow("an inspection"))??;
        in_flight.complete();
        Ok(value)
    }

    async fn connection(&self) -> Result<Object<Connector>, Error> {
        self.pool.get().await.map_err(connection_failure)
    }

    /// The state of the pool.
    pub fn pool_status(&self) -> PoolStatus {
        let status = self.pool.status();
        PoolStatus {
            max: status.max_size,
            idle: status.available,
            in_use: status.size.saturating_sub(status.available),
            waiting: status.waiting,
        }
    }
}

/// Connections of the pool, and operations that wait for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolStatus {
    pub max: usize,
    pub idle: usize,
    pub in_use: usize,
    pub waiting: usize,
}

fn connection_failure(error: PoolError<Error>) -> Error {
    let (reason, error) = match error {
        PoolError::Backend(error) => ("connect", error),
        PoolError::Timeout(TimeoutType::Create) => {
            let error = Error::Unavailable("no connection could be opened in time".into());
            ("connect", error)
        }
        PoolError::Timeout(_) => {
            let error = Error::Unavailable("no connection became available in time".into());
            ("timeout", error)
        }
        other => ("connect", Error::Unavailable(other.to_string())),
    };
    catalog::DATABASE_CONNECTION_FAILURES
        .with([reason])
        .increment(1);
    error
}

/// Closes the connection when a statement is dropped before it completes.
///
/// A request can be canceled at any time. Other requests must not get a connection on which its statement still runs.
struct InFlight<'a> {
    connection: &'a Connection,
    is_complete: bool,
}

impl<'a> InFlight<'a> {
    fn new(connection: &'a Connection) -> Self {
        Self {
            connection,
            is_complete: false,
        }
    }

    fn complete(mut self) {
        self.is_complete = true;
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        if !self.is_complete {
            self.connection.close();
        }
    }
}
