//! `cloakroom export`.

use std::path::PathBuf;

use anyhow::{Context as _, bail};
use clap::{Args, Subcommand};
use cloakroom::access::{Container, Tenant};
use cloakroom::api::format_utc;
use cloakroom::config::Config;
use cloakroom::tokens::{ExportFilter, TokenVault};
use cloakroom::transfer::export::{self, ExportRequest, NewExport};
use cloakroom::transfer::{PrivateKey, PublicKey};
use cloakroom::{Vault, token_types::TokenKind};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{parse_public_key, progress_bar};
use crate::manage::{find_tenant, open, parse_id};
use crate::operator::person;
use crate::output::{print_list, print_result};

#[derive(Subcommand)]
pub(crate) enum ExportCommand {
    /// Request an export; another person must approve it
    Request(RequestArguments),
    /// List the exports that are requested or approved and have not run
    List {
        /// Tenant id or name
        #[arg(long, value_name = "TENANT")]
        tenant: String,
    },
    /// Approve an export that another person requested
    Approve {
        #[command(flatten)]
        export: Named,
        /// SHA-256 of the receiver's key, as the receiver reads it out; `export list` shows that of the request
        #[arg(long, value_name = "SHA256", value_parser = parse_fingerprint)]
        receiver: String,
    },
    /// Cancel an export that has not run
    Cancel(Named),
    /// Run an approved export
    Run {
        #[command(flatten)]
        export: Named,
        /// Folder to create
        #[arg(long, value_name = "FOLDER")]
        out: PathBuf,
    },
    /// Verify signature, digests and counts of an export; needs no configuration
    Verify {
        /// Public key of the audit authority of the exporting vault, from `cloakroom audit public-key`
        #[arg(long, value_name = "HEX")]
        public_key: String,
        /// The receiver's private key; also decrypts and counts the tokens
        #[arg(long, value_name = "FILE")]
        decrypt_key: Option<PathBuf>,
        /// Folder that `cloakroom export run` wrote
        #[arg(value_name = "FOLDER")]
        folder: PathBuf,
    },
}

#[derive(Args)]
pub(crate) struct RequestArguments {
    /// Tenant id or name
    #[arg(long, value_name = "TENANT")]
    tenant: String,
    /// The receiver's X25519 public key (PEM)
    #[arg(long, value_name = "FILE")]
    to: PathBuf,
    /// Why, for the approver and the manifest
    #[arg(long, value_name = "TEXT")]
    reason: String,
    /// Only tokens in this container and those below it
    #[arg(long, value_name = "PATH")]
    container: Option<String>,
    /// Only tokens of this type
    #[arg(long = "type", value_name = "TYPE")]
    kind: Option<String>,
}

#[derive(Args)]
pub(crate) struct Named {
    /// Tenant id or name
    #[arg(long, value_name = "TENANT")]
    tenant: String,
    /// Id of the export
    #[arg(value_name = "EXPORT", value_parser = parse_id)]
    id: Uuid,
}

/// `load` is called only by commands that use the database.
pub(crate) async fn export(
    load: impl FnOnce() -> Result<Config, cloakroom::config::Error>,
    command: ExportCommand,
) -> anyhow::Result<()> {
    match command {
        ExportCommand::Request(arguments) => request(load()?, arguments).await,
        ExportCommand::List { tenant } => {
            let (vault, tenant) = open_for(load()?, &tenant).await?;
            let requests = export::list(&vault, &tenant).await?;
            print_list(&requests, request_to_json, request_to_text);
            Ok(())
        }
        ExportCommand::Approve { export, receiver } => {
            let (id, by) = (export.id, person()?);
            let (vault, tenant) = open_for(load()?, &export.tenant).await?;
            let approved = export::approve(&vault, &tenant, id, &receiver, &by).await?;
            vault.audit.close().await;
            let tenant = tenant.id.uuid;
            let lines = [
                request_to_text(&approved),
                format!("next: `cloakroom export run --tenant {tenant} --out FOLDER {id}`"),
            ];
            print_result(&request_to_json(&approved), &lines);
            Ok(())
        }
        ExportCommand::Cancel(named) => {
            let (vault, tenant) = open_for(load()?, &named.tenant).await?;
            export::cancel(&vault, &tenant, named.id).await?;
            vault.audit.close().await;
            let line = format!("canceled export {}", named.id);
            print_result(&json!({"id": named.id}), &[line]);
            Ok(())
        }
        ExportCommand::Run { export, out } => run(load()?, &export, out).await,
        ExportCommand::Verify {
            public_key,
            decrypt_key,
            folder,
        } => {
            let key = decrypt_key.as_deref().map(PrivateKey::read).transpose();
            let key = key.context("--decrypt-key cannot be used")?;
            let authority = [parse_public_key(&public_key)?];
            let verified = export::verify(&folder, &authority, key.as_ref())?;
            let (tokens, chunks) = (verified.manifest.tokens, verified.manifest.chunks.len());
            let is_decrypted = verified.is_decrypted;
            let how = match is_decrypted {
                true => "signature, digests, ids and counts",
                false => "signature and digests",
            };
            let line = format!("verified {how}: {tokens} tokens in {chunks} chunks");
            let id = verified.manifest.export;
            let object =
                json!({"id": id, "tokens": tokens, "chunks": chunks, "decrypted": is_decrypted});
            print_result(&object, &[line]);
            Ok(())
        }
    }
}

