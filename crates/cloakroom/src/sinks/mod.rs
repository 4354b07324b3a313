//! Ships checkpoints of the audit log to other systems, in order and at least once. `stream` ships its entries.
//!
//! A sink that is down delays nothing but its own checkpoints. Each node writes its own file; the other sinks receive each
//! checkpoint from one node at a time, and their position is in the database. A third party can time-stamp checkpoints.

mod file;
mod post;
mod stream;
mod syslog;
mod time_stamps;

use std::sync::Arc;
use std::time::Duration;

use cloakroom_core::audit;
use cloakroom_core::vault::Vault;
use cloakroom_platform::config::Config;
use cloakroom_platform::telemetry::catalog;
use cloakroom_platform::{ids, outbound, storage};
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_rustls::rustls::ClientConfig;
use uuid::Uuid;

pub use self::file::last_number;
pub use self::stream::{Stream, StreamSink, waiting_stream};
pub use self::time_stamps::{TimeStamps, stamp};

const PERIOD: Duration = Duration::from_secs(2);
/// Checkpoints that are shipped before the position is stored. Few, so that a slow sink makes progress.
const PART: usize = 10;
/// Time for one part.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Longer than the period and the timeout together, so that the shipping node renews it.
const LEASE: Duration = Duration::from_secs(30);

/// A system that receives checkpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sink {
    File,
    Url,
    Syslog,
}

impl Sink {
    pub const ALL: [Self; 3] = [Self::File, Self::Url, Self::Syslog];

    /// Name in settings, metrics and the database.
    pub fn name(self) -> &'static str {
        match self {
            Self::File => "sink_file",
            Self::Url => "sink_url",
            Self::Syslog => "sink_syslog",
        }
    }

    pub fn is_configured(self, config: &Config) -> bool {
        match self {
            Self::File => config.audit.sink_file.is_some(),
            Self::Url => config.audit.sink_url.is_some(),
            Self::Syslog => config.audit.sink_syslog.is_some(),
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("it cannot be reached or written: {0}")]
    Io(#[from] std::io::Error),
    #[error("TLS is not possible: {0}")]
    Tls(String),
    #[error("it responded with status {0}")]
    Status(u16),
    #[error("its response is not valid")]
    Response,
    #[error("it did not respond in time")]
    Timeout,
    #[error("the file with its position is not valid")]
    Position,
    #[error(
        "it has received checkpoints that the audit log does not have, because a backup was restored; set another file, or \
         move this one away with its `.position`"
    )]
    Ahead,
    #[error("the setting is invalid")]
    Setting,
    #[error(transparent)]
    Storage(#[from] storage::Error),
}

impl From<outbound::Error> for Error {
    fn from(error: outbound::Error) -> Self {
        match error {
            outbound::Error::Io(error) => Self::Io(error),
            outbound::Error::Tls(reason) => Self::Tls(reason),
            outbound::Error::Address => Self::Setting,
        }
    }
}

impl Error {
    fn kind(&self) -> &'static str {
        match self {
            Self::Io(_) => "sink_unreachable",
            Self::Tls(_) => "sink_tls",
            Self::Status(_) => "sink_rejected",
            Self::Response => "sink_response_invalid",
            Self::Timeout => "sink_too_slow",
            Self::Position => "sink_position_invalid",
            Self::Ahead => "sink_ahead_of_log",
            Self::Setting => "sink_misconfigured",
            Self::Storage(error) => error.kind(),
        }
    }
}

/// Ships checkpoints and entries until it is dropped. Each sink has a task of its own, so that one that is slow or down
/// delays nothing else.
pub async fn run(vault: Vault) {
    let mut tasks = JoinSet::new();
    for sink in configured(&vault.config) {
        tasks.spawn(ship_checkpoints(vault.clone(), sink));
    }
    tokio::join!(
        time_stamp(vault.clone()),
        measure(vault.clone()),
        stream::run(vault)
    );
}

async fn ship_checkpoints(vault: Vault, sink: Sink) {
    let holder = ids::new_uuid();
    let mut ticks = interval(PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        if let Err(error) = ship_all(&vault, sink, holder).await {
            report(sink.name(), &error);
        }
    }
}

async fn time_stamp(vault: Vault) {
    let holder = ids::new_uuid();
    let mut ticks = interval(PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        if let Err(error) = time_stamps::stamp(&vault, holder).await {
            report(time_stamps::NAME, &error);
        }
    }
}

fn configured(config: &Config) -> impl Iterator<Item = Sink> {
    let all = Sink::ALL.into_iter();
    all.filter(|sink| sink.is_configured(config))
}

