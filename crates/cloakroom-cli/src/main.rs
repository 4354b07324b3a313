//! The `cloakroom` command: what an operator or developer types.

/// Prints a line; a reader that has left (`| head -1`) is no reason to panic.
macro_rules! say {
    ($($words:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stdout(), $($words)*);
    }};
}

mod audit;
mod bins;
mod configuration;
mod deprecations;
mod dev;
mod doctor;
mod erasures;
mod formulas;
mod harden;
mod limits;
mod manage;
mod members;
mod migrate;
mod node;
mod rate_limits;
mod serve;
mod simulated;
mod threeds_simulator;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use cloakroom::config::Config;
use mimalloc::MiMalloc;
use zeroizing_alloc::ZeroAlloc;

/// A fifth of the time of a request went to the allocator of the C library. Whatever is given back is wiped first,
/// wherever it came from: what passes through libraries is not theirs to keep.
#[global_allocator]
static ALLOCATOR: ZeroAlloc<MiMalloc> = ZeroAlloc(MiMalloc);

/// Room for a request that passes every gate, also without optimization. Only what is used costs memory.
const STACK_BYTES: usize = 8 * 1024 * 1024;

/// A token vault that you run yourself.
#[derive(Parser)]
#[command(name = "cloakroom", version, arg_required_else_help = true)]
struct Arguments {
    /// The configuration file. Settings can also come from CLOAKROOM__SECTION__KEY variables.
    #[arg(long, global = true, env = "CLOAKROOM_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,

    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run a throw-away vault on this machine, with a test tenant and keys
    Dev(dev::DevArguments),
    /// Run a node of the vault
    Serve,
    /// Bring the database schema up to date
    Migrate(migrate::MigrateArguments),
    /// Tell what is wrong with database, keys, clock and migrations
    Doctor,
    /// Check and explain the configuration
    #[command(subcommand)]
    Config(configuration::ConfigCommand),
    /// Make the root key
    #[command(subcommand)]
    RootKey(manage::RootKeyCommand),
    /// Make, list and change tenants
    #[command(subcommand)]
    Tenant(manage::TenantCommand),
    /// Make, list and delete applications
    #[command(subcommand)]
    App(manage::AppCommand),
    /// Make, import, list and delete API keys
    #[command(subcommand)]
    Key(manage::KeyCommand),
    /// Add and list the people of a tenant
    #[command(subcommand)]
    Member(members::MemberCommand),
    /// Invite people into a tenant
    #[command(subcommand)]
    Invitation(members::InvitationCommand),
    /// Import and examine what is known about BINs
    #[command(subcommand)]
    Bins(bins::BinsCommand),
    /// Examine the record of what was done
    #[command(subcommand)]
    Audit(audit::AuditCommand),
    /// Keep a ledger of what was deleted, and apply it to a restored backup
    #[command(subcommand)]
    Erasures(erasures::ErasuresCommand),
    /// Explain which limits on the rate of requests there are
    #[command(subcommand)]
    Limits(rate_limits::LimitsCommand),
    /// Tell who uses what is deprecated, and what to use instead
    Deprecations(deprecations::DeprecationsArguments),
    /// Show the catalog of connection formulas
    #[command(subcommand)]
    Formulas(formulas::FormulasCommand),
    /// Run simulated card networks and a simulated issuer, for tests of 3-D Secure
    ThreedsSimulator(threeds_simulator::ThreedsSimulatorArguments),
    /// Print the description of the API (OpenAPI 3.1)
    Openapi,
    /// Print what every route needs and every permission opens, as Markdown
    Permissions,
    /// Print the states of 3-D Secure sessions and the rules for authenticating them, as Markdown
    ThreedsRules,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    harden::process();
    match run(arguments) {
        Ok(code) => code,
        Err(error) => {
            report(&error);
            ExitCode::FAILURE
        }
    }
}

#[expect(
    clippy::print_stderr,
    reason = "what went wrong goes to standard error"
)]
fn report(error: &anyhow::Error) {
    eprintln!("cloakroom: {error:#}");
}

fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let load = || Config::load(arguments.config.as_deref());
    let runtime = || {
        tokio::runtime::Builder::new_multi_thread()
            .thread_stack_size(STACK_BYTES)
            .enable_all()
            .build()
    };
    match arguments.command {
        Command::Dev(dev) => runtime()?.block_on(dev::run(dev))?,
        Command::Serve => runtime()?.block_on(serve::run(load()?))?,
        Command::Migrate(migrate) => runtime()?.block_on(migrate::run(&load()?, migrate))?,
        Command::Doctor => return runtime()?.block_on(doctor::run(&load()?)),
        Command::Config(command) => {
            return configuration::run(&command, arguments.config.as_deref());
        }
        Command::RootKey(command) => manage::root_key(&command)?,
        Command::Tenant(command) => runtime()?.block_on(manage::tenant(load()?, command))?,
        Command::App(command) => runtime()?.block_on(manage::app(load()?, command))?,
        Command::Key(command) => runtime()?.block_on(manage::key(load()?, command))?,
        Command::Member(command) => runtime()?.block_on(members::member(load()?, command))?,
        Command::Invitation(command) => {
            runtime()?.block_on(members::invitation(load()?, command))?;
        }
        Command::Bins(command) => runtime()?.block_on(bins::run(load()?, command))?,
        Command::Audit(command) => return runtime()?.block_on(audit::run(load()?, command)),
        Command::Erasures(command) => runtime()?.block_on(erasures::run(load()?, command))?,
        Command::Limits(command) => runtime()?.block_on(rate_limits::run(load()?, command))?,
        Command::Deprecations(table) if table.markdown => {
            say!("{}", cloakroom::deprecations::reference().trim_end());
        }
        Command::Deprecations(asked) => {
            runtime()?.block_on(deprecations::run(load()?, asked))?;
        }
        Command::Formulas(command) => formulas::run(command)?,
        Command::ThreedsSimulator(simulator) => {
            runtime()?.block_on(threeds_simulator::run(simulator))?;
        }
        Command::Openapi => say!("{}", cloakroom::router::document_text().as_str().trim_end()),
        Command::Permissions => say!("{}", cloakroom::doors::reference().trim_end()),
        Command::ThreedsRules => say!("{}", cloakroom::threeds::reference().trim_end()),
    }
    Ok(ExitCode::SUCCESS)
}
