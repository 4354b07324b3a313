//! One connection to PostgreSQL: prepared statements, warnings, and a way to cut it.

use std::collections::HashMap;
use std::future::poll_fn;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use deadpool::managed::{Manager, Metrics, RecycleError, RecycleResult};
use futures_util::{Stream, TryStreamExt as _};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use tokio::task::AbortHandle;
use tokio_postgres::config::TargetSessionAttrs;
use tokio_postgres::types::ToSql;
use tokio_postgres::{AsyncMessage, Client, Config, Row};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::{Error, Params, Statement};
use crate::config::{Database, Secret};

/// Makes connections for the pool.
pub(super) struct Connector {
    config: Config,
    tls: Option<MakeRustlsConnect>,
}

/// A connection whose warnings are counted and which can be cut without a cancel request.
pub struct Connection {
    client: Client,
    prepared: Mutex<HashMap<&'static str, tokio_postgres::Statement>>,
    warnings: Arc<AtomicU64>,
    driver: AbortHandle,
    /// Set at once, where the driver's end is noticed only later: the pool must not reuse it.
    is_cut: AtomicBool,
}

/// Opens one connection outside any pool: for the commands that make or examine a database.
pub async fn connect_once(config: &Database) -> Result<Connection, Error> {
    let connector = Connector::new(config)?;
    tokio::time::timeout(config.connect_timeout, connector.create())
        .await
        .map_err(|_| Error::Unavailable("it did not answer in time".into()))?
}

impl Connector {
    /// To the primary: of several hosts, or behind a name that moves at a failover, only it will do.
    pub(super) fn new(settings: &Database) -> Result<Self, Error> {
        let url = settings
            .require_url()
            .map_err(|error| Error::Address(error.to_string()))?;
        Self::to(url, TargetSessionAttrs::ReadWrite, settings)
    }

    /// To whichever server the URL leads to.
    pub(super) fn to_any(url: &Secret, settings: &Database) -> Result<Self, Error> {
        Self::to(url, TargetSessionAttrs::Any, settings)
    }

    fn to(url: &Secret, target: TargetSessionAttrs, settings: &Database) -> Result<Self, Error> {
        // The parser's own message may quote the address, and with it the password.
        let mut config = Config::from_str(url.reveal()).map_err(|_| {
            Error::Address("it is not of the form postgres://user@host/name".into())
        })?;
        config.application_name("cloakroom");
        config.target_session_attrs(target);
        let tls = settings.ca_file.as_deref().map(tls_with_ca).transpose()?;
        if tls.is_some() {
            config.ssl_mode(tokio_postgres::config::SslMode::Require);
        }
        Ok(Self { config, tls })
    }
}

