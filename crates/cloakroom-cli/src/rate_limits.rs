//! `cloakroom limits`: explains which rate limits apply to a request.

use std::net::{IpAddr, Ipv4Addr};

use clap::{Args, Subcommand};
use cloakroom::access::{RateLimit, TenantKind};
use cloakroom::config::Config;
use cloakroom::rate_limits::{KeyInfo, LimitExplanation, RequestInfo, Table, written};
use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, ContentArrangement};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::manage::{self, AppType, TenantType};
use crate::output::{is_json, print_json};

#[derive(Subcommand)]
pub(crate) enum LimitsCommand {
    /// Show all limits, and which of them apply to a request
    Show(ShowArguments),
}

#[derive(Args)]
pub(crate) struct ShowArguments {
    /// Method of the request
    #[arg(long, value_name = "METHOD", default_value = "POST")]
    method: String,
    /// Path of the request, for example /tokens or /tokens/{id}
    #[arg(long, value_name = "PATH", default_value = "/tokens")]
    path: String,
    /// Application type of the API key
    #[arg(long, value_enum, value_name = "TYPE", default_value = "private")]
    application: AppType,
    /// Tenant type
    #[arg(long, value_enum, value_name = "TYPE", default_value = "production")]
    tenant_kind: TenantType,
    /// Tenant id or name, instead of the type; uses the quota of the tenant
    #[arg(long, value_name = "ID OR NAME", conflicts_with = "tenant_kind")]
    tenant: Option<String>,
    /// The API key is a legacy key
    #[arg(long)]
    legacy: bool,
    /// The request has no valid API key
    #[arg(long, conflicts_with_all = ["legacy", "tenant"])]
    without_key: bool,
    /// Client IP address
    #[arg(long, default_value_t = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)))]
    address: IpAddr,
}

pub(crate) async fn run(config: Config, command: LimitsCommand) -> anyhow::Result<()> {
    let LimitsCommand::Show(arguments) = command;
    let table = Table::load(&config.limits)?;
    let (tenant, rate_limit) = match &arguments.tenant {
        None => (arguments.tenant_kind.kind(), RateLimit::Default),
        Some(id_or_name) => find_tenant(config.clone(), id_or_name).await?,
    };
    let key = KeyInfo {
        id: Uuid::nil(),
        tenant,
        application: arguments.application.kind(),
        is_legacy: arguments.legacy,
        rate_limit,
    };
    let asked = RequestInfo {
        method: &arguments.method.to_uppercase(),
        route: &arguments.path,
        address: arguments.address,
        key: (!arguments.without_key).then_some(key),
        proxy: None,
    };
    let explained = table.explain(&asked, &config.limits.exempt_addresses);
    if is_json() {
        print_json(&explained.iter().map(to_json).collect());
        return Ok(());
    }
    print_line!("{}\n", describe_request(&asked));
    print_line!("{}", limits_table(&explained));
    print_line!("\n{}", describe_lowest(&explained));
    if !config.limits.enabled {
        print_line!("Rate limits are disabled: limits.enabled is false.");
    }
    Ok(())
}

/// The type and the rate limit of a tenant.
async fn find_tenant(config: Config, id_or_name: &str) -> anyhow::Result<(TenantKind, RateLimit)> {
    let vault = manage::open(config).await?;
    let tenant = manage::find_tenant(&vault, id_or_name).await?;
    Ok((
        tenant.kind,
        tenant.quotas.or_default(&vault.config).rate_limit,
    ))
}

fn describe_request(asked: &RequestInfo<'_>) -> String {
    let RequestInfo {
        method,
        route,
        address,
        ..
    } = asked;
    let key = match &asked.key {
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
    format!("{method} {route} {key}, from {address}:")
}

fn to_json(one: &LimitExplanation<'_>) -> Value {
    let row = one.row;
    json!({
        "limit": row.name,
        "requests": one.limit,
        "window": written(row.window),
        "counted_by": row.counted.name(),
        "action": row.action.to_string(),
        "scope": row.scope(),
        "applies": one.objection.is_none(),
        "reason": one.objection,
        "lowest": one.is_lowest,
    })
}

fn limits_table(explained: &[LimitExplanation<'_>]) -> comfy_table::Table {
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

fn describe_lowest(explained: &[LimitExplanation<'_>]) -> String {
    match explained.iter().find(|one| one.is_lowest) {
        None => "No limit applies.".to_owned(),
        Some(one) => {
            let (name, window) = (&one.row.name, written(one.row.window));
            let (limit, counter) = (one.limit, one.row.counted.name());
            format!("The lowest is {name}: {limit} requests in {window}, counted by {counter}.")
        }
    }
}