async fn measure(vault: Vault) {
    let mut ticks = interval(PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        measure_once(&vault).await;
    }
}

/// Measures what each sink lacks, whichever node ships to it: the figure of one that does no longer would remain.
pub async fn measure_once(vault: &Vault) {
    for sink in configured(&vault.config) {
        // The database check reports an error, and the shipment one of the file.
        if let Ok(waiting) = waiting(vault, sink).await {
            catalog::AUDIT_SINK_WAITING
                .with([sink.name()])
                .set(waiting as f64);
        }
    }
}

fn report(sink: &'static str, error: &Error) {
    catalog::AUDIT_SINK_FAILURES.with([sink]).increment(1);
    tracing::warn!(
        job = sink,
        error.kind = error.kind(),
        "a sink does not receive the checkpoints of the audit log; the next run retries"
    );
}

/// Ships everything that a sink has not received. `Ok` if another node does it.
pub async fn ship_all(vault: &Vault, sink: Sink, holder: Uuid) -> Result<(), Error> {
    let is_shared = sink != Sink::File;
    // Renewed for each part, because a sink that was down for long takes longer than the lease.
    let holds_lease = async || match is_shared {
        true => storage::hold_lease(&vault.db, sink.name(), holder, LEASE).await,
        false => Ok(true),
    };
    if !holds_lease().await? {
        return Ok(());
    }
    let mut position = stored_position(vault, sink).await?;
    loop {
        let page = audit::unshipped(&vault.audit, position).await?;
        if page.is_empty() {
            return lacking(vault, position).await.map(drop);
        }
        for part in page.chunks(PART) {
            if !holds_lease().await? {
                return Ok(());
            }
            ship(&vault.config, sink, part).await?;
            position = part.last().map_or(position, |last| last.number);
            if is_shared {
                vault.audit.set_shipped(sink.name(), position).await?;
            }
        }
    }
}

async fn ship(config: &Config, sink: Sink, part: &[audit::Shipment]) -> Result<(), Error> {
    let settings = &config.audit;
    let shipped = async {
        match sink {
            Sink::File => {
                let path = settings.sink_file.clone().ok_or(Error::Setting)?;
                let lines: Vec<String> = part.iter().map(audit::Shipment::line).collect();
                blocking(move || file::append_lines(&path, &lines)).await
            }
            Sink::Url => {
                let url = settings.sink_url.as_ref().ok_or(Error::Setting)?;
                let posts = part.iter().map(checkpoint_post).collect();
                post::send(url.reveal(), tls(config)?, posts).await?;
                Ok(())
            }
            Sink::Syslog => {
                let address = settings.sink_syslog.as_deref().ok_or(Error::Setting)?;
                let lines = part.iter().map(|it| (syslog::CHECKPOINT, it.line()));
                syslog::send(address, tls(config)?, lines.collect()).await
            }
        }
    };
    timeout(TIMEOUT, shipped)
        .await
        .map_err(|_| Error::Timeout)?
}

/// Runs file operations apart from the tasks of requests, which a disk that hangs must not delay.
async fn blocking<T: Send + 'static>(
    operation: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    // The operation neither panics nor is canceled.
    spawn_blocking(operation)
        .await
        .map_err(std::io::Error::other)?
}

fn checkpoint_post(shipment: &audit::Shipment) -> post::Post {
    post::Post {
        checkpoint: shipment.number,
        content_type: "text/plain; charset=utf-8",
        body: shipment.note.clone().into(),
    }
}

fn tls(config: &Config) -> Result<Arc<ClientConfig>, Error> {
    let ca_file = config.audit.sink_ca_file.as_deref();
    Ok(outbound::client_config(ca_file)?)
}

/// What a sink lacks: the number of checkpoints that it has not received.
pub async fn waiting(vault: &Vault, sink: Sink) -> Result<i64, Error> {
    let position = stored_position(vault, sink).await?;
    lacking(vault, position).await
}

/// The number of checkpoints after a position. Fails if the log ends before it: then the checkpoints of the present log that
/// reuse numbers would never be shipped.
async fn lacking(vault: &Vault, position: i64) -> Result<i64, Error> {
    match vault.audit.newest_checkpoint().await? - position {
        lacking @ 0.. => Ok(lacking),
        _ => Err(Error::Ahead),
    }
}

async fn stored_position(vault: &Vault, sink: Sink) -> Result<i64, Error> {
    match &vault.config.audit.sink_file {
        Some(path) if sink == Sink::File => {
            let path = path.clone();
            blocking(move || Ok(file::last_number(&path)?)).await
        }
        _ => Ok(vault.audit.shipped(sink.name()).await?),
    }
}
