//! `cloakroom root-key`: creates a root key, splits it into shares, combines and submits them; loads it for other commands.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::Subcommand;
use cloakroom::Vault;
use cloakroom::audit::Operation;
use cloakroom::config::{self, Config, Provider};
use cloakroom::keys::{self, RootKey, RootKeys};
use cloakroom_crypto::{Key, RootKek};
use cloakroom_custody::{self as custody, create_pkcs11_key, shares};
use serde_json::json;

use crate::key_actions;
use crate::operator::operator;
use crate::output::print_result;
use crate::terminal::read_secret;

/// What follows once the provider has the root key.
const NEXT: &str = "next: `cloakroom migrate`";

#[derive(Subcommand)]
pub(crate) enum RootKeyCommand {
    /// Create a root key: in a file that only you can read, or at the configured provider
    Create {
        /// File to create; an existing file is never overwritten. Without it, `root_key.provider` decides
        file: Option<PathBuf>,
    },
    /// Split a root key into shares for custodians; any THRESHOLD of them restore it
    Split {
        /// Shares that are needed to start a node
        #[arg(long)]
        threshold: u8,
        /// Shares to create, one per custodian
        #[arg(long)]
        shares: u8,
        /// Folder for the files share-1.txt and so on; existing files are never overwritten
        #[arg(long, value_name = "FOLDER")]
        out: PathBuf,
        /// Split the root key in this file instead of a new one
        #[arg(long, value_name = "FILE")]
        from: Option<PathBuf>,
    },
    /// Combine shares into a file that only you can read, to split the key again or to replace it
    Combine {
        /// File to create, in memory and not on a disk; an existing file is never overwritten
        file: PathBuf,
    },
    /// Submit your share to a sealed node; it is read from the terminal without echo, or from standard input
    Submit {
        /// Socket of the node; by default `root_key.shares_socket`
        #[arg(long, value_name = "SOCKET")]
        socket: Option<PathBuf>,
    },
}

pub(crate) async fn run(
    load: impl FnOnce() -> Result<Config, config::Error>,
    command: RootKeyCommand,
) -> anyhow::Result<()> {
    match command {
        RootKeyCommand::Create { file: Some(file) } => create_file(&file),
        RootKeyCommand::Create { file: None } => create_at_provider(&load()?).await,
        RootKeyCommand::Split {
            threshold,
            shares,
            out,
            from,
        } => {
            if let Some(from) = &from {
                let what = format!("{threshold} of {shares} shares");
                record(load, from, (Operation::Create, &what)).await?;
            }
            split(from.as_deref(), (threshold, shares), &out)
        }
        RootKeyCommand::Combine { file } => {
            custody::write_key(&file, &read_shares()?)?;
            let what = (Operation::Use, "combined into a file");
            if let Err(error) = record(load, &file, what).await {
                std::fs::remove_file(&file)?;
                return Err(error);
            }
            let lines = [
                format!("wrote the root key to {}", file.display()),
                "next: `cloakroom root-key split --from`, or name it in `root_key.previous` of a configuration; then \
                 delete the file"
                    .to_owned(),
            ];
            print_result(&json!({"file": file}), &lines);
            Ok(())
        }
        RootKeyCommand::Submit { socket } => {
            let socket = match socket {
                Some(socket) => socket,
                None => load()?
                    .root_key
                    .shares_socket
                    .context("root_key.shares_socket is not set; use --socket")?,
            };
            let share = read_secret("share")?;
            let operator = operator()?;
            let reply = shares::submit(&socket, &share, operator.as_str())?;
            print_result(&json!({"reply": reply}), &[reply]);
            Ok(())
        }
    }
}

/// Loads the configured root key. For the provider `shares`, reads the shares first.
pub(crate) fn load(config: &Config) -> anyhow::Result<RootKeys> {
    let root = match config.root_key.provider {
        Provider::Shares => RootKey::in_process(read_shares()?, &config.root_key)?,
        _ => RootKey::load(&config.root_key).map_err(keys::Error::from)?,
    };
    let roots = RootKeys::new(root);
    Ok(roots.with_configured_previous(&config.root_key)?)
}

/// Reads shares, one line each, until they restore the root key.
fn read_shares() -> anyhow::Result<Key<RootKek>> {
    let mut collector = shares::Collector::default();
    loop {
        let prompt = format!("share ({})", collector.progress());
        let line = read_secret(&prompt)?;
        match collector.add(line.expose()) {
            Ok(Some(key)) => return Ok(key),
            Ok(None) => {}
            Err(rejection) => bail!("the share was rejected: {rejection}"),
        }
    }
}

