//! Findings in a configuration: contradictions, risks, and files that other users can read.

use std::time::Duration;

use crate::config::*;

#[test]
fn a_valid_configuration_has_no_findings() {
    assert_eq!(valid_config().check(), []);
}

#[test]
fn contradictory_settings_are_errors() {
    let cases: [(Change, &str); 19] = [
        (
            |c| c.http.tls_cert_file = Some("c".into()),
            "http.tls_key_file",
        ),
        (
            |c| c.http.tls_key_file = Some("k".into()),
            "http.tls_cert_file",
        ),
        (|c| c.http.max_header_bytes = 8191, "http.max_header_bytes"),
        (|c| c.admin.listen = c.http.listen, "admin.listen"),
        (
            |c| c.database.url = Some(Secret::new("mysql://x")),
            "database.url",
        ),
        (
            |c| c.database.url = Some(Secret::new("postgres://x?sslmode=require")),
            "database.ca_file",
        ),
        (
            |c| c.vault.environment = Environment::Production,
            "root_key.provider",
        ),
        (
            |c| c.root_key.grace = Duration::from_secs(1),
            "root_key.grace",
        ),
        (
            |c| c.root_key.grace = GRACE_MAX + Duration::from_secs(1),
            "root_key.grace",
        ),
        (
            |c| c.access.key_cache_ttl = Duration::from_millis(5001),
            "access.key_cache_ttl",
        ),
        (|c| c.redis.url = Some(Secret::new("http://x")), "redis.url"),
        (|c| c.redis.ca_file = Some("ca".into()), "redis.ca_file"),
        (
            |c| c.redis.url = Some(Secret::new("rediss://x")),
            "redis.ca_file",
        ),
        (|c| redis_with_ca(c, "redis://x"), "redis.url"),
        (|c| redis_with_ca(c, "rediss://x/#insecure"), "redis.url"),
        (
            |c| c.security_codes.retention = Duration::from_millis(999),
            "security_codes.retention",
        ),
        (
            |c| c.security_codes.retention = Duration::from_secs(48 * 3600 + 1),
            "security_codes.retention",
        ),
        (
            |c| c.security_codes.epoch = Duration::from_millis(999),
            "security_codes.epoch",
        ),
        (
            |c| c.security_codes.epoch = Duration::from_secs(601),
            "security_codes.epoch",
        ),
    ];
    assert_found(Severity::Error, &cases);
}

#[test]
fn contradictory_telemetry_settings_are_errors() {
    let cases: [(Change, &str); 4] = [
        (
            |c| c.telemetry.otlp_endpoint = Some("grpc://x".into()),
            "telemetry.otlp_endpoint",
        ),
        (
            |c| c.telemetry.otlp_metrics_interval = Duration::from_millis(999),
            "telemetry.otlp_metrics_interval",
        ),
        (|c| c.telemetry.sample_ratio = 1.1, "telemetry.sample_ratio"),
        (
            |c| c.telemetry.sample_ratio = f64::NAN,
            "telemetry.sample_ratio",
        ),
    ];
    assert_found(Severity::Error, &cases);
}

#[test]
fn contradictory_egress_settings_are_errors() {
    let cases: [(Change, &str); 3] = [
        (
            |c| c.webhooks.max_in_flight = 20,
            "webhooks.max_in_flight_per_webhook",
        ),
        (
            |c| c.egress.connect_proxy = Some(Secret::new("https://x:1")),
            "egress.connect_proxy",
        ),
        (
            |c| c.egress.max_in_flight = 100,
            "egress.max_in_flight_per_destination",
        ),
    ];
    assert_found(Severity::Error, &cases);
}

#[test]
fn plaintext_to_other_hosts_is_an_error_in_production() {
    let cases: [(Change, &str); 4] = [
        (in_production, "http.tls_cert_file"),
        (in_production, "database.ca_file"),
        (
            |c| {
                in_production(c);
                c.database.url = Some(Secret::new("postgres://127.0.0.1/x"));
                c.database.replica_url = Some(Secret::new("postgres://db2/x"));
            },
            "database.ca_file",
        ),
        (
            |c| {
                in_production(c);
                c.redis.url = Some(Secret::new("redis://cache"));
            },
            "redis.ca_file",
        ),
    ];
    assert_found(Severity::Error, &cases);
}

