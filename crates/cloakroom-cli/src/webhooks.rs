//! `cloakroom webhook`: endpoints of tenants, replays, and the key that signs deliveries.

use std::time::Duration;

use anyhow::bail;
use clap::{Args, Subcommand, ValueEnum};
use cloakroom::access::Tenant;
use cloakroom::config::Config;
use cloakroom::webhooks::deliveries::{self, ReplayRange, Selection, State};
use cloakroom::webhooks::webhooks::Webhook;
use cloakroom::webhooks::{signatures, webhooks};
use cloakroom::{Vault, tenants};
use jiff::Timestamp;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::manage::{find_tenant, open, parse_id};
use crate::output::{print_list, print_result};

#[derive(Subcommand)]
pub(crate) enum WebhookCommand {
    /// List webhooks, with the age of the oldest event that waits for delivery
    List {
        /// Tenant id or name [default: all tenants]
        #[arg(long)]
        tenant: Option<String>,
    },
    /// Deliver events again: one, or those of a time range
    Replay(Replay),
    /// Enable a webhook that was disabled after three days of failures
    Enable {
        /// Tenant id or name
        #[arg(long)]
        tenant: String,
        /// Id of the webhook, from `cloakroom webhook list`
        #[arg(long, value_parser = parse_id)]
        webhook: Uuid,
    },
    /// Create a new key that signs deliveries; receivers can verify with the previous one until the next rotation
    RotateKey,
}

#[derive(Args)]
pub(crate) struct Replay {
    /// Tenant id or name
    #[arg(long)]
    tenant: String,
    /// Id of the webhook, from `cloakroom webhook list`
    #[arg(long, value_parser = parse_id)]
    webhook: Uuid,
    /// One event
    #[arg(long, conflicts_with_all = ["from", "to", "state"], value_parser = parse_id)]
    event: Option<Uuid>,
    /// Start of the time range, such as 2030-01-31T12:00:00Z
    #[arg(long, requires = "to")]
    from: Option<Timestamp>,
    /// End of the time range, exclusive
    #[arg(long, requires = "from")]
    to: Option<Timestamp>,
    /// Only events in this state
    #[arg(long, value_enum)]
    state: Option<FinalState>,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum FinalState {
    Delivered,
    Failed,
}

pub(crate) async fn run(config: Config, command: WebhookCommand) -> anyhow::Result<()> {
    let vault = open(config).await?;
    match command {
        WebhookCommand::List { tenant } => list(&vault, tenant.as_deref()).await?,
        WebhookCommand::Replay(replay) => {
            let tenant = find_tenant(&vault, &replay.tenant).await?;
            let selection = replay.selection()?;
            let replayed =
                deliveries::replay_as_operator(&vault, tenant.id, replay.webhook, selection);
            let replayed = replayed.await?;
            let (count, next) = (replayed.count, replayed.next_from);
            let mut lines = vec![format!("{count} events are pending again")];
            lines
                .extend(next.map(|from| format!("there may be more; continue with --from {from}")));
            let next = next.map(|from| from.to_string());
            print_result(&json!({"pending": count, "next_from": next}), &lines);
        }
        WebhookCommand::Enable { tenant, webhook } => {
            let tenant = find_tenant(&vault, &tenant).await?;
            webhooks::enable(&vault, tenant.id, webhook).await?;
            let line = format!("enabled webhook {webhook}; its pending events are delivered now");
            print_result(&json!({"id": webhook}), &[line]);
        }
        WebhookCommand::RotateKey => {
            let version = signatures::rotate_key(&vault).await?;
            let lines = [
                format!(
                    "created signing key {version}; every node signs with it within ten seconds"
                ),
                "GET /keys/webhooks.v1.key lists it first, and the previous key after it"
                    .to_owned(),
            ];
            print_result(&json!({"version": version}), &lines);
        }
    }
    vault.audit.close().await;
    Ok(())
}

/// A webhook with its tenant and how long its oldest event has been pending.
struct Listed {
    tenant: Tenant,
    webhook: Webhook,
    pending: Option<Duration>,
}

async fn list(vault: &Vault, tenant: Option<&str>) -> anyhow::Result<()> {
    let tenants = match tenant {
        Some(tenant) => vec![find_tenant(vault, tenant).await?],
        None => tenants::list(vault).await?,
    };
    let mut listed = Vec::new();
    for tenant in tenants {
        let pending = deliveries::oldest_pending(vault, tenant.id).await?;
        let webhooks = webhooks::list_of(vault, tenant.id).await?;
        listed.extend(webhooks.into_iter().map(|webhook| Listed {
            tenant: tenant.clone(),
            pending: pending.get(&webhook.id).copied(),
            webhook,
        }));
    }
    print_list(&listed, Listed::to_json, Listed::to_line);
    Ok(())
}

impl Listed {
    fn status(&self) -> &'static str {
        match self.webhook.is_enabled {
            true => "enabled",
            false => "disabled",
        }
    }

    fn to_json(&self) -> Value {
        json!({
            "id": self.webhook.id,
            "tenant_id": self.tenant.id.uuid,
            "status": self.status(),
            "name": self.webhook.name,
            "oldest_pending_seconds": self.pending.map(|age| age.as_secs()),
        })
    }

    fn to_line(&self) -> String {
        let pending = match self.pending {
            Some(age) => format!("pending for {}", format_age(age)),
            None => "nothing pending".to_owned(),
        };
        let (id, status, name) = (self.webhook.id, self.status(), &self.webhook.name);
        format!(
            "{id}  {status:8}  {pending:18}  {name}  (tenant {})",
            self.tenant.name
        )
    }
}

/// The age in its largest unit, rounded down.
fn format_age(age: Duration) -> String {
    match age.as_secs() {
        seconds if seconds < 120 => format!("{seconds} s"),
        seconds if seconds < 2 * 60 * 60 => format!("{} min", seconds / 60),
        seconds => format!("{} h", seconds / 3600),
    }
}

impl Replay {
    fn selection(&self) -> anyhow::Result<Selection> {
        if let Some(event) = self.event {
            return Ok(Selection::Event(event));
        }
        let (Some(from), Some(to)) = (self.from, self.to) else {
            bail!("name one event with --event, or a time range with --from and --to");
        };
        let state = self.state.map(|state| match state {
            FinalState::Delivered => State::Delivered,
            FinalState::Failed => State::Failed,
        });
        Ok(Selection::Range(ReplayRange { from, to, state }))
    }
}