/// Records in the audit log what is done with the root key in a file; does nothing if no database is configured, as on a
/// machine for ceremonies.
async fn record(
    load: impl FnOnce() -> Result<Config, config::Error>,
    file: &Path,
    (operation, what): (Operation, &str),
) -> anyhow::Result<()> {
    let mut config = load()?;
    if config.database.url.is_none() {
        return Ok(());
    }
    config.root_key.provider = Provider::File;
    config.root_key.file = Some(file.to_owned());
    let root = RootKey::load(&config.root_key).map_err(keys::Error::from)?;
    let vault = Vault::open_with(config, RootKeys::new(root)).await;
    let vault = vault.context("cannot record this in the audit log")?;
    vault.audit.set_operator(operator()?);
    key_actions::record_ceremony(&vault, operation, what).await?;
    vault.audit.close().await;
    Ok(())
}

/// The line that the record of a ceremony needs.
fn record_line(created_by: &str) -> String {
    format!("for the key record: created by {created_by} (form in docs/operate/keys.md)")
}

fn create_file(file: &Path) -> anyhow::Result<()> {
    let folder = file.parent().filter(|it| !it.as_os_str().is_empty());
    if let Some(folder) = folder.filter(|folder| !folder.exists()) {
        let folder = folder.display();
        bail!(
            "the folder {folder} does not exist; create it first, for the user of the service: `install -d -m 0700 -o USER {folder}`"
        );
    }
    if file.exists() {
        bail!(
            "{} exists already; a root key is never overwritten",
            file.display()
        );
    }
    keys::create_file(file)?;
    let operator = operator()?;
    let lines = [
        format!("wrote a new root key to {}", file.display()),
        record_line(operator.as_str()),
        "store a copy in a safe place: without it, the data of the vault cannot be decrypted"
            .to_owned(),
        "next: set `root_key.file`, then `cloakroom migrate`".to_owned(),
    ];
    let object = json!({"file": file, "created_by": operator.as_str()});
    print_result(&object, &lines);
    Ok(())
}

/// Creates a key in an HSM. Keys of AWS KMS and Transit are created there; this tries them.
async fn create_at_provider(config: &Config) -> anyhow::Result<()> {
    match config.root_key.provider {
        Provider::File => bail!("name the file to create: `cloakroom root-key create FILE`"),
        Provider::Shares => bail!("use `cloakroom root-key split`"),
        Provider::Pkcs11 => {
            let name = create_pkcs11_key(&config.root_key)?;
            let operator = operator()?;
            let lines = [
                format!("created the key {name}, which cannot leave the token"),
                record_line(operator.as_str()),
                "back up the token: without it, the data of the vault cannot be decrypted"
                    .to_owned(),
                NEXT.to_owned(),
            ];
            let object = json!({"key": name, "created_by": operator.as_str()});
            print_result(&object, &lines);
        }
        Provider::AwsKms | Provider::Transit => {
            let root = RootKey::load(&config.root_key)?;
            let environment = config.vault.environment.as_str();
            let description = root.describe(environment).await.with_context(|| {
                format!(
                    "{} cannot be used: create it there first",
                    root.display_name()
                )
            })?;
            let weaknesses = description.weaknesses.iter().map(|it| &it.0);
            let mut lines = vec![format!("{} exists and can be used", description.root)];
            lines.extend(weaknesses.clone().map(|it| format!("warning: {it}")));
            lines.push(NEXT.to_owned());
            let warnings: Vec<&String> = weaknesses.collect();
            let object = json!({"key": description.root, "warnings": warnings});
            print_result(&object, &lines);
        }
    }
    Ok(())
}

fn split(from: Option<&Path>, numbers: (u8, u8), out: &Path) -> anyhow::Result<()> {
    let split = shares::split(from, numbers, out)?;
    let operator = operator()?;
    let mut lines: Vec<String> = split
        .files
        .iter()
        .map(|file| format!("wrote {}", file.display()))
        .collect();
    lines.extend([
        format!("key check value: {}", split.check_value),
        record_line(operator.as_str()),
        format!(
            "give each file to one custodian and delete it here; any {} of them start a node",
            numbers.0
        ),
        "next: set `root_key.provider` to \"shares\" and `root_key.shares_socket`, then start a node \
         and run `cloakroom root-key submit` once per custodian"
            .to_owned(),
    ]);
    let object = json!({
        "files": split.files,
        "threshold": numbers.0,
        "check_value": split.check_value,
        "created_by": operator.as_str(),
    });
    print_result(&object, &lines);
    Ok(())
}
