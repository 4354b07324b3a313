//! A temporary PostgreSQL with the schema of the service, and one connection to it.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use cloakroom_devtools::servers;
use cloakroom_devtools::service_sql::ServiceSql;
use cloakroom_scratch::{Postgres, PostgresOptions};
use tokio::task::JoinSet;
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};

/// Durability is off: the data does not outlive the process. Settings that affect plans have their defaults. Statistics
/// are collected once, when the tables are full.
const SETTINGS: [(&str, &str); 6] = [
    ("fsync", "off"),
    ("synchronous_commit", "off"),
    ("full_page_writes", "off"),
    ("max_wal_size", "16GB"),
    ("maintenance_work_mem", "256MB"),
    ("autovacuum", "off"),
];

/// One connection; closed when dropped.
pub(super) struct Session {
    pub(super) client: Client,
    _driver: JoinSet<()>,
}

impl Session {
    async fn open(server: &Postgres) -> Result<Self> {
        let (client, connection) = tokio_postgres::connect(&server.url(), NoTls).await?;
        let mut driver = JoinSet::new();
        driver.spawn(async {
            // The next query returns the error.
            let _ended = connection.await;
        });
        Ok(Self {
            client,
            _driver: driver,
        })
    }
}

/// Dropped in this order: the connection before the server.
pub(super) struct Database {
    pub(super) session: Session,
    server: Postgres,
}

impl Database {
    pub(super) async fn start(sql: &ServiceSql) -> Result<Self> {
        let options = PostgresOptions {
            settings: SETTINGS
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .to_vec(),
            ..PostgresOptions::default()
        };
        Self::start_with(sql, options).await
    }

    pub(super) async fn start_with(sql: &ServiceSql, options: PostgresOptions) -> Result<Self> {
        println!("scale: starting PostgreSQL");
        let server = servers::start_postgres(options)?;
        let session = Session::open(&server).await?;
        let database = Self { session, server };
        for migration in &sql.migrations {
            database.run(migration).await?;
        }
        Ok(database)
    }

    /// Opens another connection.
    pub(super) async fn connect(&self) -> Result<Session> {
        Session::open(&self.server).await
    }

    /// The data folder of the server.
    pub(super) fn folder(&self) -> PathBuf {
        self.server.data_folder()
    }

    pub(super) async fn run(&self, sql: &str) -> Result<()> {
        self.session
            .client
            .batch_execute(sql)
            .await
            .with_context(|| sql.to_owned())
    }

    /// The first row, each column as text; `None` when there is no row.
    pub(super) async fn first_row(&self, sql: &str) -> Result<Option<Vec<String>>> {
        Ok(self.rows(sql).await?.into_iter().next())
    }

    /// Every row, each column as text.
    pub(super) async fn rows(&self, sql: &str) -> Result<Vec<Vec<String>>> {
        let result = self.session.client.simple_query(sql).await;
        let read = |message: SimpleQueryMessage| match message {
            SimpleQueryMessage::Row(row) => Some(
                (0..row.len())
                    .map(|column| row.get(column).unwrap_or_default().to_owned())
                    .collect(),
            ),
            _ => None,
        };
        let result = result.with_context(|| sql.to_owned())?;
        Ok(result.into_iter().filter_map(read).collect())
    }

    /// Duration and number of rows of a statement.
    pub(super) async fn time(&self, sql: &str) -> Result<(Duration, usize)> {
        let started_at = Instant::now();
        let result = self.session.client.simple_query(sql).await;
        let took = started_at.elapsed();
        let is_row = |message: &&SimpleQueryMessage| matches!(message, SimpleQueryMessage::Row(_));
        let rows = result.with_context(|| sql.to_owned())?;
        Ok((took, rows.iter().filter(is_row).count()))
    }

    pub(super) async fn describe(&self) -> Result<String> {
        let sql = "select (select count(*) from token), (select count(*) from term),
            pg_size_pretty(pg_total_relation_size('token')),
            pg_size_pretty(pg_total_relation_size('term'))";
        let row = self.first_row(sql).await?.unwrap_or_default();
        let [tokens, terms, token_size, term_size] = &row[..] else {
            return Ok(String::new());
        };
        Ok(format!(
            "{tokens} tokens ({token_size} with indexes), {terms} terms ({term_size})"
        ))
    }
}
