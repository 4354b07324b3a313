//! A fresh, migrated database per test, copied from a template that is migrated once.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::str::FromStr as _;
use std::sync::OnceLock;

use cloakroom::config::{Database, Secret};
use cloakroom::storage;
use cloakroom_scratch::{Postgres, PostgresOptions};
use tokio_postgres::{Client, Config, NoTls};

/// Arbitrary, but the same in all test processes.
const TEMPLATE_LOCK: i64 = 0x0C10_AC00;

/// Prefix of test database names; the process id follows.
const PREFIX: &str = "test_";
/// A database takes about ten megabytes, and dropping one forces a checkpoint, so they are dropped in batches.
const ABANDONED_MAX: usize = 20;

/// A database that belongs to one test.
pub struct TestDatabase {
    pub url: String,
}

impl TestDatabase {
    /// Copies the migrated template.
    pub async fn create() -> Self {
        Self::on(&server_url()).await
    }

    pub async fn on(server: &str) -> Self {
        let admin = connect(server).await;
        let template = template_name();
        ensure_template(&admin, server, &template).await;
        Self::copy(server, &admin, &template).await
    }

    /// Creates a database without tables.
    pub async fn create_empty() -> Self {
        Self::empty_on(&server_url()).await
    }

    pub async fn empty_on(server: &str) -> Self {
        Self::copy(server, &connect(server).await, "template1").await
    }

    async fn copy(server: &str, admin: &Client, template: &str) -> Self {
        drop_abandoned(admin).await;
        let unique = cloakroom::ids::new_uuid().simple();
        let name = format!("{PREFIX}{}_{unique}", std::process::id());
        let sql = format!("create database {name} template {template}");
        admin.batch_execute(&sql).await.unwrap();
        Self {
            url: on_server(server, &name),
        }
    }

    /// Dumps the database with `pg_dump`.
    pub fn dump(&self, arguments: &[&str]) -> String {
        let dump = Command::new("pg_dump")
            .args(arguments)
            .arg(&self.url)
            .output()
            .unwrap();
        assert!(dump.status.success());
        String::from_utf8(dump.stdout).unwrap()
    }

    /// Restores a dump into an empty database.
    pub fn restore(&self, dump: &str) {
        let mut psql = Command::new("psql")
            .args(["--quiet", "--set", "ON_ERROR_STOP=1", "--dbname", &self.url])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let mut input = psql.stdin.take().unwrap();
        input.write_all(dump.as_bytes()).unwrap();
        drop(input);
        assert!(psql.wait().unwrap().success());
    }

    /// A direct connection, to inspect or modify rows without the vault.
    pub async fn connect(&self) -> Client {
        connect(&self.url).await
    }
}

/// A PostgreSQL server of its own, for settings that affect every database.
pub struct TestServer {
    pub postgres: Postgres,
}

impl TestServer {
    pub async fn start() -> Self {
        let start = || Postgres::start(PostgresOptions::default()).unwrap();
        Self {
            postgres: tokio::task::spawn_blocking(start).await.unwrap(),
        }
    }
}

/// The server that `cargo xtask services` started, or one for this process.
#[expect(
    clippy::disallowed_methods,
    reason = "the environment names the test server"
)]
fn server_url() -> String {
    static OWN: OnceLock<Postgres> = OnceLock::new();
    std::env::var("CLOAKROOM_TEST_DATABASE_URL").unwrap_or_else(|_| {
        OWN.get_or_init(|| Postgres::start(PostgresOptions::default()).unwrap())
            .url()
    })
}

async fn ensure_template(admin: &Client, server: &str, template: &str) {
    admin
        .execute("select pg_advisory_lock($1)", &[&TEMPLATE_LOCK])
        .await
        .unwrap();
    let known = admin
        .query_opt("select from pg_database where datname = $1", &[&template])
        .await
        .unwrap();
    if known.is_none() {
        // Migrate under a draft name and rename at the end: a template that exists is always complete.
        let draft = format!("{template}_draft");
        admin
            .batch_execute(&format!("drop database if exists {draft}"))
            .await
            .unwrap();
        admin
            .batch_execute(&format!("create database {draft}"))
            .await
            .unwrap();
        let config = Database {
            url: Some(Secret::new(on_server(server, &draft))),
            ..Database::default()
        };
        let connection = storage::connect_once(&config).await.unwrap();
        storage::migrate(&connection).await.unwrap();
        connection.close();
        let rename = format!("alter database {draft} rename to {template}");
        while admin.batch_execute(&rename).await.is_err() {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    }
    admin
        .execute("select pg_advisory_unlock($1)", &[&TEMPLATE_LOCK])
        .await
        .unwrap();
}

/// Drops databases of processes that have ended, including killed ones. The disk has space for the databases of
/// a few tests only.
async fn drop_abandoned(admin: &Client) {
    let sql = "select datname from pg_database where starts_with(datname, $1)";
    let names = admin.query(sql, &[&PREFIX]).await.unwrap();
    let abandoned: Vec<String> = names
        .iter()
        .map(|row| row.get::<_, String>(0))
        .filter(|name| is_abandoned(name))
        .collect();
    if abandoned.len() < ABANDONED_MAX {
        return;
    }
    for name in abandoned {
        // Fails if another process drops it first or a connection is still open; the next run retries.
        let _dropped = admin.batch_execute(&format!("drop database {name}")).await;
    }
}

fn is_abandoned(database: &str) -> bool {
    let process = database[PREFIX.len()..].split('_').next().unwrap();
    !std::path::Path::new("/proc").join(process).exists()
}

/// Depends on the migrations, so that an outdated template is not reused.
fn template_name() -> String {
    use std::hash::{DefaultHasher, Hash as _, Hasher as _};
    let mut hasher = DefaultHasher::new();
    for migration in storage::MIGRATIONS {
        migration.sql.hash(&mut hasher);
    }
    format!("template_{:016x}", hasher.finish())
}

fn on_server(server: &str, database: &str) -> String {
    let (host, _) = server.rsplit_once('/').unwrap();
    format!("{host}/{database}")
}

#[expect(
    clippy::disallowed_methods,
    reason = "a test connection lives with its driver task"
)]
async fn connect(url: &str) -> Client {
    let (client, connection) = Config::from_str(url).unwrap().connect(NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}
