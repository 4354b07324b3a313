//! Configuration from one TOML file and environment variables, loaded and validated at startup.

mod access;
mod admin;
mod audit;
mod client_encryption;
mod cryptoperiods;
mod database;
mod deprecated;
mod egress;
mod files;
mod finding;
mod http;
mod idempotency;
mod limits;
mod log;
mod network;
mod plaintext;
mod proxy;
mod quotas;
mod redis;
mod reference;
mod root_key;
mod section;
mod security_codes;
mod sessions;
mod setting;
mod telemetry;
mod tenants;
mod threeds;
mod tokens;
mod vault;
mod webhooks;

use std::path::{Path, PathBuf};

use ::config::{Environment as Variables, File, FileFormat, Map, Source as _, Value};

pub use self::access::Access;
pub use self::admin::Admin;
pub use self::audit::Audit;
pub use self::client_encryption::ClientEncryption;
pub use self::cryptoperiods::Cryptoperiods;
pub use self::database::Database;
pub use self::deprecated::{Deprecated, Deprecation};
pub use self::egress::{Egress, Ports, StaticAddresses};
pub use self::finding::{Finding, Severity};
pub use self::http::{BaseUrl, Http};
pub use self::idempotency::Idempotency;
pub use self::limits::{Limits, LimitsProfile};
pub use self::log::{Format, Level, Log};
pub use self::network::Networks;
pub use self::proxy::Proxy;
pub use self::quotas::Quotas;
pub use self::redis::Redis;
pub use self::reference::{reference, sample};
pub use self::root_key::{GRACE_MAX, Provider, RootKey};
use self::section::Source;
pub use self::security_codes::SecurityCodes;
pub use self::sessions::Sessions;
pub use self::setting::Secret;
pub use self::telemetry::Telemetry;
pub use self::tenants::Tenants;
pub use self::threeds::{Threeds, Versions};
pub use self::tokens::Tokens;
pub use self::vault::{Environment, Region, Vault};
pub use self::webhooks::Webhooks;

/// Every setting of the service.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    pub vault: Vault,
    pub http: Http,
    pub admin: Admin,
    pub database: Database,
    pub redis: Redis,
    pub root_key: RootKey,
    pub cryptoperiods: Cryptoperiods,
    pub access: Access,
    pub limits: Limits,
    pub quotas: Quotas,
    pub audit: Audit,
    pub sessions: Sessions,
    pub tenants: Tenants,
    pub idempotency: Idempotency,
    pub deprecated: Deprecated,
    pub security_codes: SecurityCodes,
    pub tokens: Tokens,
    pub client_encryption: ClientEncryption,
    pub threeds: Threeds,
    pub egress: Egress,
    pub proxy: Proxy,
    pub webhooks: Webhooks,
    pub log: Log,
    pub telemetry: Telemetry,
}

/// Names the configuration file, unless `--config` does.
const FILE_VARIABLE: &str = "CLOAKROOM_CONFIG";

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot read the configuration file {}: {reason}", path.display())]
    Unreadable {
        path: PathBuf,
        reason: std::io::ErrorKind,
    },
    #[error(
        "the variable CLOAKROOM_CONFIG names the configuration file {}, which does not exist; unset the variable \
         (`unset CLOAKROOM_CONFIG`), or name an existing file",
        path.display()
    )]
    MissingOfVariable { path: PathBuf },
    #[error("root reads {} only if nobody else can change it: {reason}", path.display())]
    Untrusted { path: PathBuf, reason: String },
    #[error("{} is not valid TOML: {reason}", path.display())]
    Syntax { path: PathBuf, reason: String },
    #[error("a CLOAKROOM__ environment variable has an invalid name or value")]
    Variables,
    #[error("{}", lines(.0))]
    Invalid(Vec<Finding>),
}

impl Error {
    fn missing(setting: &str) -> Self {
        let variable = setting.replace('.', "__").to_uppercase();
        let message = format!(
            "is not set; set it in the file given by --config, or as CLOAKROOM__{variable}"
        );
        Self::Invalid(vec![Finding::error(setting, message)])
    }
}

fn lines(findings: &[Finding]) -> String {
    let lines: Vec<String> = findings.iter().map(Finding::to_string).collect();
    lines.join("\n")
}

impl Config {
    /// Loads the file, if any. Environment variables override it.
    ///
    /// Reports all errors at once, including those that `check` finds.
    pub fn load(path: Option<&Path>) -> Result<Self, Error> {
        Self::load_with_defaults(path, &[])
    }

    /// Loads with defaults of a command: pairs of a setting and its value.
    pub fn load_with_defaults(
        path: Option<&Path>,
        defaults: &[(&str, &str)],
    ) -> Result<Self, Error> {
        load_from(path, Variables::default(), defaults)
    }

