//! `cloakroom access`: accepts rows that were changed outside the vault.

use std::process::ExitCode;

use clap::Subcommand;
use cloakroom::access::Anchored;
use cloakroom::config::Config;
use cloakroom::{access, access_change};
use serde_json::json;

use crate::manage::{EFFECTIVE_WITHIN, find_tenant, open};
use crate::output::{print_if_json, to_strings};

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
    let findings: Vec<_> = findings
        .iter()
        .filter(|finding| finding.contains(&name))
        .collect();
    for finding in &findings {
        print_text!("  {finding}");
    }
    let findings = to_strings(&findings);
    if !confirm {
        print_text!("nothing was changed; --confirm accepts the present rows of tenant {name}");
        print_if_json(|| json!({"tenant_id": name, "findings": findings, "accepted": false}));
        return Ok(ExitCode::FAILURE);
    }
    let written = access_change::reanchor(&vault, tenant.id, what).await?;
    vault.audit.close().await;
    let (rows, buckets) = (written.rows, written.generations.len());
    print_text!("accepted {rows} rows in {buckets} buckets of tenant {name}; {EFFECTIVE_WITHIN}");
    print_if_json(
        || json!({"tenant_id": name, "findings": findings, "accepted": true, "rows": rows, "buckets": buckets}),
    );
    Ok(ExitCode::SUCCESS)
}
