//! `cloakroom webhook`: endpoints of tenants, replays, and the key that signs deliveries.

use anyhow::bail;
use clap::{Args, Subcommand, ValueEnum};
use cloakroom::config::Config;
use cloakroom::tenants;
use cloakroom::webhooks::deliveries::{self, ReplayRange, Selection, State};
use cloakroom::webhooks::{signatures, webhooks};
use jiff::Timestamp;
use uuid::Uuid;

use crate::manage::open;

#[derive(Subcommand)]
pub(crate) enum WebhookCommand {
    /// List the webhooks of a tenant
    List {
        #[arg(long)]
        tenant: Uuid,
    },
    /// Deliver events again: one, or those of a time range
    Replay(Replay),
    /// Enable a webhook that was disabled after three days of failures
    Enable {
        #[arg(long)]
        tenant: Uuid,
        #[arg(long)]
        webhook: Uuid,
    },
    /// Create a new key that signs deliveries; receivers can verify with the previous one until the next rotation
    RotateKey,
}

#[derive(Args)]
pub(crate) struct Replay {
    #[arg(long)]
    tenant: Uuid,
    #[arg(long)]
    webhook: Uuid,
    /// One event
    #[arg(long, conflicts_with_all = ["from", "to", "state"])]
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
            let tenant = tenants::find(&vault, tenant).await?;
            for webhook in webhooks::list_of(&vault, tenant.id).await? {
                let status = match webhook.is_enabled {
                    true => "enabled",
                    false => "disabled",
                };
                print_line!("{}  {status:8}  {}", webhook.id, webhook.name);
            }
        }
        WebhookCommand::Replay(replay) => {
            let tenant = tenants::find(&vault, replay.tenant).await?;
            let selection = replay.selection()?;
            let replayed =
                deliveries::replay_as_operator(&vault, tenant.id, replay.webhook, selection);
            let replayed = replayed.await?;
            print_line!("{} events are pending again", replayed.count);
            if let Some(from) = replayed.next_from {
                print_line!("there may be more; continue with --from {from}");
            }
        }
        WebhookCommand::Enable { tenant, webhook } => {
            let tenant = tenants::find(&vault, tenant).await?;
            webhooks::enable(&vault, tenant.id, webhook).await?;
            print_line!("enabled webhook {webhook}; its pending events are delivered now");
        }
        WebhookCommand::RotateKey => {
            let version = signatures::rotate_key(&vault).await?;
            print_line!(
                "created signing key {version}; every node signs with it within ten seconds"
            );
            print_line!("GET /keys/webhooks.v1.key lists it first, and the previous key after it");
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
