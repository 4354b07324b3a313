//! The `cloakroom` command for operators and developers.

/// Prints a line to standard output. Ignores a closed pipe (`| head -1`).
macro_rules! print_line {
    ($($arguments:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stdout(), $($arguments)*);
    }};
}

/// Prints a line of text; nothing with `--output json`, whose result is printed at the end.
macro_rules! print_text {
    ($($arguments:tt)*) => {{
        if !$crate::output::is_json() {
            print_line!($($arguments)*);
        }
    }};
}

mod access;
mod audit;
mod bins;
mod configuration;
mod crypto;
mod deprecations;
mod dev;
mod doctor;
mod erasures;
mod formulas;
mod grants;
mod harden;
mod histories;
mod key_actions;
mod manage;
mod members;
mod migrate;
mod node;
mod operator;
mod output;
mod package_files;
mod rate_limits;
mod reference;
mod root_key;
mod serve;
mod service_manager;
mod simulator_process;
mod startup;
mod tenant_settings;
mod terminal;
mod threeds_simulator;
mod transfer;
mod webhooks;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use cloakroom::config::Config;
use mimalloc::MiMalloc;
use zeroizing_alloc::ZeroAlloc;

/// mimalloc, because the C library's allocator took a fifth of the time of a request. Freed memory is zeroized,
/// including that of libraries, so that no plaintext remains in it.
#[global_allocator]
static ALLOCATOR: ZeroAlloc<MiMalloc> = ZeroAlloc(MiMalloc);

/// Enough for a request through the whole middleware stack, also in debug builds. Only used pages cost memory.
const STACK_BYTES: usize = 8 * 1024 * 1024;

/// The heading of options that every command has.
const GLOBAL: &str = "Options of all commands";

/// A self-hosted token vault
#[derive(Parser)]
#[command(name = "cloakroom", version, arg_required_else_help = true)]
struct Arguments {
    /// Configuration file; settings can also be set with CLOAKROOM__SECTION__KEY environment variables
    #[arg(long, global = true, env = "CLOAKROOM_CONFIG", value_name = "FILE", help_heading = GLOBAL)]
    config: Option<PathBuf>,

    /// Your name, added to the user and host of this command in the audit log
    #[arg(long = "as", global = true, value_name = "NAME", help_heading = GLOBAL)]
    operator: Option<String>,

    /// Format of the result; commands that print a document, and `serve`, ignore it
    #[arg(long, global = true, value_name = "FORMAT", default_value = "text", help_heading = GLOBAL)]
    output: output::Format,

    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run a temporary vault on this machine, with a test tenant and keys
    Dev(dev::DevArguments),
    /// Run a node
    Serve,
    /// Migrate the database schema to the current version
    Migrate(migrate::MigrateArguments),
    /// Check database, keys, clock and migrations for problems
    Doctor(doctor::DoctorArguments),
    /// Validate and document the configuration
    #[command(subcommand)]
    Config(configuration::ConfigCommand),
    /// Create the root key, split it into shares, and unseal nodes
    #[command(subcommand)]
    RootKey(root_key::RootKeyCommand),
    /// Create, list and change tenants
    #[command(subcommand)]
    Tenant(manage::TenantCommand),
    /// Create, list and delete applications
    #[command(subcommand)]
    App(manage::AppCommand),
    /// Create, import, list and delete API keys
    #[command(subcommand)]
    Key(manage::KeyCommand),
    /// Add and list the members of a tenant
    #[command(subcommand)]
    Member(members::MemberCommand),
    /// Invite members into a tenant
    #[command(subcommand)]
    Invitation(members::InvitationCommand),
    /// List and enable webhooks, replay events, and rotate the key that signs deliveries
    #[command(subcommand)]
    Webhook(webhooks::WebhookCommand),
    /// Import and query BIN ranges
    #[command(subcommand)]
    Bins(bins::BinsCommand),
    /// List the cryptography in use: keys, algorithms, certificates and libraries
    #[command(subcommand)]
    Crypto(crypto::CryptoCommand),
    /// Accept the present rows of a tenant after they were changed outside the vault
    #[command(subcommand)]
    Access(access::AccessCommand),
    /// Verify and export the audit log
    #[command(subcommand)]
    Audit(audit::AuditCommand),
    /// Write a ledger of deletions, and apply it to a restored backup
    #[command(subcommand)]
    Erasures(erasures::ErasuresCommand),
    /// Import tokens from JSON lines, CSV, or an export of another vault
    Import(Box<transfer::ImportArguments>),
    /// Export tokens, encrypted to a receiver's key, after two persons agreed
    #[command(subcommand)]
    Export(transfer::ExportCommand),
    /// Explain which rate limits apply to a request
    #[command(subcommand)]
    Limits(rate_limits::LimitsCommand),
    /// List clients that use deprecated features, and the replacements
    Deprecations(deprecations::DeprecationsArguments),
    /// Show the catalog of connection formulas
    #[command(subcommand)]
    Formulas(formulas::FormulasCommand),
    /// Run simulated card networks and a simulated issuer for 3-D Secure tests
    ThreedsSimulator(threeds_simulator::ThreedsSimulatorArguments),
    /// Print the OpenAPI 3.1 description of the API
    Openapi,
    /// Print a shell script that completes the commands and options of `cloakroom`
    Completions {
        /// Shell that runs the script
        shell: clap_complete::Shell,
    },
    /// Write a manual page for each command into a folder
    ManPages {
        /// Folder to write to
        folder: PathBuf,
    },
    /// Print the catalog of error codes, as Markdown
    Errors,
    /// Print the metrics of a node, as Markdown
    Metrics,
    /// Print the permissions that each route requires, as Markdown
    Permissions,
    /// Print the states of 3-D Secure sessions and the authentication rules, as Markdown
    ThreedsRules,
    /// Print the reference of the command line, as Markdown
    #[command(hide = true)]
    CliReference,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    harden::process();
    operator::set_name(arguments.operator.clone());
    output::set_format(arguments.output);
    let allowed = operator::check_configuration(arguments.config.as_deref());
    match allowed.and_then(|()| run(arguments)) {
        Ok(code) => code,
        Err(error) => {
            report(&error);
            ExitCode::FAILURE
        }
    }
}

