//! `cloakroom limits`: which limits a request meets, and why.

use std::net::{IpAddr, Ipv4Addr};

use clap::{Args, Subcommand};
use cloakroom::access::{RateLimit, TenantKind};
use cloakroom::config::Config;
use cloakroom::rate_limits::{Asked, AskedKey, Explained, Table, written};
use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, ContentArrangement};
use uuid::Uuid;

use crate::manage::{self, AppType, TenantType};

#[derive(Subcommand)]
pub(crate) enum LimitsCommand {
    /// Show every limit, and which of them a request meets
    Show(ShowArguments),
}

#[derive(Args)]
pub(crate) struct ShowArguments {
    /// The method of the request
    #[arg(long, value_name = "METHOD", default_value = "POST")]
    method: String,
    /// Its path, such as /tokens or /tokens/{id}
    #[arg(long, value_name = "PATH", default_value = "/tokens")]
    path: String,
    /// The type of the application whose key it has
    #[arg(long, value_enum, value_name = "TYPE", default_value = "private")]
    application: AppType,
    /// The type of its tenant
    #[arg(long, value_enum, value_name = "TYPE", default_value = "production")]
    tenant_kind: TenantType,
    /// A tenant by id or name, in place of its type; its quota is looked up
    #[arg(long, value_name = "ID OR NAME", conflicts_with = "tenant_kind")]
    tenant: Option<String>,
    /// The key is a legacy key
    #[arg(long)]
    legacy: bool,
    /// It has no valid key
    #[arg(long, conflicts_with_all = ["legacy", "tenant"])]
    without_key: bool,
    /// The address that it comes from
    #[arg(long, default_value_t = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)))]
    address: IpAddr,
}

pub(crate) async fn run(config: Config, command: LimitsCommand) -> anyhow::Result<()> {
    let LimitsCommand::Show(arguments) = command;
    let table = Table::load(&config.limits)?;
    let (tenant, rate_limit) = match &arguments.tenant {
        None => (arguments.tenant_kind.kind(), RateLimit::Default),
        Some(named) => tenant_of(config.clone(), named).await?,
    };
    let key = AskedKey {
        id: Uuid::nil(),
        tenant,
        application: arguments.application.kind(),
        is_legacy: arguments.legacy,
        rate_limit,
    };
    let asked = Asked {
        method: &arguments.method.to_uppercase(),
        route: &arguments.path,
        address: arguments.address,
        key: (!arguments.without_key).then_some(key),
        proxy: None,
    };
    let explained = table.explain(&asked, &config.limits.exempt_addresses);
    say!("{}\n", request(&asked));
    say!("{}", drawn(&explained));
    say!("\n{}", lowest(&explained));
    if !config.limits.enabled {
        say!("Nothing of this holds at present: limits.enabled is false.");
    }
    Ok(())
}

/// The type of a tenant and its quota.
async fn tenant_of(config: Config, named: &str) -> anyhow::Result<(TenantKind, RateLimit)> {
    let vault = manage::open(config).await?;
    let tenant = manage::tenant_named(&vault, named).await?;
    Ok((
        tenant.kind,
        tenant.quotas.or_default(&vault.config).rate_limit,
    ))
}

fn request(asked: &Asked<'_>) -> String {
    let Asked {
        method,
        route,
        address,
        ..
    } = asked;
    let who = match &asked.key {
        None => "without a valid key".to_owned(),
        Some(key) => {
            let kind = if key.is_legacy {
                "the legacy key"
            } else {
                "a key"
            };
            let quota = match key.rate_limit {
                RateLimit::Default => String::new(),
                quota => format!(" whose rate limit is {quota}"),
            };
            let (application, tenant) = (key.application, key.tenant.name());
            format!("with {kind} of a {application} application of a {tenant} tenant{quota}")
        }
    };
    format!("{method} {route} {who}, from {address}:")
}

fn drawn(explained: &[Explained<'_>]) -> comfy_table::Table {
    let mut table = comfy_table::Table::new();
    table
        .load_style(NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_header([
            "",
            "limit",
            "requests",
            "in",
            "counted by",
            "beyond",
            "applies to",
        ]);
    for one in explained {
        let row = one.row;
        let mark = match (one.objection, one.is_lowest) {
            (None, true) => "lowest",
            (None, false) => "applies",
            (Some(objection), _) => objection,
        };
        table.add_row([
            mark,
            &row.name,
            &one.limit.to_string(),
            &written(row.window),
            row.counted.name(),
            &row.action.to_string(),
            &row.scope(),
        ]);
    }
    if let Some(column) = table.column_mut(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn lowest(explained: &[Explained<'_>]) -> String {
    match explained.iter().find(|one| one.is_lowest) {
        None => "No limit applies.".to_owned(),
        Some(one) => {
            let (name, window) = (&one.row.name, written(one.row.window));
            let (limit, counter) = (one.limit, one.row.counted.name());
            format!("The lowest is {name}: {limit} requests in {window}, counted by {counter}.")
        }
    }
}
