//! Loading a configuration from a file and the environment.

use std::io::Write as _;

use crate::config::*;

type EnvVars<'a> = &'a [(&'a str, &'a str)];

fn load(file: &str, variables: EnvVars<'_>) -> Result<Config, Error> {
    let mut temp = tempfile::Builder::new()
        .prefix("cloakroom")
        .suffix(".toml")
        .tempfile()
        .unwrap();
    temp.write_all(file.as_bytes()).unwrap();
    load_from(Some(temp.path()), with(variables), &[])
}

fn with(variables: EnvVars<'_>) -> Variables {
    let map = variables
        .iter()
        .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
    Variables::default().source(Some(map.collect()))
}

#[test]
fn an_empty_configuration_has_the_defaults() {
    let config = load_from(None, with(&[]), &[]).unwrap();

    assert_eq!(config, Config::default());
}

#[test]
fn file_and_environment_override_the_defaults_of_a_command() {
    let defaults = [("log.level", "warn"), ("log.format", "text")];

    let config = load_from(None, with(&[]), &defaults).unwrap();
    assert_eq!(
        (config.log.level, config.log.format),
        (Level::Warn, Format::Text)
    );

    // Also by the default of other commands.
    let variables = [("CLOAKROOM__LOG__LEVEL", "info")];
    let config = load_from(None, with(&variables), &defaults).unwrap();
    assert_eq!(
        (config.log.level, config.log.format),
        (Level::Info, Format::Text)
    );
}

#[test]
fn values_of_every_type_are_parsed() {
    let file = r#"
        [vault]
        environment = "test"
        region = "eu"
        node = "left"
        [http]
        listen = "0.0.0.0:443"
        base_url = "https://vault.example.com/v1/"
        header_timeout = "2s"
        max_connections = 50
        [database]
        url = "postgres://db/cloakroom"
        [log]
        level = "debug"
        format = "text"
        [root_key]
        allow_file_in_production = true
        [telemetry]
        sample_ratio = 0.25
    "#;

    let config = load(file, &[]).unwrap();

    assert_eq!(config.vault.region.as_str(), "eu");
    assert_eq!(config.vault.node_name(), "left");
    assert_eq!(config.http.listen.port(), 443);
    assert_eq!(config.http.prefix(), "/v1");
    assert_eq!(config.http.header_timeout.as_secs(), 2);
    assert_eq!(config.http.max_connections, 50);
    assert_eq!(
        config.database.require_url().unwrap().reveal(),
        "postgres://db/cloakroom"
    );
    assert_eq!(
        (config.log.level, config.log.format),
        (Level::Debug, Format::Text)
    );
    assert!(config.root_key.allow_file_in_production);
    assert_eq!(config.telemetry.sample_ratio, 0.25);
}

#[test]
fn environment_variables_override_the_file() {
    let file = "[http]\nmax_connections = 1\nmax_body_bytes = 2\n[log]\nlevel = \"warn\"";
    let variables = [
        ("CLOAKROOM__HTTP__MAX_CONNECTIONS", "7"),
        ("CLOAKROOM__ROOT_KEY__CACHE_TTL", "1m"),
        ("CLOAKROOM_HTTP_LISTEN", "not ours"),
        ("PATH", "/bin"),
    ];

    let config = load(file, &variables).unwrap();

    assert_eq!(config.http.max_connections, 7);
    assert_eq!(config.http.max_body_bytes, 2);
    assert_eq!(config.log.level, Level::Warn);
    assert_eq!(config.root_key.cache_ttl.as_secs(), 60);
}

/// The examples of the guides are valid, lists included.
#[test]
fn documented_egress_settings_are_accepted() {
    let guides = [
        include_str!("../../../../../docs/operate/egress.md"),
        include_str!("../../../../../docs/guides/charge-with-stripe.md"),
    ];
    let blocks = guides.iter().flat_map(|guide| guide.split("```toml\n"));
    let blocks = blocks.filter_map(|rest| Some(rest.split_once("```")?.0));
    let blocks: Vec<&str> = blocks
        .filter(|block| block.contains("allowed_hosts"))
        .collect();
    assert_eq!(blocks.len(), 3);
    for block in blocks {
        let config = load(block, &[]).unwrap();
        assert!(config.egress.allowed_hosts.is_some(), "{block}");
    }
}

