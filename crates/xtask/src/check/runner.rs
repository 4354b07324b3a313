//! Runs the commands of steps. Their temporary files, among them those of test databases, are in memory.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;
use cloakroom_devtools::{process, servers, workspace};
use cloakroom_scratch::{PREPARED_FOLDER, Place, PostgresOptions};
use nix::sys::statvfs::statvfs;
use tempfile::TempDir;

use super::test_report;

/// Every test has a database, a copy of a thousand small files: on a disk, a third of the time of the tests is that of the
/// file system.
const MEMORY: &str = "/dev/shm";
/// With less, temporary files are where they are by default.
const MEMORY_MIN_BYTES: u64 = 8 << 30;

pub(super) struct Runner {
    own_program: PathBuf,
    memory: Option<Memory>,
}

/// Temporary files in memory.
struct Memory {
    folder: TempDir,
    /// A PostgreSQL that temporary servers copy.
    prepared: PathBuf,
}

impl Runner {
    pub(super) fn new() -> Result<Self> {
        Ok(Self {
            // Read before the steps: a build may replace the file of this program.
            own_program: std::env::current_exe()?,
            memory: Memory::new()?,
        })
    }

    /// A command of this program, as another process.
    pub(super) fn task(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.own_program);
        command.args(words).current_dir(workspace::root());
        command
    }

    /// A command with a PostgreSQL and a Redis, which stop when it ends.
    pub(super) fn with_services(&self, command: &Command) -> Command {
        let mut services = self.task(&["services", "run", "--"]);
        services.arg(command.get_program()).args(command.get_args());
        services
    }

    pub(super) fn run(&self, mut command: Command) -> Result<()> {
        if let Some(memory) = &self.memory {
            command
                .env("TMPDIR", memory.folder.path())
                .env(PREPARED_FOLDER, &memory.prepared);
        }
        process::run_successfully(command)
    }

    /// Runs tests, and prints which were slow.
    pub(super) fn run_tests(&self, command: Command) -> Result<()> {
        test_report::clear();
        let result = self.run(command);
        if let Some(summary) = test_report::summary()? {
            println!("\n{summary}");
        }
        result
    }
}

impl Memory {
    /// Nothing if the machine has too little memory for temporary files.
    fn new() -> Result<Option<Self>> {
        let Ok(status) = statvfs(Path::new(MEMORY)) else {
            return Ok(None);
        };
        if status.blocks_available() * status.fragment_size() < MEMORY_MIN_BYTES {
            return Ok(None);
        }
        // The user of PostgreSQL needs access to its subfolder.
        let permissions = std::fs::Permissions::from_mode(0o755);
        let folder = tempfile::Builder::new()
            .prefix("cloakroom-")
            .permissions(permissions)
            .tempdir_in(MEMORY)?;
        let prepared = folder.path().join("postgres");
        let postgres = servers::start_postgres(PostgresOptions {
            place: Place::Persistent(prepared.clone()),
            ..PostgresOptions::default()
        })?;
        postgres.stop()?;
        Ok(Some(Self { folder, prepared }))
    }
}
