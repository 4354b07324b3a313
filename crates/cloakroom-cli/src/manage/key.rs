//! `cloakroom key`.

use std::io::Read as _;

use anyhow::{Context as _, bail};
use clap::Subcommand;
use cloakroom::api::format_utc;
use cloakroom::applications::{self, Filter};
use cloakroom::config::Config;
use cloakroom::idempotency::ResponseTemplate;
use cloakroom_crypto::Sensitive;
use serde_json::json;
use uuid::Uuid;

use super::rotation::{self, Confirmation, Selection};
use super::{REJECTED_WITHIN, explain_application, open_for, parse_id};
use crate::output::{print_list, print_result};

/// Longer than any key.
const KEY_BYTES_MAX: usize = 1024;

#[derive(Subcommand)]
pub(crate) enum KeyCommand {
    /// Create a key, which is shown only once
    Create {
        /// Tenant id or name
        #[arg(long)]
        tenant: String,
        /// Application id
        #[arg(long, value_parser = parse_id)]
        app: Uuid,
    },
    /// Import a key of the older format from standard input; it stays valid for its clients
    Import {
        /// Tenant id or name
        #[arg(long)]
        tenant: String,
        /// Application id
        #[arg(long, value_parser = parse_id)]
        app: Uuid,
    },
    /// List the key ids of an application, oldest first
    List {
        /// Tenant id or name
        #[arg(long)]
        tenant: String,
        /// Application id
        #[arg(long, value_parser = parse_id)]
        app: Uuid,
    },
    /// Delete a key
    Delete {
        /// Tenant id or name
        #[arg(long)]
        tenant: String,
        /// Application id
        #[arg(long, value_parser = parse_id)]
        app: Uuid,
        /// Key id
        #[arg(long, value_parser = parse_id)]
        key: Uuid,
    },
    /// Replace a key; running nodes do the rest while they serve
    Rotate {
        #[command(flatten)]
        selection: Selection,
        #[command(flatten)]
        confirmation: Confirmation,
    },
    /// Show the progress of rotations
    Status {
        /// Print the rotations as JSON
        #[arg(long)]
        json: bool,
    },
    /// Destroy the old version of a key, after a signed proof that nothing needs it
    Retire(Selection),
}

pub(crate) async fn key(config: Config, command: KeyCommand) -> anyhow::Result<()> {
    match command {
        KeyCommand::Create { tenant, app } => {
            let (vault, tenant) = open_for(config, &tenant).await?;
            let app = app.to_string();
            let created =
                applications::create_key(&vault, (&tenant).into(), &app, &ResponseTemplate::none())
                    .await
                    .map_err(|error| explain_application(&tenant, error))?;
            vault.audit.close().await;
            let lines = [
                created.key.expose().to_owned(),
                format!("this key is shown only once; its id is {}", created.id),
                "next: `cloakroom serve`, and send the key in the BT-API-KEY header".to_owned(),
            ];
            let object = json!({"id": created.id, "key": created.key.expose()});
            print_result(&object, &lines);
        }
        KeyCommand::Import { tenant, app } => {
            let text = read_key()?;
            let (vault, tenant) = open_for(config, &tenant).await?;
            let imported = applications::import_key(&vault, &tenant, &app.to_string(), &text).await;
            let imported = imported.map_err(|error| explain_application(&tenant, error))?;
            vault.audit.close().await;
            let lines = [
                format!("key {}", imported.id),
                "it is valid on every node; next: replace it with a key of `cloakroom key create` when you can"
                    .to_owned(),
            ];
            print_result(&json!({"id": imported.id}), &lines);
        }
        KeyCommand::List { tenant, app } => {
            let (vault, tenant) = open_for(config, &tenant).await?;
            let (app, all) = (app.to_string(), Filter::default());
            let keys = applications::list_keys(&vault, (&tenant).into(), &app, &all).await;
            let keys = keys.map_err(|error| explain_application(&tenant, error))?;
            print_list(
                &keys,
                |key| json!({"id": key.id, "created_at": format_utc(key.created_at)}),
                |key| format!("{}  created {}", key.id, format_utc(key.created_at)),
            );
        }
        KeyCommand::Delete { tenant, app, key } => {
            let (vault, tenant) = open_for(config, &tenant).await?;
            let (app, id) = (app.to_string(), key.to_string());
            let deleted = applications::delete_key(&vault, (&tenant).into(), &app, &id).await;
            deleted.map_err(|error| explain_application(&tenant, error))?;
            vault.audit.close().await;
            let line = format!("deleted key {key}; it is {REJECTED_WITHIN}");
            print_result(&json!({"id": key}), &[line]);
        }
        KeyCommand::Rotate {
            selection,
            confirmation,
        } => rotation::rotate(config, &selection, &confirmation).await?,
        KeyCommand::Status { json } => rotation::status(config, json).await?,
        KeyCommand::Retire(selection) => rotation::retire(config, &selection).await?,
    }
    Ok(())
}

/// Reads the key from standard input. Never an argument, because other users can see those.
fn read_key() -> anyhow::Result<Sensitive<String>> {
    // Longer than any key, so that the buffer is never reallocated.
    let mut text = Sensitive::new(String::with_capacity(KEY_BYTES_MAX));
    std::io::stdin()
        .take(KEY_BYTES_MAX as u64)
        .read_to_string(text.expose_mut())
        .context("cannot read the key from standard input")?;
    let key = Sensitive::new(text.expose().trim_end_matches(['\r', '\n']).to_owned());
    if key.expose().is_empty() {
        bail!("standard input is empty: run `cloakroom key import ... < FILE`");
    }
    Ok(key)
}