#[test]
fn errors_name_the_setting_and_its_source() {
    let cases: [(&str, EnvVars<'_>, &str, &str); 10] = [
        (
            "",
            &[("CLOAKROOM__HTP__X", "1")],
            "htp in the environment",
            "no such section",
        ),
        (
            "[http]\nlisen = 1",
            &[],
            "http.lisen in ",
            "no such setting; [http] has listen, base_url",
        ),
        (
            "[htp]\nlisten = 1",
            &[],
            "htp in ",
            "no such section; there are vault, http",
        ),
        ("listen = 1", &[], "listen in ", "no such section"),
        (
            "http = 1",
            &[],
            "http",
            "must be a section, written as [http]",
        ),
        (
            "[http]\nlisten = [1]",
            &[],
            "http.listen in ",
            "must be a single value",
        ),
        (
            "[http]\nheader_timeout = 5",
            &[],
            "http.header_timeout in ",
            "must be a duration",
        ),
        (
            "[log]\nlevel = \"loud\"",
            &[],
            "log.level in ",
            "must be one of `error`, `warn`",
        ),
        (
            "",
            &[("CLOAKROOM__HTTP__LISEN", "1")],
            "CLOAKROOM__HTTP__LISEN in the environment",
            "no such setting",
        ),
        (
            "[http]\nlisten = \"127.0.0.1:1\"",
            &[("CLOAKROOM__HTTP__LISTEN", "here")],
            "CLOAKROOM__HTTP__LISTEN in the environment",
            "must be an address and a port",
        ),
    ];
    for (file, variables, location, message) in cases {
        let Err(Error::Invalid(findings)) = load(file, variables) else {
            panic!("accepted {file:?} {variables:?}");
        };
        let [finding] = findings.as_slice() else {
            panic!("{file:?}: {findings:?}")
        };
        assert!(
            finding.location.starts_with(location),
            "{file:?}: {finding}"
        );
        assert!(finding.message.starts_with(message), "{file:?}: {finding}");
    }
}

#[test]
fn all_errors_are_reported_at_once() {
    let file = "[http]\nlisten = \"x\"\nheader_timeout = 5\nlisen = 1\n\
                [access]\nkey_cache_ttl = \"6s\"";

    let error = load(file, &[]).unwrap_err().to_string();

    assert_eq!(error.lines().count(), 4, "{error}");
    for name in [
        "http.listen in ",
        "http.lisen in ",
        "access.key_cache_ttl: ",
    ] {
        assert!(error.contains(name), "{error}");
    }
}

#[test]
fn syntax_errors_name_the_line_without_its_text() {
    let file = "[database]\nurl = \"postgres://u:canary@db";

    let error = load(file, &[]).unwrap_err();

    let text = format!("{error} {error:?}");
    assert!(text.contains("line 2"), "{text}");
    assert!(!text.contains("canary"), "{text}");
}

#[test]
fn errors_name_a_missing_file() {
    let error = load_from(Some(Path::new("/nowhere/c.toml")), with(&[]), &[]).unwrap_err();

    assert_eq!(
        error.to_string(),
        "cannot read the configuration file /nowhere/c.toml: entity not found"
    );
}

#[test]
fn the_database_url_is_read_from_its_file() {
    let mut secret = tempfile::NamedTempFile::new().unwrap();
    writeln!(secret, "postgres://u:p@db/x").unwrap();
    let path = secret.path().to_str().unwrap();

    let config = load("", &[("CLOAKROOM__DATABASE__URL_FILE", path)]).unwrap();
    let both = load(
        "[database]\nurl = \"postgres://db/x\"",
        &[("CLOAKROOM__DATABASE__URL_FILE", path)],
    );
    let neither = load("[database]\nurl_file = \"/nowhere\"", &[]);

    assert_eq!(
        config.database.require_url().unwrap().reveal(),
        "postgres://u:p@db/x"
    );
    assert!(
        both.unwrap_err()
            .to_string()
            .starts_with("database.url_file: database.url is set")
    );
    assert!(
        neither
            .unwrap_err()
            .to_string()
            .contains("cannot read /nowhere")
    );
}

#[test]
fn the_redis_url_is_read_from_its_file() {
    let mut secret = tempfile::NamedTempFile::new().unwrap();
    writeln!(secret, "redis://:canary@cache/0").unwrap();
    let path = secret.path().to_str().unwrap();

    let config = load("", &[("CLOAKROOM__REDIS__URL_FILE", path)]).unwrap();
    let both = load(
        "[redis]\nurl = \"redis://cache\"",
        &[("CLOAKROOM__REDIS__URL_FILE", path)],
    );

    let url = config.redis.url.as_ref().unwrap();
    assert_eq!(url.reveal(), "redis://:canary@cache/0");
    assert!(!format!("{config:?}").contains("canary"));
    let error = both.unwrap_err().to_string();
    assert!(
        error.starts_with("redis.url_file: redis.url is set"),
        "{error}"
    );
}

#[test]
fn errors_name_a_missing_setting() {
    let config = Config::default();

    let url = config.database.require_url().unwrap_err().to_string();
    let file = config.root_key.require_file().unwrap_err().to_string();

    assert_eq!(
        url,
        "database.url: is not set; set it in the file given by --config, or as CLOAKROOM__DATABASE__URL"
    );
    assert_eq!(
        file,
        "root_key.file: is not set; set it in the file given by --config, or as CLOAKROOM__ROOT_KEY__FILE"
    );
}

#[test]
fn secrets_are_not_printed_with_the_configuration() {
    let config = load("[database]\nurl = \"postgres://u:canary@db/x\"", &[]).unwrap();

    assert!(!format!("{config:?}").contains("canary"));
}

#[test]
fn load_rejects_errors_found_by_check() {
    let file = "[vault]\nenvironment = \"production\"";

    let error = load(file, &[]).unwrap_err().to_string();

    assert!(
        error.starts_with("root_key.provider: a root key in a file is rejected"),
        "{error}"
    );
}
