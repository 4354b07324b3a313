//! `cloakroom deprecations`: lists clients that use deprecated features, and the replacements.

use clap::Args;
use cloakroom::access::Tenant;
use cloakroom::config::{self, Config};
use cloakroom::deprecations::{ALL, Deprecation, FeatureUsage};
use cloakroom::{Vault, deprecations, tenants};
use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, ContentArrangement};
use serde_json::{Value, json};

use crate::manage;
use crate::output::is_json;

#[derive(Args)]
pub(crate) struct DeprecationsArguments {
    /// Only this tenant: id or name
    #[arg(long, value_name = "TENANT")]
    tenant: Option<String>,
    /// Print the calls as JSON
    #[arg(long)]
    json: bool,
    /// Print all deprecated features, as Markdown; needs no vault
    #[arg(long, conflicts_with_all = ["tenant", "json"])]
    pub(crate) markdown: bool,
}

pub(crate) async fn run(config: Config, arguments: DeprecationsArguments) -> anyhow::Result<()> {
    let vault = manage::open(config).await?;
    let tenants = match &arguments.tenant {
        Some(id_or_name) => vec![manage::find_tenant(&vault, id_or_name).await?],
        None => tenants::list(&vault).await?,
    };
    let usage = usage(&vault, tenants).await?;
    if arguments.json || is_json() {
        let usage: Vec<Value> = usage.iter().map(TenantUsage::to_json).collect();
        print_line!("{}", serde_json::to_string_pretty(&usage)?);
        return Ok(());
    }
    if usage.is_empty() {
        print_line!("No client has used a deprecated feature.");
        return Ok(());
    }
    print_line!("{}\n", usage_table(&usage));
    for row in ALL.iter().map(|it| it.row()) {
        if usage.iter().any(|entry| entry.used.name == row.name) {
            let status = status(row, &vault.config.deprecated);
            print_line!("{}: {} ({status}).", row.name, row.replacement);
        }
    }
    print_line!("See docs/api/deprecations.md for how to migrate.");
    Ok(())
}

/// Calls of a deprecated feature by an application of a tenant.
struct TenantUsage {
    tenant: Tenant,
    used: FeatureUsage,
}

async fn usage(vault: &Vault, tenants: Vec<Tenant>) -> anyhow::Result<Vec<TenantUsage>> {
    let mut usage = Vec::new();
    for tenant in tenants {
        let list = deprecations::list(&vault.db, tenant.id).await?;
        usage.extend(list.into_iter().map(|used| TenantUsage {
            tenant: tenant.clone(),
            used,
        }));
    }
    Ok(usage)
}

fn usage_table(usage: &[TenantUsage]) -> comfy_table::Table {
    let mut table = comfy_table::Table::new();
    table
        .load_style(NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_header(["used", "tenant", "application", "calls", "first", "last"]);
    for TenantUsage { tenant, used } in usage {
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

/// Whether this deployment still serves the feature, and until when that was promised.
fn status(row: &Deprecation, settings: &config::Deprecated) -> String {
    match (row.is_gone(settings), row.until) {
        (true, _) => "removed".to_owned(),
        (false, Some(until)) => format!("{}; promised until {until}", row.treatment.name()),
        (false, None) => row.treatment.name().to_owned(),
    }
}

impl TenantUsage {
    fn to_json(&self) -> Value {
        let Self { tenant, used } = self;
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
}
