//! A private PostgreSQL server on a loopback port, with full durability.

use std::fs::File;
use std::io::Write;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::sys::signal::Signal;

use crate::folder::{Folder, Place, unusable};
use crate::owner::Owner;
use crate::port::free_port;
use crate::server::{self, Server};
use crate::{Error, programs};

const NAME: &str = "postgres";
const USER: &str = "cloakroom";
const DATABASE: &str = "cloakroom";
const PASSWORD_FILE: &str = "password";
const SETTINGS_FILE: &str = "cloakroom.conf";
/// Fast shutdown: rolls back open transactions and writes out all committed data.
const STOP_SIGNAL: Signal = Signal::SIGINT;
const START_TRIES: usize = 5;
/// Environment variable with the folder of a server that has stopped. New temporary servers are copies of it: `initdb`
/// takes a second of processor time, a copy a tenth.
pub const PREPARED_FOLDER: &str = "CLOAKROOM_SCRATCH_POSTGRES";
/// A socket address has at most 107 bytes, including 20 for the file name.
const SOCKET_FOLDER_BYTES_MAX: usize = 87;

/// Options of a scratch PostgreSQL.
#[derive(Clone, Debug)]
pub struct PostgresOptions {
    pub place: Place,
    pub shared_buffers_mb: u32,
    pub connections_max: u32,
    /// Additional settings, as in `postgresql.conf`; they override the defaults.
    pub settings: Vec<(String, String)>,
}

impl Default for PostgresOptions {
    fn default() -> Self {
        Self {
            place: Place::Temporary,
            shared_buffers_mb: 256,
            connections_max: 200,
            settings: Vec::new(),
        }
    }
}

/// A running PostgreSQL; stopped when dropped.
#[derive(Debug)]
pub struct Postgres {
    // Drop order matters: the server stops before its directory is deleted.
    server: Server,
    folder: Folder,
    programs: PathBuf,
    password: String,
    port: u16,
}

impl Postgres {
    /// Starts a server on a free loopback port; initializes the cluster if there is none.
    ///
    /// If this process is root, the server runs as the user `postgres`, which needs access to the parent directories
    /// of the chosen place.
    pub fn start(options: PostgresOptions) -> Result<Self, Error> {
        let programs = programs::postgres_folder()?;
        let owner = Owner::for_postgres()?;
        let folder = Folder::open(options.place.clone(), NAME, &owner)?;
        if server::find_left_running(folder.path()).is_some() {
            return Err(Error::Running {
                path: folder.path().to_owned(),
            });
        }
        if let Some(prepared) = std::env::var_os(PREPARED_FOLDER)
            && folder.is_temporary()
        {
            copy(Path::new(&prepared), &folder, &owner)?;
        }
        let password = folder.secret(PASSWORD_FILE, &owner)?;
        let is_new = !data_folder(&folder).join("PG_VERSION").exists();
        if is_new {
            init_cluster(&programs, &folder, &owner)?;
        }
        let (server, port) = start_server(&programs, &folder, &options, &owner)?;
        let postgres = Self {
            server,
            folder,
            programs,
            password,
            port,
        };
        if is_new {
            postgres.create_database(DATABASE)?;
        }
        Ok(postgres)
    }

    /// Connection URL of the database `cloakroom`, as superuser.
    pub fn url(&self) -> String {
        self.url_of(DATABASE)
    }

    /// Connection URL of another database of this server.
    pub fn url_of(&self, database: &str) -> String {
        format!(
            "postgres://{USER}:{}@127.0.0.1:{}/{database}",
            self.password, self.port
        )
    }

