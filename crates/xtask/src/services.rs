//! A private PostgreSQL and Redis, for one command or until `services down`.

use std::ffi::OsString;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Subcommand;
use cloakroom_devtools::{process, servers, workspace};
use cloakroom_scratch::{Error, Place, Postgres, PostgresOptions, Redis, RedisOptions};
use nix::unistd::Uid;

const DATABASE_URL: &str = "CLOAKROOM_TEST_DATABASE_URL";
const DATABASE_LOG: &str = "CLOAKROOM_TEST_DATABASE_LOG";
const DATABASE_DATA: &str = "CLOAKROOM_TEST_DATABASE_DATA";
const REDIS_URL: &str = "CLOAKROOM_TEST_REDIS_URL";
const ENVIRONMENT_FILE: &str = "environment";

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Start both and leave them running; prints the environment variables of the tests
    Up,
    /// Stop the servers that `up` started and delete their data
    Down,
    /// Start both, run a command with their addresses in its environment, and stop them
    Run {
        #[arg(last = true, required = true)]
        command: Vec<OsString>,
    },
}

pub(crate) fn run(command: Command) -> Result<ExitCode> {
    match command {
        Command::Up => up(&folder()).map(|()| ExitCode::SUCCESS),
        Command::Down => down(&folder()).map(|()| ExitCode::SUCCESS),
        Command::Run { command } => run_command(&command),
    }
}

/// Both servers, or those that the environment specifies.
pub(crate) struct Services {
    _owned: Option<(Postgres, Redis)>,
    variables: Vec<(&'static str, String)>,
}

impl Services {
    /// Starts servers that stop when dropped, unless the environment specifies some.
    pub(crate) fn start() -> Result<Self> {
        if [DATABASE_URL, REDIS_URL]
            .iter()
            .all(|name| std::env::var_os(name).is_some())
        {
            println!("services: using the servers in {DATABASE_URL} and {REDIS_URL}");
            return Ok(Self {
                _owned: None,
                variables: Vec::new(),
            });
        }
        let postgres = start_postgres(Place::Temporary)?;
        let redis = start_redis(Place::Temporary)?;
        let variables = variables(&postgres, &redis);
        Ok(Self {
            _owned: Some((postgres, redis)),
            variables,
        })
    }

    /// The environment variables with the addresses of the servers.
    pub(crate) fn variables(&self) -> &[(&'static str, String)] {
        &self.variables
    }
}

fn run_command(words: &[OsString]) -> Result<ExitCode> {
    let (program, arguments) = words.split_first().context("no command given")?;
    let services = Services::start()?;
    let mut command = std::process::Command::new(program);
    command.args(arguments).envs(
        services
            .variables()
            .iter()
            .map(|(name, value)| (name, value)),
    );
    let status = process::run(command)?;
    drop(services);
    Ok(ExitCode::from(process::exit_code(status)))
}

fn up(folder: &Path) -> Result<()> {
    let environment_file = folder.join(ENVIRONMENT_FILE);
    make_folder(folder)?;
    let postgres = match start_postgres(Place::Persistent(folder.join("postgres"))) {
        Ok(postgres) => postgres,
        Err(error) if is_running(&error) && environment_file.exists() => {
            print!("{}", std::fs::read_to_string(environment_file)?);
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    let redis = start_redis(Place::Persistent(folder.join("redis")))?;
    let exports: String = variables(&postgres, &redis)
        .iter()
        .map(|(name, value)| format!("export {name}='{value}'\n"))
        .collect();
    write_private(&environment_file, &exports)?;
    postgres.leave_running();
    redis.leave_running();
    print!("{exports}");
    Ok(())
}

fn is_running(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(Error::Running { .. }))
}

fn down(folder: &Path) -> Result<()> {
    let postgres_stopped = Postgres::stop_left_running(&folder.join("postgres"))?;
    let redis_stopped = Redis::stop_left_running(&folder.join("redis"))?;
    if folder.exists() {
        std::fs::remove_dir_all(folder).with_context(|| folder.display().to_string())?;
    }
    match (postgres_stopped, redis_stopped) {
        (false, false) => println!("services: nothing was running"),
        _ => println!("services: stopped, data deleted"),
    }
    Ok(())
}

fn start_postgres(place: Place) -> Result<Postgres> {
    servers::start_postgres(PostgresOptions {
        place,
        // Tests that need durability start a server of their own. Each test leaves a database to drop, and each drop
        // would wait for the disk.
        settings: vec![("fsync".to_owned(), "off".to_owned())],
        ..PostgresOptions::default()
    })
}

fn start_redis(place: Place) -> Result<Redis> {
    servers::start_redis(RedisOptions {
        place,
        ..RedisOptions::default()
    })
}

fn variables(postgres: &Postgres, redis: &Redis) -> Vec<(&'static str, String)> {
    vec![
        (DATABASE_URL, postgres.url()),
        (DATABASE_LOG, postgres.log_file().display().to_string()),
        (DATABASE_DATA, postgres.data_folder().display().to_string()),
        (REDIS_URL, redis.url()),
    ]
}

/// One folder per copy of the workspace, so that two copies do not share servers.
fn folder() -> PathBuf {
    let mut hasher = DefaultHasher::new();
    workspace::root().hash(&mut hasher);
    std::env::temp_dir().join(format!("cloakroom-services-{:016x}", hasher.finish()))
}

/// Creates the folder, or verifies its owner: other users can guess its name.
fn make_folder(folder: &Path) -> Result<()> {
    // The user `postgres` needs access to subfolders.
    match std::fs::DirBuilder::new().mode(0o755).create(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
            return Err(error).with_context(|| folder.display().to_string());
        }
        _ => {}
    }
    let found = std::fs::symlink_metadata(folder)?;
    if !found.is_dir() || found.uid() != Uid::effective().as_raw() {
        bail!("{} belongs to another user", folder.display());
    }
    Ok(())
}

fn write_private(path: &Path, text: &str) -> Result<()> {
    let mut file = std::fs::File::options()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)?;
    std::io::Write::write_all(&mut file, text.as_bytes())?;
    Ok(())
}
