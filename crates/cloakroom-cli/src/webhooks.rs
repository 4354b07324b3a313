//! `cloakroom webhook`: endpoints of tenants, replays, and the key that signs deliveries.

use anyhow::bail;
use clap::{Args, Subcommand, ValueEnum};
use cloakroom::config::Config;
use cloakroom::webhooks::deliveries::{self, ReplayRange, Selection, State};
use cloakroom::webhooks::{signatures, webhooks};
use jiff::Timestamp;
use serde_json::json;
use uuid::Uuid;

use crate::manage::{find_tenant, open, parse_id};
use crate::output::{print_list, print_result};

#[derive(Subcommand)]
pub(crate) enum WebhookCommand {
    /// List the webhooks of a tenant
    List {
        /// Tenant id or name
        #[arg(long)]
        tenant: String,
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
        WebhookCommand::List { tenant } => {
            let tenant = find_tenant(&vault, &tenant).await?;
            let status = |is_enabled| match is_enabled {
                true => "enabled",
                false => "disabled",
            };
            print_list(
                &webhooks::list_of(&vault, tenant.id).await?,
                |it| json!({"id": it.id, "status": status(it.is_enabled), "name": it.name}),
                |it| format!("{}  {:8}  {}", it.id, status(it.is_enabled), it.name),
            );
        }
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