/// TLS that accepts only certificates of the given authority, for the name connected to.
fn tls_with_ca(ca_file: &std::path::Path) -> Result<MakeRustlsConnect, Error> {
    let unusable = |what: String| Error::Address(format!("{}: {what}", ca_file.display()));
    let mut roots = rustls::RootCertStore::empty();
    let certificates =
        CertificateDer::pem_file_iter(ca_file).map_err(|error| unusable(error.to_string()))?;
    for certificate in certificates {
        let certificate = certificate.map_err(|error| unusable(error.to_string()))?;
        roots
            .add(certificate)
            .map_err(|error| unusable(error.to_string()))?;
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| unusable(error.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

impl Manager for Connector {
    type Type = Connection;
    type Error = Error;

    async fn create(&self) -> Result<Connection, Error> {
        let warnings = Arc::new(AtomicU64::new(0));
        let lost = |error: tokio_postgres::Error| Error::Unavailable(reason(&error));
        let (client, driver) = match &self.tls {
            Some(tls) => {
                let (client, connection) = self.config.connect(tls.clone()).await.map_err(lost)?;
                (client, drive(connection, warnings.clone()))
            }
            None => {
                let (client, connection) = self
                    .config
                    .connect(tokio_postgres::NoTls)
                    .await
                    .map_err(lost)?;
                (client, drive(connection, warnings.clone()))
            }
        };
        Ok(Connection {
            client,
            prepared: Mutex::default(),
            warnings,
            driver,
            is_cut: AtomicBool::new(false),
        })
    }

    async fn recycle(&self, connection: &mut Connection, _: &Metrics) -> RecycleResult<Error> {
        if connection.is_cut.load(Ordering::Acquire) || connection.client.is_closed() {
            return Err(RecycleError::message("closed"));
        }
        Ok(())
    }
}

/// Runs the protocol in the background and counts warnings.
///
/// A commit whose standby wait was interrupted is reported as success with a warning, and that
/// warning arrives before the success: whoever reads the counter afterwards sees it.
#[expect(
    clippy::disallowed_methods,
    reason = "a connection lives and dies with its driver task"
)]
fn drive<S, T>(
    mut connection: tokio_postgres::Connection<S, T>,
    warnings: Arc<AtomicU64>,
) -> AbortHandle
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
    T: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    tokio::spawn(async move {
        while let Some(message) = poll_fn(|context| connection.poll_message(context)).await {
            match message {
                Ok(AsyncMessage::Notice(notice)) if notice.code().code().starts_with("01") => {
                    warnings.fetch_add(1, Ordering::Release);
                }
                Ok(_) => {}
                Err(_) => break,
            }
        }
    })
    .abort_handle()
}

/// Why a connection could not be made, without quoting the address.
fn reason(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(db) => format!("{} ({})", db.message(), db.code().code()),
        None => error.to_string(),
    }
}

impl Connection {
    /// Runs a statement, prepared once per connection.
    pub async fn query(
        &self,
        statement: &Statement,
        params: Params<'_>,
    ) -> Result<Vec<Row>, tokio_postgres::Error> {
        let prepared = self.prepare(statement).await?;
        self.run_prepared(&prepared, params).await
    }

    pub(super) async fn run_prepared(
        &self,
        prepared: &tokio_postgres::Statement,
        params: Params<'_>,
    ) -> Result<Vec<Row>, tokio_postgres::Error> {
        self.client.query(prepared, params).await
    }

    /// Runs a statement whose rows come one by one, however many there are.
    pub async fn stream(
        &self,
        statement: &Statement,
        params: Params<'_>,
    ) -> Result<impl Stream<Item = Result<Row, Error>> + use<>, Error> {
        let name = statement.name;
        let failed = move |error: tokio_postgres::Error| super::refusal(name, &error);
        let prepared = self.prepare(statement).await.map_err(failed)?;
        let params = params.iter().map(|param| *param as &dyn ToSql);
        let rows = self.client.query_raw(&prepared, params).await;
        Ok(rows.map_err(failed)?.map_err(failed))
    }

    /// Runs SQL text of our own making, for migrations and examinations.
    pub async fn run(&self, sql: &str) -> Result<(), tokio_postgres::Error> {
        self.client.batch_execute(sql).await
    }

    /// Prepares a statement on this connection, or reuses what was prepared before.
    pub async fn prepare(
        &self,
        statement: &Statement,
    ) -> Result<tokio_postgres::Statement, tokio_postgres::Error> {
        let known = self
            .prepared
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(statement.name)
            .cloned();
        if let Some(prepared) = known {
            return Ok(prepared);
        }
        let prepared = self.client.prepare(statement.text).await?;
        self.prepared
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(statement.name, prepared.clone());
        Ok(prepared)
    }

    /// How many warnings the server has sent so far.
    pub(super) fn warnings(&self) -> u64 {
        self.warnings.load(Ordering::Acquire)
    }

    /// Cuts the connection at once; the server finishes or rolls back on its own.
    pub fn close(&self) {
        self.is_cut.store(true, Ordering::Release);
        self.driver.abort();
    }
}