    /// Returns contradictory settings as errors and risky ones as warnings.
    pub fn check(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        let is_production = self.vault.environment == Environment::Production;
        self.http.check(is_production, &mut findings);
        self.admin.check(&mut findings);
        self.database.check(is_production, &mut findings);
        self.redis.check(is_production, &mut findings);
        self.root_key.check(self.vault.environment, &mut findings);
        self.access.check(is_production, &mut findings);
        self.limits.check(&mut findings);
        self.quotas.check(&mut findings);
        self.audit.check(is_production, &mut findings);
        self.tenants.check(&mut findings);
        self.security_codes.check(&mut findings);
        self.tokens.check(&mut findings);
        self.client_encryption.check(&mut findings);
        self.threeds.check(&mut findings);
        self.proxy.check(&mut findings);
        self.webhooks.check(&mut findings);
        self.egress.check(is_production, &mut findings);
        self.telemetry.check(&mut findings);

        // With port 0 the operating system assigns a free port, so two listeners do not collide.
        if self.admin.listen == self.http.listen && self.http.listen.port() != 0 {
            let message = "must differ from http.listen";
            findings.push(Finding::error("admin.listen", message));
        }
        if self.threeds.networks_file.is_some() && self.http.base_url.is_none() {
            let message = "required with threeds.networks_file: issuers redirect browsers to it";
            findings.push(Finding::error("http.base_url", message));
        }
        findings
    }

    /// Returns findings for files that contain secrets and are readable by other users. `path` is the configuration
    /// file.
    pub fn check_files(&self, path: Option<&Path>) -> Vec<Finding> {
        files::check(self, path)
    }

    fn read(source: &mut Source) -> Self {
        Self {
            vault: Vault::read(source),
            http: Http::read(source),
            admin: Admin::read(source),
            database: Database::read(source),
            redis: Redis::read(source),
            root_key: RootKey::read(source),
            cryptoperiods: Cryptoperiods::read(source),
            access: Access::read(source),
            limits: Limits::read(source),
            quotas: Quotas::read(source),
            audit: Audit::read(source),
            sessions: Sessions::read(source),
            tenants: Tenants::read(source),
            idempotency: Idempotency::read(source),
            deprecated: Deprecated::read(source),
            security_codes: SecurityCodes::read(source),
            tokens: Tokens::read(source),
            client_encryption: ClientEncryption::read(source),
            threeds: Threeds::read(source),
            proxy: Proxy::read(source),
            webhooks: Webhooks::read(source),
            egress: Egress::read(source),
            log: Log::read(source),
            telemetry: Telemetry::read(source),
        }
    }
}

fn load_from(
    path: Option<&Path>,
    variables: Variables,
    defaults: &[(&str, &str)],
) -> Result<Config, Error> {
    let mut source = Source::new(path, merge_sources(path, variables, defaults)?);
    let mut config = Config::read(&mut source);
    config.database.resolve(&mut source.findings);
    config.redis.resolve(&mut source.findings);
    config.egress.resolve(&mut source.findings);
    config.root_key.resolve(&mut source.findings);

    let sections = reference::sections().map(|description| description.section);
    let mut findings = source.finish(&sections);
    findings.extend(config.check().into_iter().filter(Finding::is_error));
    if findings.is_empty() {
        Ok(config)
    } else {
        Err(Error::Invalid(findings))
    }
}

/// Loads a file without the environment.
fn load_file(path: &Path) -> Result<Config, Error> {
    let no_variables = Variables::default().source(Some(Map::new()));
    load_from(Some(path), no_variables, &[])
}

/// A vault of `cloakroom dev` deletes its file when it stops, but the variable stays in the shell.
fn unreadable(path: &Path, error: &std::io::Error) -> Error {
    let (path, reason) = (path.to_owned(), error.kind());
    let is_of_variable = std::env::var_os(FILE_VARIABLE).is_some_and(|it| it == *path);
    match reason {
        std::io::ErrorKind::NotFound if is_of_variable => Error::MissingOfVariable { path },
        _ => Error::Unreadable { path, reason },
    }
}

/// Merges file and environment. Environment variables take precedence.
fn merge_sources(
    path: Option<&Path>,
    variables: Variables,
    defaults: &[(&str, &str)],
) -> Result<Map<String, Value>, Error> {
    let mut builder = ::config::Config::builder();
    for (setting, value) in defaults {
        builder = builder
            .set_default(*setting, *value)
            .map_err(|_| Error::Variables)?;
    }
    if let Some(path) = path {
        let trusted = files::trusted(path)?;
        let text = std::fs::read_to_string(trusted).map_err(|error| unreadable(path, &error))?;
        let file = File::from_str(&text, FileFormat::Toml);
        file.collect().map_err(|error| Error::Syntax {
            path: path.to_owned(),
            reason: without_excerpt(&error.to_string()),
        })?;
        builder = builder.add_source(file);
    }

    let variables = variables
        .prefix("CLOAKROOM")
        .prefix_separator("__")
        .separator("__");
    builder
        .add_source(variables)
        .build()
        .and_then(|merged| merged.collect())
        .map_err(|_| Error::Variables)
}

/// Reduces a parser error to its first line (position) and its last line (reason).
///
/// The lines between quote the file, which may contain a password.
fn without_excerpt(message: &str) -> String {
    let mut lines = message.lines().filter(|line| !line.trim().is_empty());
    let first = lines.next().unwrap_or("unknown reason");
    match lines.next_back() {
        Some(last) if !last.contains('|') => format!("{first}: {last}"),
        _ => first.to_owned(),
    }
}

#[cfg(test)]
mod tests;
