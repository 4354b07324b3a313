//! `cloakroom access`: accepts rows that were changed outside the vault.

use std::process::ExitCode;

use clap::Subcommand;
use cloakroom::access::Anchored;
use cloakroom::config::Config;
use cloakroom::{access, access_change};

use crate::manage::{EFFECTIVE_WITHIN, find_tenant, open};

#[derive(Subcommand)]
pub(crate) enum AccessCommand {
    /// Accept the present rows of a tenant as the current ones
    ///
    /// Rows that were restored, added or deleted outside the vault grant nothing. Examine what `doctor` reports first:
    /// afterwards, restored keys and grants are valid again.
    ReAnchor {
        /// Id or name of the tenant
        #[arg(long, value_name = "TENANT")]
        tenant: String,
        /// Accept the rows; without it, only list the differences
        #[arg(long)]
        confirm: bool,
        /// Accept the tenant's keys and their states, and nothing else
        #[arg(long)]
        keys: bool,
    },
}

pub(crate) async fn run(config: Config, command: AccessCommand) -> anyhow::Result<ExitCode> {
    let AccessCommand::ReAnchor {
        tenant,
        confirm,
        keys,
    } = command;
    let what = match keys {
        true => Anchored::Keys,
        false => Anchored::Access,
    };
    let vault = open(config).await?;
    let tenant = find_tenant(&vault, &tenant).await?;
    let name = tenant.id.uuid.to_string();
    let findings = access::verify_states(&vault.db, vault.keys.control()).await?;
    for finding in findings.iter().filter(|finding| finding.contains(&name)) {
        print_line!("  {finding}");
    }
    if !confirm {
        print_line!("nothing was changed; --confirm accepts the present rows of tenant {name}");
        return Ok(ExitCode::FAILURE);
    }
    let written = access_change::reanchor(&vault, tenant.id, what).await?;
    vault.audit.close().await;
    print_line!(
        "accepted {} rows in {} buckets of tenant {name}; {EFFECTIVE_WITHIN}",
        written.rows,
        written.generations.len()
    );
    Ok(ExitCode::SUCCESS)
}