#[test]
fn settings_that_void_a_protection_are_errors() {
    let cases: [(Change, &str); 5] = [
        (
            |c| c.http.trusted_proxies = "10.0.0.0/7".parse().unwrap(),
            "http.trusted_proxies",
        ),
        (
            |c| c.http.trusted_proxies = "10.0.0.0/8, ::/0".parse().unwrap(),
            "http.trusted_proxies",
        ),
        (
            |c| {
                in_production(c);
                reach_private_networks(c);
            },
            "egress.allow_private_networks",
        ),
        (
            |c| {
                in_production(c);
                c.access.hosted_rules = true;
            },
            "access.hosted_rules",
        ),
        (|c| c.quotas.card_velocity = 1_001, "quotas.card_velocity"),
    ];
    assert_found(Severity::Error, &cases);
    let mut config = valid_config();
    config.http.trusted_proxies = "10.0.0.0/8, 2001:db8::/32".parse().unwrap();
    config.egress.allow_private_networks = "10.0.0.0/8".parse().unwrap();
    config.egress.allowed_hosts = "psp.example.com".parse().ok();
    config.quotas.card_velocity = 33;
    assert_eq!(config.check(), []);
}

fn reach_private_networks(config: &mut Config) {
    config.egress.allowed_hosts = "*".parse().ok();
    config.egress.allow_private_networks = "10.0.0.0/8".parse().unwrap();
}

#[test]
fn risky_settings_are_warnings() {
    let cases: [(Change, &str); 13] = [
        (reach_private_networks, "egress.allow_private_networks"),
        (|c| c.access.hosted_rules = true, "access.hosted_rules"),
        (|c| c.quotas.card_velocity = 34, "quotas.card_velocity"),
        (|c| c.limits.enabled = false, "limits.enabled"),
        (
            |c| {
                in_production(c);
                c.egress.allowed_hosts = "*".parse().ok();
            },
            "egress.allowed_hosts",
        ),
        (
            |c| c.admin.listen.set_ip([10, 0, 0, 1].into()),
            "admin.listen",
        ),
        (|c| c.database.url = None, "database.url"),
        (|c| c.root_key.file = None, "root_key.file"),
        (in_production, "root_key.allow_file_in_production"),
        (plaintext_in_production, "http.allow_plaintext"),
        (plaintext_in_production, "database.allow_plaintext"),
        (plaintext_in_production, "redis.allow_plaintext"),
        (
            |c| {
                in_production(c);
                c.audit.keep_days = 89;
            },
            "audit.keep_days",
        ),
    ];
    assert_found(Severity::Warning, &cases);
}

type Change = fn(&mut Config);

fn in_production(config: &mut Config) {
    config.vault.environment = Environment::Production;
    config.root_key.allow_file_in_production = true;
    config.http.listen.set_ip([0, 0, 0, 0].into());
}

fn plaintext_in_production(config: &mut Config) {
    in_production(config);
    config.redis.url = Some(Secret::new("redis://cache"));
    config.http.allow_plaintext = true;
    config.database.allow_plaintext = true;
    config.redis.allow_plaintext = true;
}

#[test]
fn plaintext_is_allowed_on_one_host_and_in_test_vaults() {
    let mut config = valid_config();
    in_production(&mut config);
    config.http.listen.set_ip([127, 0, 0, 1].into());
    config.database.url = Some(Secret::new("postgres://u@127.0.0.1/x"));
    config.redis.url = Some(Secret::new("redis://localhost"));
    let errors: Vec<Finding> = config
        .check()
        .into_iter()
        .filter(Finding::is_error)
        .collect();
    assert_eq!(errors, []);

    plaintext_in_production(&mut config);
    config.vault.environment = Environment::Test;
    assert_eq!(config.check(), []);
}

