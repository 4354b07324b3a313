//! Statements that find tokens in a full table: their plans, and the cost of page 1000.

mod case;
mod cases;
mod database;
mod fill;
mod growth;
mod hard;
mod page;
mod plan;
mod prepared;
mod report;
mod shape;

use anyhow::{Result, bail};
use cloakroom_devtools::service_sql::ServiceSql;

use self::database::Database;
use crate::runtime;

/// The minimum for a page 1000 of every measured list.
const TOKENS_MIN: u64 = 100_000;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Number of tokens in the table
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(TOKENS_MIN..))]
    tokens: u64,
    /// Print the plans
    #[arg(long)]
    plans: bool,
    #[command(flatten)]
    growth: growth::Growing,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let sql = ServiceSql::load()?;
    runtime::run(examine_or_grow(arguments, &sql))
}

async fn examine_or_grow(arguments: &Arguments, sql: &ServiceSql) -> Result<()> {
    match arguments.growth.is_given() {
        true => growth::run(&arguments.growth, sql).await,
        false => examine(arguments, sql).await,
    }
}

async fn examine(arguments: &Arguments, sql: &ServiceSql) -> Result<()> {
    let database = Database::start(sql).await?;
    fill::fill(&database, arguments.tokens).await?;
    println!("scale: {}", database.describe().await?);
    prepared::prepare_all(sql, &database).await?;

    let cases = cases::all(&database).await?;
    prepared::require_cases(sql, &cases)?;
    let tried = plan::try_all(&database, &cases, arguments.plans).await?;
    println!("\n{}", report::statements(&tried));
    let pages = page::measure_all(&database).await?;
    println!("\n{}", report::pages(&pages));
    let hard = hard::measure_all(&database, arguments.tokens).await?;
    println!("\n{}", report::hard(&hard));

    // Only counted costs fail: other load on the machine changes times, but neither plans nor blocks.
    for complaint in pages.iter().filter_map(page::Measured::complaint) {
        println!("scale: {complaint}");
    }
    let complaints: Vec<String> = tried.iter().flat_map(plan::Tried::complaints).collect();
    if complaints.is_empty() {
        return Ok(());
    }
    bail!("{}", complaints.join("\n"))
}
