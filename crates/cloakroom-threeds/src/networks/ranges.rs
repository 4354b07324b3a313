//! Refreshes the card ranges of directory servers: one node requests and stores them, and all nodes load them.

use std::sync::Arc;
use std::time::Duration;

use cloakroom_core::access::RenewedRows;
use cloakroom_core::vault::Vault;
use cloakroom_emv3ds::{
    Component, Erro, ErrorCode, Fault, Message, MessageKind, PReq, RangeTable, Version, read, write,
};
use cloakroom_platform::telemetry::catalog;
use cloakroom_platform::{ids, storage};

use super::directory::{DirectoryServer, RangeSnapshot};
use super::store::{self, StoredVersion};
use super::{CardNetworks, Error, NetworkFailure};

/// Delay before the next request to a directory server that did not respond.
const RETRY_DELAY: Duration = Duration::from_secs(60);
/// Time a node has for a refresh before another node may start one.
const LEASE: Duration = Duration::from_secs(10 * 60);
/// Networks require a refresh at least this often.
const MAX_AGE: Duration = Duration::from_secs(24 * 60 * 60);
const DOMAIN: &str = "card_range_table";

/// Loads ranges stored by other nodes, and refreshes those that are due.
pub async fn tend(vault: &Vault, networks: &CardNetworks) -> Result<(), Error> {
    let period = vault.config.threeds.refresh_period;
    for directory in networks.directories() {
        load(vault, directory).await?;
        if store::claim(&vault.db, directory.key(), period, LEASE).await? {
            refresh(vault, directory).await?;
        }
    }
    Ok(())
}

/// Keys of the directory servers whose card ranges are not loaded on this node.
pub fn missing_ranges(networks: &CardNetworks) -> Vec<&str> {
    let directories = networks.directories();
    let missing = directories.filter(|directory| !directory.has_ranges());
    missing.map(DirectoryServer::key).collect()
}

/// Refreshes the ranges of every directory server now, even if they are not due.
pub async fn refresh_all_ranges(vault: &Vault, networks: &CardNetworks) -> Result<(), Error> {
    for directory in networks.directories() {
        load(vault, directory).await?;
        store::claim(&vault.db, directory.key(), Duration::ZERO, LEASE).await?;
        refresh(vault, directory).await?;
    }
    Ok(())
}

/// Loads the ranges from the database if their version differs from the one in memory.
async fn load(vault: &Vault, directory: &DirectoryServer) -> Result<(), Error> {
    let Some(stored) = store::find_version(&vault.db, directory.key()).await? else {
        return Ok(());
    };
    report_age(directory, &stored);
    if stored.version == directory.ranges.load().version {
        return Ok(());
    }
    let Some((text, digest)) =
        store::find_ranges(&vault.db, directory.key(), stored.version).await?
    else {
        return Ok(());
    };
    let parts = parts(directory.key(), stored.version, &text);
    let is_authentic =
        vault
            .keys
            .control()
            .verifies(DOMAIN, &parts.each_ref().map(Vec::as_slice), &digest);
    let table = match is_authentic {
        true => run_blocking(move || serde_json::from_str::<RangeTable>(&text).ok())
            .await
            .flatten(),
        false => None,
    };
    let is_corrupt = table.is_none();
    if is_corrupt {
        tracing::error!(
            job = "card_ranges",
            directory = directory.key(),
            error.kind = "corrupt_card_ranges",
            "the card ranges in the database are corrupt; keeping the loaded ones until a full refresh"
        );
        store::set_last_request(&vault.db, directory.key(), MAX_AGE).await?;
    }
    directory.ranges.store(Arc::new(RangeSnapshot {
        version: stored.version,
        table: table.unwrap_or_else(|| directory.ranges.load().table.clone()),
        is_corrupt,
    }));
    Ok(())
}

/// Computes the MACs of all stored ranges again after the control key was replaced, also those of directory servers that
/// this node does not know.
pub async fn renew_macs(vault: &Vault) -> Result<RenewedRows, storage::Error> {
    let control = vault.keys.control();
    let mut rows = RenewedRows::default();
    for stored in store::list(&vault.db).await? {
        let parts = parts(&stored.directory, stored.version, &stored.ranges);
        let parts = parts.each_ref().map(Vec::as_slice);
        let renewal = control.renew(DOMAIN, &parts, &stored.digest);
        if let Some(renewed) = rows.examine(("card_range_table", &stored.directory), renewal) {
            rows.renewed += store::renew(&vault.db, &stored, &renewed).await?;
        }
    }
    Ok(rows)
}

/// Input of the MAC over stored ranges.
fn parts(directory: &str, version: i32, text: &str) -> [Vec<u8>; 3] {
    [
        directory.as_bytes().to_vec(),
        version.to_be_bytes().to_vec(),
        text.as_bytes().to_vec(),
    ]
}

fn report_age(directory: &DirectoryServer, stored: &StoredVersion) {
    let age = stored.age_seconds;
    catalog::CARD_RANGES_AGE
        .with([directory.key().to_owned()])
        .set(age);
    if age > MAX_AGE.as_secs_f64() {
        tracing::warn!(
            job = "card_ranges",
            directory = directory.key(),
            "card ranges are older than a day; they stay in use until the directory server responds"
        );
    }
}