#[test]
fn secret_files_readable_by_other_users_are_reported() {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cloakroom.toml");
    let url_file = folder.path().join("database.url");
    std::fs::write(&path, "").unwrap();
    std::fs::write(&url_file, "postgres://u:p@127.0.0.1/x").unwrap();
    // The pipeline runs as root, whose files the group may read.
    let is_root = std::fs::metadata(&path).unwrap().uid() == 0;
    let give_to = |user| {
        for file in [&path, &url_file] {
            chown(file, Some(user), None).unwrap();
        }
    };
    if is_root {
        give_to(12_345);
    }
    let check = |text: &str, mode: u32, environment| {
        std::fs::write(&path, text).unwrap();
        for file in [&path, &url_file] {
            std::fs::set_permissions(file, std::fs::Permissions::from_mode(mode)).unwrap();
        }
        let mut config = valid_config();
        config.vault.environment = environment;
        config.database.url_file = Some(url_file.clone());
        let findings = config.check_files(Some(&path));
        let shown = |finding: Finding| (finding.location.clone(), finding.severity);
        findings.into_iter().map(shown).collect::<Vec<_>>()
    };
    let inline = "[redis]\nurl = \"redis://:p@cache\"";
    let (file, own) = (
        "database.url_file".to_owned(),
        "the configuration file".to_owned(),
    );
    let both = |severity| vec![(file.clone(), severity), (own.clone(), severity)];

    assert_eq!(check(inline, 0o600, Environment::Production), []);
    assert_eq!(
        check(inline, 0o640, Environment::Production),
        both(Severity::Warning)
    );
    assert_eq!(
        check(inline, 0o644, Environment::Production),
        both(Severity::Error)
    );
    assert_eq!(
        check(inline, 0o644, Environment::Test),
        both(Severity::Warning)
    );
    let without = check("[log]\nlevel = \"info\"", 0o644, Environment::Test);
    assert_eq!(without, [(file.clone(), Severity::Warning)]);
    if is_root {
        give_to(0);
        assert_eq!(check(inline, 0o640, Environment::Production), []);
        assert_eq!(
            check(inline, 0o644, Environment::Production),
            both(Severity::Error)
        );
    }
}

/// The configuration names a library that root loads, and keys that it reads.
#[test]
fn root_reads_no_configuration_that_others_can_change() {
    use std::os::unix::fs::{PermissionsExt as _, chown};

    let folder = tempfile::tempdir().unwrap();
    let (nested, link) = (
        folder.path().join("nested"),
        folder.path().join("link.toml"),
    );
    let (path, module) = (nested.join("cloakroom.toml"), nested.join("module.so"));
    std::fs::create_dir(&nested).unwrap();
    std::fs::write(&module, "").unwrap();
    std::fs::write(&path, "[vault]\nenvironment = \"test\"\n").unwrap();
    std::os::unix::fs::symlink(&path, &link).unwrap();
    if !nix::unistd::geteuid().is_root() {
        // Only root can give files away; the pipeline runs as root.
        return;
    }
    let other = folder.path().join("other.toml");
    let text = format!("[root_key]\npkcs11_module = {module:?}\n");
    std::fs::write(&other, text).unwrap();
    let load = |path: &Path| load_file(path).map_err(|error| error.to_string());
    let set_mode = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };

    for path in [&path, &link, &other] {
        load(path).unwrap();
    }
    for part in [&path, &nested, &module] {
        let files = match part == &module {
            true => vec![&other],
            false => vec![&path, &link],
        };
        for file in files {
            chown(part, Some(12_345), None).unwrap();
            let given = load(file).unwrap_err();
            chown(part, Some(0), None).unwrap();
            set_mode(part, 0o775);
            let writable = load(file).unwrap_err();
            set_mode(part, 0o755);
            assert!(given.contains("belongs to user 12345"), "{given}");
            assert!(writable.contains("chmod go-w"), "{writable}");
        }
    }
    // Others cannot replace a file of root in such a folder.
    set_mode(&nested, 0o1777);
    load(&path).unwrap();
}

#[test]
fn missing_files_of_tls_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let existing = folder.path().join("tls.key");
    std::fs::write(&existing, "").unwrap();
    std::fs::set_permissions(
        &existing,
        std::os::unix::fs::PermissionsExt::from_mode(0o600),
    )
    .unwrap();
    let mut config = valid_config();
    config.http.tls_key_file = Some(existing);
    config.http.tls_cert_file = Some(folder.path().join("tls.crt"));
    config.telemetry.otlp_ca_file = Some(folder.path().join("ca.pem"));

    let findings = config.check_files(None);
    let locations: Vec<_> = findings.iter().map(|it| it.location.as_str()).collect();
    assert_eq!(locations, ["http.tls_cert_file", "telemetry.otlp_ca_file"]);
    assert!(findings.iter().all(Finding::is_error));
}

fn redis_with_ca(config: &mut Config, url: &str) {
    config.redis.url = Some(Secret::new(url));
    config.redis.ca_file = Some("ca.pem".into());
}

fn assert_found(severity: Severity, cases: &[(Change, &str)]) {
    for (change, location) in cases {
        let mut config = valid_config();
        change(&mut config);
        let findings = config.check();
        let found = findings
            .iter()
            .any(|f| f.severity == severity && f.location == *location);
        assert!(found, "{location}: {findings:?}");
    }
}

fn valid_config() -> Config {
    let mut config = Config::default();
    config.database.url = Some(Secret::new("postgres://db/cloakroom"));
    config.root_key.file = Some("root.key".into());
    config
}
