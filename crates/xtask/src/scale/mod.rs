//! How the statements that find tokens behave in a full table: their plans, and what page 1000 costs.

mod case;
mod database;
mod fill;
mod growth;
mod hard;
mod page;
mod plan;
mod report;
mod shape;
mod source;

use anyhow::{Result, bail};
use tokio::signal::unix::{SignalKind, signal};

use self::database::Database;
pub(crate) use self::source::Source;

/// With fewer, there is no page 1000 of everything that is measured.
const TOKENS_MIN: u64 = 100_000;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// How many tokens the table holds
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(TOKENS_MIN..))]
    tokens: u64,
    /// Print the plans as PostgreSQL tells them
    #[arg(long)]
    plans: bool,
    #[command(flatten)]
    growth: growth::Growing,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let source = Source::ask()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        // The losing future is dropped, and with it the server.
        tokio::select! {
            result = examine_or_grow(arguments, &source) => result,
            _ = interrupt.recv() => bail!("interrupted"),
            _ = terminate.recv() => bail!("terminated"),
        }
    })
}

async fn examine_or_grow(arguments: &Arguments, source: &Source) -> Result<()> {
    match arguments.growth.is_given() {
        true => growth::run(&arguments.growth, source).await,
        false => examine(arguments, source).await,
    }
}

async fn examine(arguments: &Arguments, source: &Source) -> Result<()> {
    let database = Database::start(source).await?;
    fill::fill(&database, arguments.tokens).await?;
    println!("scale: {}", database.describe().await?);
    source.prepare_all(&database).await?;

    let cases = case::all(&database).await?;
    source.require_all_tried(&cases)?;
    let tried = plan::try_all(&database, &cases, arguments.plans).await?;
    println!("\n{}", report::statements(&tried));
    let pages = page::measure_all(&database).await?;
    println!("\n{}", report::pages(&pages));
    let hard = hard::measure_all(&database, arguments.tokens).await?;
    println!("\n{}", report::hard(&hard));

    let mut complaints: Vec<String> = tried.iter().flat_map(plan::Tried::complaints).collect();
    complaints.extend(pages.iter().filter_map(page::Measured::complaint));
    if complaints.is_empty() {
        return Ok(());
    }
    bail!("{}", complaints.join("\n"))
}
