//! A connection to PostgreSQL: prepared statements, server warnings, and closing it abruptly.

use std::collections::HashMap;
use std::error::Error as _;
use std::future::poll_fn;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use deadpool::managed::{Manager, Metrics, RecycleError, RecycleResult};
use futures_util::{Stream, TryStreamExt as _};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use tokio::task::AbortHandle;
use tokio_postgres::config::{Host, TargetSessionAttrs};
use tokio_postgres::types::ToSql;
use tokio_postgres::{AsyncMessage, Client, Config, Row};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::{Error, Params, Statement};
use crate::config::{Database, Secret};

/// Settings of every session. Those of a role or a database can be changed by SQL, and would change what statements mean:
/// `now()` of another schema ends no expiry, and a commit that is not synchronous is acknowledged before it is durable.
const SESSION_SETTINGS: &str = "-c search_path=public,pg_temp -c synchronous_commit=on";

/// Opens connections for the pool.
pub(super) struct Connector {
    config: Config,
    tls: Option<MakeRustlsConnect>,
}

/// A connection that counts server warnings and can be closed without a cancel request.
pub struct Connection {
    client: Client,
    prepared: Mutex<HashMap<&'static str, tokio_postgres::Statement>>,
    warnings: Arc<AtomicU64>,
    driver: AbortHandle,
    /// Set immediately by `close`. The client notices the end of its driver later, and until then the pool must not
    /// reuse the connection.
    is_closed: AtomicBool,
}

/// Opens a connection outside of any pool, for commands that set up or inspect a database.
pub async fn connect_once(config: &Database) -> Result<Connection, Error> {
    let connector = Connector::new(config)?;
    tokio::time::timeout(config.connect_timeout, connector.create())
        .await
        .map_err(|_| {
            let servers = servers(&connector.config);
            Error::Unavailable(format!("the connection to {servers} timed out"))
        })?
}

impl Connector {
    /// Connects to the primary only, also with several hosts or a DNS name that changes at a failover.
    pub(super) fn new(settings: &Database) -> Result<Self, Error> {
        let url = settings
            .require_url()
            .map_err(|error| Error::Address(error.to_string()))?;
        Self::with_target(url, TargetSessionAttrs::ReadWrite, settings)
    }

    /// Connects to any server of the URL, primary or standby.
    pub(super) fn new_any_server(url: &Secret, settings: &Database) -> Result<Self, Error> {
        Self::with_target(url, TargetSessionAttrs::Any, settings)
    }

    fn with_target(
        url: &Secret,
        target: TargetSessionAttrs,
        settings: &Database,
    ) -> Result<Self, Error> {
        // The parser's message may quote the URL, which contains the password.
        let mut config = Config::from_str(url.reveal())
            .map_err(|_| Error::Address("expected a URL like postgres://user@host/name".into()))?;
        config.application_name("cloakroom");
        config.target_session_attrs(target);
        // The last value of a setting applies: that of the URL, which is the operator's, like this program.
        let options = config.get_options().unwrap_or_default();
        config.options(format!("{SESSION_SETTINGS} {options}"));
        let tls = settings.ca_file.as_deref().map(tls_with_ca).transpose()?;
        if tls.is_some() {
            config.ssl_mode(tokio_postgres::config::SslMode::Require);
        }
        Ok(Self { config, tls })
    }
}