    /// Creates an empty database and returns its connection URL.
    pub fn create_database(&self, name: &str) -> Result<String, Error> {
        let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        if name.is_empty() || name.len() > 63 || !name.chars().all(is_plain) {
            return Err(Error::DatabaseName {
                name: name.to_owned(),
            });
        }
        let mut psql = Command::new(self.programs.join("psql"));
        // Ctrl-C in a terminal is for this program.
        psql.process_group(0);
        // Ignores the user's psql settings.
        psql.env_clear()
            .env("PGPASSWORD", &self.password)
            .args([
                "--no-psqlrc",
                "--quiet",
                "--host=127.0.0.1",
                "--dbname=postgres",
            ])
            .arg(format!("--port={}", self.port))
            .arg(format!("--username={USER}"))
            .arg(format!("--command=create database \"{name}\""));
        run(psql, "psql")?;
        Ok(self.url_of(name))
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// The pid of the postmaster.
    pub fn pid(&self) -> u32 {
        self.server.pid()
    }

    pub fn log_file(&self) -> PathBuf {
        self.server.log_file()
    }

    pub fn data_folder(&self) -> PathBuf {
        data_folder(&self.folder)
    }

    /// Stops the server, waits until it exits, and deletes its directory if it is temporary.
    pub fn stop(mut self) -> Result<(), Error> {
        self.server.stop()
    }

    /// Keeps the server running, and its directory in place, after this process exits.
    pub fn leave_running(mut self) {
        self.folder.keep();
        self.server.leave_running();
    }

    /// Stops the server that was left running in `folder`. Returns whether one was running.
    pub fn stop_left_running(folder: &Path) -> Result<bool, Error> {
        server::stop_left_running(NAME, folder, STOP_SIGNAL)
    }
}

fn data_folder(folder: &Folder) -> PathBuf {
    folder.path().join("data")
}

/// Copies the cluster, its database and its password.
fn copy(prepared: &Path, folder: &Folder, owner: &Owner) -> Result<(), Error> {
    let mut cp = Command::new("cp");
    cp.process_group(0);
    cp.arg("--archive");
    cp.args(["data", PASSWORD_FILE].map(|name| prepared.join(name)));
    cp.arg(folder.path());
    owner.configure(&mut cp, folder.path());
    run(cp, "cp")
}

fn init_cluster(programs: &Path, folder: &Folder, owner: &Owner) -> Result<(), Error> {
    let mut initdb = Command::new(programs.join("initdb"));
    // Ctrl-C in a terminal is for this program, which stops when the cluster exists.
    initdb.process_group(0);
    initdb
        .arg("--pgdata")
        .arg(folder.sub_folder("data", owner)?)
        .arg("--pwfile")
        .arg(folder.path().join(PASSWORD_FILE))
        .arg(format!("--username={USER}"))
        .args([
            "--auth=scram-sha-256",
            "--data-checksums",
            "--no-instructions",
        ])
        .args(["--encoding=UTF8", "--locale=C.UTF-8"]);
    if folder.is_temporary() {
        // A temporary cluster need not survive a crash of the machine.
        initdb.arg("--no-sync");
    }
    owner.configure(&mut initdb, folder.path());
    run(initdb, "initdb")?;
    // Included last, so that our settings override those that initdb derived from this machine.
    let settings_file = data_folder(folder).join("postgresql.conf");
    File::options()
        .append(true)
        .open(&settings_file)
        .and_then(|mut file| writeln!(file, "include '{SETTINGS_FILE}'"))
        .map_err(|source| unusable(&settings_file, source))
}

fn start_server(
    programs: &Path,
    folder: &Folder,
    options: &PostgresOptions,
    owner: &Owner,
) -> Result<(Server, u16), Error> {
    let data = data_folder(folder);
    let sockets = folder.sub_folder("run", owner)?;
    let mut tries = 0;
    loop {
        tries += 1;
        let port = free_port().map_err(|source| unusable(folder.path(), source))?;
        let text = settings(options, port, &sockets);
        folder.write(&format!("data/{SETTINGS_FILE}"), &text, owner)?;
        let mut command = Command::new(programs.join("postgres"));
        command.arg("-D").arg(&data);
        let mut server = Server::spawn(NAME, command, STOP_SIGNAL, folder, owner)?;
        let pid = server.pid();
        match server.wait_until(|| is_ready(&data, pid)) {
            Ok(()) => return Ok((server, port)),
            // Another process may have taken the port in the meantime.
            Err(_) if tries < START_TRIES && server.has_exited() => {}
            Err(error) => return Err(error),
        }
    }
}

fn settings(options: &PostgresOptions, port: u16, sockets: &Path) -> String {
    let sockets = match sockets.to_str() {
        Some(path) if path.len() <= SOCKET_FOLDER_BYTES_MAX => path.to_owned(),
        _ => String::new(),
    };
    let defaults = [
        ("listen_addresses", "127.0.0.1".to_owned()),
        ("port", port.to_string()),
        ("unix_socket_directories", sockets),
        ("max_connections", options.connections_max.to_string()),
        ("shared_buffers", format!("{}MB", options.shared_buffers_mb)),
        ("password_encryption", "scram-sha-256".to_owned()),
        // Acknowledged writes must be durable, above all in tests.
        ("fsync", "on".to_owned()),
        ("full_page_writes", "on".to_owned()),
        ("synchronous_commit", "on".to_owned()),
        // Keep statement parameters out of the server log.
        ("log_error_verbosity", "terse".to_owned()),
        ("log_parameter_max_length", "0".to_owned()),
        ("log_parameter_max_length_on_error", "0".to_owned()),
        ("log_line_prefix", "%m [%p] ".to_owned()),
        ("log_timezone", "UTC".to_owned()),
        ("timezone", "UTC".to_owned()),
    ];
    let overrides = options
        .settings
        .iter()
        .map(|(name, value)| (name.as_str(), value.clone()));
    defaults
        .into_iter()
        .chain(overrides)
        .map(|(name, value)| format!("{name} = '{}'\n", value.replace('\'', "''")))
        .collect()
}

/// `postmaster.pid` contains the pid in its first line and the status in its eighth. Another pid is from an earlier
/// start.
fn is_ready(data: &Path, pid: u32) -> bool {
    std::fs::read_to_string(data.join("postmaster.pid")).is_ok_and(|text| {
        let mut lines = text.lines().map(str::trim);
        lines.next() == Some(&pid.to_string()) && lines.nth(6) == Some("ready")
    })
}

fn run(mut command: Command, program: &str) -> Result<(), Error> {
    let output = command.output().map_err(|source| Error::Spawn {
        program: program.into(),
        source,
    })?;
    if output.status.success() {
        return Ok(());
    }
    let reason = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(Error::Failed {
        program: program.into(),
        reason,
    })
}

#[cfg(test)]
mod tests;