/// Requests changes from one directory server, or all ranges if the changes cannot be applied.
async fn refresh(vault: &Vault, directory: &DirectoryServer) -> Result<(), Error> {
    let known = directory.ranges.load_full();
    let serial = known.table.serial().filter(|_| !known.is_corrupt);
    let mut serial = serial.map(str::to_owned);
    let mut versions = directory.identity().versions.clone();
    loop {
        let is_full_request = serial.is_none();
        let version = versions.last().copied().unwrap_or(Version::V2_2_0);
        match download(directory, serial.clone(), version).await {
            Err(RefreshError::Version) if versions.len() > 1 => drop(versions.pop()),
            Ok(table) => return store_ranges(vault, directory, table).await,
            Err(RefreshError::InvalidDelta) if !is_full_request => serial = None,
            Err(error) => {
                tracing::warn!(
                    job = "card_ranges",
                    directory = directory.key(),
                    error.kind = error.kind(),
                    "card ranges could not be refreshed; keeping the loaded ones"
                );
                if error.is_retryable() {
                    let wait = vault
                        .config
                        .threeds
                        .refresh_period
                        .saturating_sub(RETRY_DELAY);
                    store::set_last_request(&vault.db, directory.key(), wait).await?;
                }
                return Ok(());
            }
        }
    }
}

/// Why a refresh failed.
enum RefreshError {
    /// The directory server does not support the message version.
    Version,
    /// The changes cannot be applied to the loaded ranges; all ranges must be requested.
    InvalidDelta,
    RateLimited,
    Network(NetworkFailure),
}

impl RefreshError {
    fn kind(&self) -> &'static str {
        match self {
            Self::Version => "version_not_supported",
            Self::InvalidDelta => "invalid_card_ranges",
            Self::RateLimited => "rate_limited",
            Self::Network(failure) if failure.service_status == 504 => "directory_server_timeout",
            Self::Network(_) => "directory_server_error",
        }
    }

    /// Only unanswered requests are retried soon. A server that responded is not called again within the hour.
    fn is_retryable(&self) -> bool {
        match self {
            Self::Network(failure) => failure.is_unanswered,
            Self::Version | Self::InvalidDelta | Self::RateLimited => false,
        }
    }
}

impl From<NetworkFailure> for RefreshError {
    fn from(failure: NetworkFailure) -> Self {
        Self::Network(failure)
    }
}

async fn download(
    directory: &DirectoryServer,
    serial: Option<String>,
    version: Version,
) -> Result<RangeTable, RefreshError> {
    let is_full = serial.is_none();
    let identity = directory.identity();
    let request = PReq {
        message_version: version,
        threeds_server_trans_id: ids::new_uuid().to_string(),
        threeds_server_ref_number: identity.reference_number.clone(),
        threeds_server_operator_id: directory.operator_id().map(str::to_owned),
        serial_num: serial,
        card_range_data_download_ind: None,
        message_extension: None,
    };
    let own_id = request.threeds_server_trans_id.clone();
    let text =
        write(&Message::PReq(request)).map_err(|fault| NetworkFailure::invalid_request(&fault))?;
    let response = directory.request_ranges(text).await?;
    let known = directory.ranges.load_full();
    let downloaded = run_blocking(move || -> Result<Downloaded, Fault> {
        match read(&response, &[MessageKind::PRes], &[version])? {
            Message::PRes(response) if response.threeds_server_trans_id == own_id => {
                let mut table = match is_full {
                    true => RangeTable::default(),
                    false => known.table.clone(),
                };
                table.apply(&response, is_full)?;
                Ok(Downloaded::Table(table))
            }
            Message::Erro(erro) => Ok(Downloaded::Error(refresh_error(&erro))),
            _ => Ok(Downloaded::Error(NetworkFailure::connection_lost().into())),
        }
    });
    let canceled = || Err(Fault::new(ErrorCode::TransientFailure, "canceled"));
    match downloaded.await.unwrap_or_else(canceled) {
        Ok(Downloaded::Table(table)) => Ok(table),
        Ok(Downloaded::Error(error)) => Err(error),
        Err(fault) => {
            report_fault(directory, &fault, version).await;
            Err(RefreshError::InvalidDelta)
        }
    }
}

enum Downloaded {
    Table(RangeTable),
    Error(RefreshError),
}

/// Runs work on a large table on a blocking thread. Returns `None` if the node shuts down meanwhile.
async fn run_blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    tokio::task::spawn_blocking(work).await.ok()
}

fn refresh_error(erro: &Erro) -> RefreshError {
    match erro.error_code.as_str() {
        "102" => RefreshError::Version,
        "103" => RefreshError::RateLimited,
        "307" => RefreshError::InvalidDelta,
        _ => RefreshError::Network(NetworkFailure::from_erro(erro)),
    }
}

/// Sends an Erro message about invalid ranges to the directory server, ignoring the response.
async fn report_fault(directory: &DirectoryServer, fault: &Fault, version: Version) {
    let erro = fault.erro(Component::S, version);
    if let Ok(text) = write(&Message::Erro(erro)) {
        let _ = directory.send(text).await;
    }
}

/// Stores refreshed ranges for all nodes.
async fn store_ranges(
    vault: &Vault,
    directory: &DirectoryServer,
    table: RangeTable,
) -> Result<(), Error> {
    let written = run_blocking(move || {
        let text = serde_json::to_string(&table).ok();
        text.map(|text| (text, table))
    });
    let Some((text, table)) = written.await.flatten() else {
        return Ok(());
    };
    let known = directory.ranges.load().version;
    let version = known.wrapping_add(1);
    let parts = parts(directory.key(), version, &text);
    let digest = vault
        .keys
        .control()
        .authenticate(DOMAIN, &parts.each_ref().map(Vec::as_slice));
    let is_stored =
        store::update_ranges(&vault.db, directory.key(), version, &text, &digest).await?;
    // If another node stored this version first, its ranges are loaded next time.
    if is_stored {
        let count = table.len();
        directory.ranges.store(Arc::new(RangeSnapshot {
            version,
            table,
            is_corrupt: false,
        }));
        tracing::info!(
            job = "card_ranges",
            directory = directory.key(),
            count,
            "card ranges are up to date"
        );
    }
    Ok(())
}