/// TLS that verifies the host name and trusts only the certificate authorities in `ca_file`.
fn tls_with_ca(ca_file: &std::path::Path) -> Result<MakeRustlsConnect, Error> {
    let invalid = |what: String| Error::Address(format!("{}: {what}", ca_file.display()));
    let mut roots = rustls::RootCertStore::empty();
    let certificates =
        CertificateDer::pem_file_iter(ca_file).map_err(|error| invalid(error.to_string()))?;
    for certificate in certificates {
        let certificate = certificate.map_err(|error| invalid(error.to_string()))?;
        roots
            .add(certificate)
            .map_err(|error| invalid(error.to_string()))?;
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| invalid(error.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

impl Manager for Connector {
    type Type = Connection;
    type Error = Error;

    async fn create(&self) -> Result<Connection, Error> {
        let warnings = Arc::new(AtomicU64::new(0));
        let unavailable = |error: tokio_postgres::Error| {
            let servers = servers(&self.config);
            Error::Unavailable(format!("{servers}: {}", reason(&error)))
        };
        let (client, driver) = match &self.tls {
            Some(tls) => {
                let (client, connection) = self
                    .config
                    .connect(tls.clone())
                    .await
                    .map_err(unavailable)?;
                (client, drive(connection, warnings.clone()))
            }
            None => {
                let (client, connection) = self
                    .config
                    .connect(tokio_postgres::NoTls)
                    .await
                    .map_err(unavailable)?;
                (client, drive(connection, warnings.clone()))
            }
        };
        Ok(Connection {
            client,
            prepared: Mutex::default(),
            warnings,
            driver,
            is_closed: AtomicBool::new(false),
        })
    }

    async fn recycle(&self, connection: &mut Connection, _: &Metrics) -> RecycleResult<Error> {
        if connection.is_closed.load(Ordering::Acquire) || connection.client.is_closed() {
            return Err(RecycleError::message("closed"));
        }
        Ok(())
    }
}

/// Drives the protocol in a background task and counts warnings.
///
/// A commit whose wait for the standby was interrupted succeeds with a warning. The warning arrives before the
/// success, so the counter includes it once the commit returns.
#[expect(
    clippy::disallowed_methods,
    reason = "the driver task ends with its connection"
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

/// Describes why connecting failed, without quoting the URL.
fn reason(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(db) => format!("{} ({})", db.message(), db.code().code()),
        None => match error.source() {
            Some(cause) if !error.to_string().contains(&cause.to_string()) => {
                format!("{error}: {cause}")
            }
            _ => error.to_string(),
        },
    }
}

/// The hosts and ports of a URL, without its user and password.
fn servers(config: &Config) -> String {
    let (hosts, ports) = (config.get_hosts(), config.get_ports());
    let port = |index: usize| ports.get(index).or(ports.first()).copied().unwrap_or(5432);
    let names = hosts.iter().enumerate().map(|(index, host)| match host {
        Host::Tcp(name) => format!("{name}:{}", port(index)),
        Host::Unix(path) => path.display().to_string(),
    });
    names.collect::<Vec<_>>().join(", ")
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

    /// Runs a statement and streams its rows, without collecting them in memory.
    pub async fn stream(
        &self,
        statement: &Statement,
        params: Params<'_>,
    ) -> Result<impl Stream<Item = Result<Row, Error>> + use<>, Error> {
        let name = statement.name;
        let failed = move |error: tokio_postgres::Error| super::statement_error(name, &error);
        let prepared = self.prepare(statement).await.map_err(failed)?;
        let params = params.iter().map(|param| *param as &dyn ToSql);
        let rows = self.client.query_raw(&prepared, params).await;
        Ok(rows.map_err(failed)?.map_err(failed))
    }

    /// Runs SQL text, for migrations and inspections. The text must not contain values from requests.
    pub async fn run(&self, sql: &str) -> Result<(), tokio_postgres::Error> {
        self.client.batch_execute(sql).await
    }

    /// Prepares a statement on this connection, or returns it from the cache.
    pub async fn prepare(
        &self,
        statement: &Statement,
    ) -> Result<tokio_postgres::Statement, tokio_postgres::Error> {
        let cached = self
            .prepared
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(statement.name)
            .cloned();
        if let Some(prepared) = cached {
            return Ok(prepared);
        }
        let prepared = self.client.prepare(statement.text).await?;
        self.prepared
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(statement.name, prepared.clone());
        Ok(prepared)
    }

    /// Number of warnings that the server has sent on this connection.
    pub(super) fn warnings(&self) -> u64 {
        self.warnings.load(Ordering::Acquire)
    }

    /// Closes the connection immediately, without a cancel request; the server finishes or rolls back on its own.
    pub fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        self.driver.abort();
    }
}