fn parse_fingerprint(text: &str) -> Result<String, String> {
    let text = text.to_ascii_lowercase();
    match hex::decode(&text) {
        Ok(digest) if digest.len() == 32 => Ok(text),
        _ => Err("expected the 64 hexadecimal digits of a SHA-256 digest".to_owned()),
    }
}

async fn open_for(config: Config, tenant: &str) -> anyhow::Result<(Vault, Tenant)> {
    let vault = open(config).await?;
    let tenant = find_tenant(&vault, tenant).await?;
    Ok((vault, tenant))
}

async fn request(config: Config, arguments: RequestArguments) -> anyhow::Result<()> {
    let pem = std::fs::read_to_string(&arguments.to);
    let pem = pem.with_context(|| format!("{} cannot be read", arguments.to.display()))?;
    let receiver = PublicKey::parse(&pem).context("--to cannot be used")?;
    let container = arguments.container.as_deref().map(Container::parse);
    let kind = match arguments.kind.as_deref() {
        Some(name) => match TokenKind::parse(name) {
            Some(kind) => Some(kind),
            None => bail!("--type {name} is not a type of tokens"),
        },
        None => None,
    };
    let new = NewExport {
        filter: ExportFilter {
            container: container.transpose().context("--container")?,
            kind,
        },
        receiver,
        reason: arguments.reason,
    };
    let (vault, tenant) = open_for(config, &arguments.tenant).await?;
    let requested = export::request(&vault, &tenant, new, &person()?).await?;
    vault.audit.close().await;
    let (tenant, id) = (tenant.id.uuid, requested.id);
    let lines = [
        request_to_text(&requested),
        "next, by another person, with the SHA-256 of the key that the receiver reads out:"
            .to_owned(),
        format!("`cloakroom export approve --tenant {tenant} --receiver SHA256 {id}`"),
    ];
    print_result(&request_to_json(&requested), &lines);
    Ok(())
}

async fn run(config: Config, named: &Named, out: PathBuf) -> anyhow::Result<()> {
    let (vault, tenant) = open_for(config, &named.tenant).await?;
    let bar = progress_bar();
    let tokens = TokenVault::new(&vault);
    let progress = |count| bar.set_position(count);
    let written = export::run(&tokens, &tenant, named.id, &out, progress).await;
    bar.finish_and_clear();
    vault.audit.close().await;
    let manifest = written?;
    let (tokens, chunks) = (manifest.tokens, manifest.chunks.len());
    let receiver = &manifest.receiver;
    let lines = [
        format!("{tokens} tokens in {chunks} chunks, encrypted to {receiver}"),
        format!("reconciled with the database: {tokens} tokens in the same snapshot"),
        format!(
            "send {} and the output of `cloakroom audit public-key`",
            out.display()
        ),
    ];
    let object = json!({
        "id": manifest.export,
        "folder": out,
        "tokens": tokens,
        "chunks": chunks,
        "receiver": receiver,
    });
    print_result(&object, &lines);
    Ok(())
}

fn request_to_text(request: &ExportRequest) -> String {
    let container = request.filter.container.as_ref();
    let approved = match (&request.approved_by, request.approved_at) {
        (Some(by), Some(at)) => format!("{} by {by}", format_utc(at)),
        _ => "no".to_owned(),
    };
    [
        format!("export {}", request.id),
        format!(
            "  tokens: {} in {}",
            request.filter.kind.map_or("all types", TokenKind::name),
            container.map_or("all containers", Container::as_str)
        ),
        format!(
            "  encrypted to: {} (SHA-256 of the public key)",
            request.receiver.fingerprint()
        ),
        format!("  reason: {}", request.reason),
        format!(
            "  requested: {} by {}",
            format_utc(request.requested_at),
            request.requested_by
        ),
        format!("  approved: {approved}"),
    ]
    .join("\n")
}

fn request_to_json(request: &ExportRequest) -> Value {
    json!({
        "id": request.id,
        "type": request.filter.kind.map(TokenKind::name),
        "container": request.filter.container.as_ref().map(Container::as_str),
        "receiver": request.receiver.fingerprint().to_string(),
        "reason": request.reason,
        "requested_by": request.requested_by,
        "requested_at": format_utc(request.requested_at),
        "approved_by": request.approved_by,
        "approved_at": request.approved_at.map(format_utc),
    })
}
