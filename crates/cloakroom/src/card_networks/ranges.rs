//! Keeping the card ranges of directory servers: asked for by one node, kept, and loaded by all.

use std::sync::Arc;
use std::time::Duration;

use cloakroom_emv3ds::{
    Component, Erro, ErrorCode, Fault, Message, MessageKind, PReq, RangeTable, Version, read, write,
};

use super::directory::{Directory, Loaded};
use super::store::{self, Place};
use super::{Error, Trouble};
use crate::ids;
use crate::vault::Vault;

/// How soon a directory server that did not answer is asked again.
const RETRY: Duration = Duration::from_secs(60);
/// How long a node that asks may take before another one does.
const LEASE: Duration = Duration::from_secs(10 * 60);
/// Networks want to be asked this often at least.
const STALE: Duration = Duration::from_secs(24 * 60 * 60);
const DOMAIN: &str = "card_range_table";

/// Loads what other nodes have learned, and asks each directory server that it is time to ask.
pub async fn tend(vault: &Vault) -> Result<(), Error> {
    let period = vault.config.threeds.refresh_period;
    for directory in vault.card_networks.directories() {
        load(vault, directory).await?;
        if store::claim(&vault.db, directory.key(), period, LEASE).await? {
            ask(vault, directory).await?;
        }
    }
    Ok(())
}

/// Asks every directory server now, whenever it was asked before.
pub async fn ask_all(vault: &Vault) -> Result<(), Error> {
    for directory in vault.card_networks.directories() {
        load(vault, directory).await?;
        store::claim(&vault.db, directory.key(), Duration::ZERO, LEASE).await?;
        ask(vault, directory).await?;
    }
    Ok(())
}

/// Takes the ranges out of the database if this node has others.
async fn load(vault: &Vault, directory: &Directory) -> Result<(), Error> {
    let Some(place) = store::find_place(&vault.db, directory.key()).await? else {
        return Ok(());
    };
    tell_age(directory, &place);
    if place.version == directory.ranges.load().version {
        return Ok(());
    }
    let Some((text, digest)) =
        store::find_ranges(&vault.db, directory.key(), place.version).await?
    else {
        return Ok(());
    };
    let parts = parts(directory, place.version, &text);
    let is_ours =
        vault
            .keys
            .control()
            .verifies(DOMAIN, &parts.each_ref().map(Vec::as_slice), &digest);
    let table = match is_ours {
        true => aside(move || serde_json::from_str::<RangeTable>(&text).ok())
            .await
            .flatten(),
        false => None,
    };
    let is_damaged = table.is_none();
    if is_damaged {
        tracing::error!(
            job = "card_ranges",
            directory = directory.key(),
            error.kind = "damaged_card_ranges",
            "the card ranges in the database are damaged; the ones in use stay until all are asked for"
        );
        store::ask_again(&vault.db, directory.key(), STALE).await?;
    }
    directory.ranges.store(Arc::new(Loaded {
        version: place.version,
        table: table.unwrap_or_else(|| directory.ranges.load().table.clone()),
        is_damaged,
    }));
    Ok(())
}

/// What the digest covers.
fn parts(directory: &Directory, version: i32, text: &str) -> [Vec<u8>; 3] {
    [
        directory.key().as_bytes().to_vec(),
        version.to_be_bytes().to_vec(),
        text.as_bytes().to_vec(),
    ]
}

fn tell_age(directory: &Directory, place: &Place) {
    let age = place.age_seconds;
    metrics::gauge!("card_ranges_age_seconds", "directory" => directory.key().to_owned()).set(age);
    if age > STALE.as_secs_f64() {
        tracing::warn!(
            job = "card_ranges",
            directory = directory.key(),
            "card ranges are older than a day; sessions go by them until the directory server answers"
        );
    }
}

/// Asks one directory server for what changed, and for everything if the changes make no sense.
async fn ask(vault: &Vault, directory: &Directory) -> Result<(), Error> {
    let known = directory.ranges.load_full();
    let serial = known.table.serial().filter(|_| !known.is_damaged);
    let mut serial = serial.map(str::to_owned);
    let mut versions = directory.identity().versions.clone();
    loop {
        let asked_everything = serial.is_none();
        let version = versions.last().copied().unwrap_or(Version::V2_2_0);
        match learn(directory, serial.clone(), version).await {
            Err(Refusal::Version) if versions.len() > 1 => drop(versions.pop()),
            Ok(table) => return keep(vault, directory, table).await,
            Err(Refusal::Changes) if !asked_everything => serial = None,
            Err(refusal) => {
                tracing::warn!(
                    job = "card_ranges",
                    directory = directory.key(),
                    error.kind = refusal.kind(),
                    "card ranges could not be refreshed; the ones in use stay"
                );
                if refusal.may_be_repeated_soon() {
                    let wait = vault.config.threeds.refresh_period.saturating_sub(RETRY);
                    store::ask_again(&vault.db, directory.key(), wait).await?;
                }
                return Ok(());
            }
        }
    }
}