#[expect(clippy::print_stderr, reason = "errors are printed to standard error")]
fn report(error: &anyhow::Error) {
    eprintln!("cloakroom: {error:#}");
}

fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let load_with = |defaults: &[(&str, &str)]| {
        Config::load_with_defaults(arguments.config.as_deref(), defaults)
    };
    let load = || load_with(&[]);
    let runtime = || {
        tokio::runtime::Builder::new_multi_thread()
            .thread_stack_size(STACK_BYTES)
            .enable_all()
            .build()
    };
    match arguments.command {
        Command::Dev(dev) => runtime()?.block_on(dev::run(load_with(&dev.defaults())?, dev))?,
        Command::Serve => runtime()?.block_on(serve::run(load()?))?,
        Command::Migrate(migrate) => runtime()?.block_on(migrate::run(&load()?, migrate))?,
        Command::Doctor(doctor) => {
            let path = arguments.config.as_deref();
            return runtime()?.block_on(doctor::run(&load()?, path, &doctor));
        }
        Command::Config(command) => {
            let runtime = runtime()?;
            let _entered = runtime.enter();
            return configuration::run(&command, arguments.config.as_deref());
        }
        Command::RootKey(command) => runtime()?.block_on(root_key::run(load, command))?,
        Command::Tenant(command) => runtime()?.block_on(manage::tenant(load()?, command))?,
        Command::App(command) => runtime()?.block_on(manage::app(load()?, command))?,
        Command::Key(command) => runtime()?.block_on(manage::key(load()?, command))?,
        Command::Member(command) => runtime()?.block_on(members::member(load()?, command))?,
        Command::Invitation(command) => {
            runtime()?.block_on(members::invitation(load()?, command))?;
        }
        Command::Webhook(command) => runtime()?.block_on(webhooks::run(load()?, command))?,
        Command::Bins(command) => runtime()?.block_on(bins::run(load()?, command))?,
        Command::Crypto(command) => runtime()?.block_on(crypto::run(&load()?, command))?,
        Command::Access(command) => return runtime()?.block_on(access::run(load()?, command)),
        Command::Audit(command) => return runtime()?.block_on(audit::run(load, command)),
        Command::Erasures(command) => runtime()?.block_on(erasures::run(load()?, command))?,
        Command::Import(arguments) => {
            return runtime()?.block_on(transfer::import(load()?, *arguments));
        }
        Command::Export(command) => runtime()?.block_on(transfer::export(load, command))?,
        Command::Limits(command) => runtime()?.block_on(rate_limits::run(load()?, command))?,
        Command::Deprecations(table) if table.markdown => {
            print_line!("{}", cloakroom::deprecations::reference().trim_end());
        }
        Command::Deprecations(arguments) => {
            runtime()?.block_on(deprecations::run(load()?, arguments))?;
        }
        Command::Formulas(command) => formulas::run(command)?,
        Command::ThreedsSimulator(simulator) => {
            runtime()?.block_on(threeds_simulator::run(simulator))?;
        }
        Command::Openapi => {
            print_line!("{}", cloakroom::router::document_text().as_str().trim_end())
        }
        Command::Completions { shell } => package_files::print_completions(shell)?,
        Command::ManPages { folder } => package_files::write_man_pages(&folder)?,
        Command::Errors => print_line!("{}", cloakroom::api::error_reference().trim_end()),
        Command::Metrics => {
            print_line!("{}", cloakroom::telemetry::catalog::reference().trim_end())
        }
        Command::Permissions => {
            print_line!("{}", cloakroom::route_requirements::reference().trim_end())
        }
        Command::ThreedsRules => {
            print_line!("{}", cloakroom::threeds::sessions::reference().trim_end())
        }
        Command::CliReference => print_line!("{}", reference::markdown().trim_end()),
    }
    Ok(ExitCode::SUCCESS)
}
