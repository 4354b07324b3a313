//! `cloakroom deprecations`: who uses what is deprecated, and what they should use instead.

use clap::Args;
use cloakroom::access::Tenant;
use cloakroom::config::{self, Config};
use cloakroom::deprecations::{ALL, Deprecation, Used};
use cloakroom::{Vault, deprecations, tenants};
use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, ContentArrangement};
use serde_json::{Value, json};

use crate::manage;

#[derive(Args)]
pub(crate) struct DeprecationsArguments {
    /// Only calls of this tenant: its id or its name
    #[arg(long, value_name = "TENANT")]
    tenant: Option<String>,
    /// Print the calls as JSON
    #[arg(long)]
    json: bool,
    /// Print the table of everything that is deprecated, as Markdown; needs no vault
    #[arg(long, conflicts_with_all = ["tenant", "json"])]
    pub(crate) markdown: bool,
}

pub(crate) async fn run(config: Config, arguments: DeprecationsArguments) -> anyhow::Result<()> {
    let vault = manage::open(config).await?;
    let tenants = match &arguments.tenant {
        Some(named) => vec![manage::tenant_named(&vault, named).await?],
        None => tenants::list(&vault).await?,
    };
    let calls = calls(&vault, tenants).await?;
    if arguments.json {
        let calls: Vec<Value> = calls.iter().map(described).collect();
        say!("{}", serde_json::to_string_pretty(&calls)?);
        return Ok(());
    }
    if calls.is_empty() {
        say!("Nobody has used anything that is deprecated.");
        return Ok(());
    }
    say!("{}\n", drawn(&calls));
    for row in ALL.iter().map(|it| it.row()) {
        if calls.iter().any(|(_, used)| used.name == row.name) {
            let standing = standing(row, &vault.config.deprecated);
            say!("{}: {} ({standing}).", row.name, row.replacement);
        }
    }
    say!("docs/api/deprecations.md tells how to move.");
    Ok(())
}

async fn calls(vault: &Vault, tenants: Vec<Tenant>) -> anyhow::Result<Vec<(Tenant, Used)>> {
    let mut calls = Vec::new();
    for tenant in tenants {
        let used = deprecations::list(vault, tenant.id).await?;
        calls.extend(used.into_iter().map(|used| (tenant.clone(), used)));
    }
    Ok(calls)
}

fn drawn(calls: &[(Tenant, Used)]) -> comfy_table::Table {
    let mut table = comfy_table::Table::new();
    table
        .load_style(NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_header(["used", "tenant", "application", "calls", "first", "last"]);
    for (tenant, used) in calls {
        let application = match &used.application_name {
            Some(name) => format!("{name} ({})", used.application),
            None => format!("deleted ({})", used.application),
        };
        table.add_row([
            &used.name,
            &format!("{} ({})", tenant.name, tenant.id.uuid),
            &application,
            &used.calls.to_string(),
            &used.first_at.strftime("%F").to_string(),
            &used.last_at.strftime("%F %R UTC").to_string(),
        ]);
    }
    if let Some(column) = table.column_mut(3) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// What happens to it here, and until when it was promised where it still works.
fn standing(row: &Deprecation, settings: &config::Deprecated) -> String {
    match (row.is_gone(settings), row.until) {
        (true, _) => "gone".to_owned(),
        (false, Some(until)) => format!("{}; promised until {until}", row.treatment.name()),
        (false, None) => row.treatment.name().to_owned(),
    }
}

fn described((tenant, used): &(Tenant, Used)) -> Value {
    json!({
        "name": used.name,
        "tenant_id": tenant.id.uuid,
        "tenant_name": tenant.name,
        "application_id": used.application,
        "application_name": used.application_name,
        "calls": used.calls,
        "first_at": used.first_at.to_string(),
        "last_at": used.last_at.to_string(),
    })
}