/// Why nothing was learned.
enum Refusal {
    /// The directory server does not speak our version.
    Version,
    /// The changes do not fit what is known: everything is to be asked for.
    Changes,
    TooOften,
    Trouble(Trouble),
}

impl Refusal {
    fn kind(&self) -> &'static str {
        match self {
            Self::Version => "version_not_spoken",
            Self::Changes => "ranges_do_not_fit",
            Self::TooOften => "asked_too_often",
            Self::Trouble(trouble) if trouble.service_status == 504 => "directory_server_timeout",
            Self::Trouble(_) => "directory_server_trouble",
        }
    }

    /// Who answered at all is not asked again within the hour.
    fn may_be_repeated_soon(&self) -> bool {
        match self {
            Self::Trouble(trouble) => trouble.is_silence,
            Self::Version | Self::Changes | Self::TooOften => false,
        }
    }
}

impl From<Trouble> for Refusal {
    fn from(trouble: Trouble) -> Self {
        Self::Trouble(trouble)
    }
}

async fn learn(
    directory: &Directory,
    serial: Option<String>,
    version: Version,
) -> Result<RangeTable, Refusal> {
    let is_full = serial.is_none();
    let identity = directory.identity();
    let question = PReq {
        message_version: version,
        threeds_server_trans_id: ids::new_uuid().to_string(),
        threeds_server_ref_number: identity.reference_number.clone(),
        threeds_server_operator_id: directory.operator_id().map(str::to_owned),
        serial_num: serial,
        card_range_data_download_ind: None,
        message_extension: None,
    };
    let own_id = question.threeds_server_trans_id.clone();
    let text = write(&Message::PReq(question)).map_err(|fault| Trouble::bad_question(&fault))?;
    let answer = directory.ask_ranges(text).await?;
    let known = directory.ranges.load_full();
    let learned = aside(move || -> Result<Learned, Fault> {
        match read(&answer, &[MessageKind::PRes], &[version])? {
            Message::PRes(answer) if answer.threeds_server_trans_id == own_id => {
                let mut table = match is_full {
                    true => RangeTable::default(),
                    false => known.table.clone(),
                };
                table.apply(&answer, is_full)?;
                Ok(Learned::Table(table))
            }
            Message::Erro(erro) => Ok(Learned::Refusal(refusal_of(&erro))),
            _ => Ok(Learned::Refusal(Trouble::cut_off().into())),
        }
    });
    let given_up = || Err(Fault::new(ErrorCode::TransientFailure, "given up"));
    match learned.await.unwrap_or_else(given_up) {
        Ok(Learned::Table(table)) => Ok(table),
        Ok(Learned::Refusal(refusal)) => Err(refusal),
        Err(fault) => {
            complain(directory, &fault, version).await;
            Err(Refusal::Changes)
        }
    }
}

enum Learned {
    Table(RangeTable),
    Refusal(Refusal),
}

/// Works on a large table beside the threads that answer requests.
///
/// Nothing if the work was given up, which happens when the node stops.
async fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    tokio::task::spawn_blocking(work).await.ok()
}

fn refusal_of(erro: &Erro) -> Refusal {
    match erro.error_code.as_str() {
        "102" => Refusal::Version,
        "103" => Refusal::TooOften,
        "307" => Refusal::Changes,
        _ => Refusal::Trouble(Trouble::told(erro)),
    }
}

/// Tells the directory server that its ranges make no sense. What it says to that matters to nobody.
async fn complain(directory: &Directory, fault: &Fault, version: Version) {
    let erro = fault.erro(Component::S, version);
    if let Ok(text) = write(&Message::Erro(erro)) {
        let _ = directory.ask(text).await;
    }
}

/// Keeps what was learned, for all nodes.
async fn keep(vault: &Vault, directory: &Directory, table: RangeTable) -> Result<(), Error> {
    let written = aside(move || {
        let text = serde_json::to_string(&table).ok();
        text.map(|text| (text, table))
    });
    let Some((text, table)) = written.await.flatten() else {
        return Ok(());
    };
    let known = directory.ranges.load().version;
    let version = known.wrapping_add(1);
    let parts = parts(directory, version, &text);
    let digest = vault
        .keys
        .control()
        .authenticate(DOMAIN, &parts.each_ref().map(Vec::as_slice));
    let is_kept = store::keep(&vault.db, directory.key(), version, &text, &digest).await?;
    // Another node was faster, and what it kept is loaded next time.
    if is_kept {
        let count = table.len();
        directory.ranges.store(Arc::new(Loaded {
            version,
            table,
            is_damaged: false,
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
