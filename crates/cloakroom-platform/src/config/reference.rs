//! Generates the settings reference and the sample configuration file from the definitions.

use std::fmt::Write as _;

use super::section::{Description, Row, environment_name};
use super::{
    Access, Admin, Audit, ClientEncryption, Cryptoperiods, Database, Deprecated, Egress, Http,
    Idempotency, Limits, Log, Proxy, Quotas, Redis, RootKey, SecurityCodes, Sessions, Telemetry,
    Tenants, Threeds, Tokens, Vault, Webhooks,
};

pub(super) fn sections() -> [Description; 24] {
    [
        Vault::describe(),
        Http::describe(),
        Admin::describe(),
        Database::describe(),
        Redis::describe(),
        RootKey::describe(),
        Cryptoperiods::describe(),
        Access::describe(),
        Limits::describe(),
        Quotas::describe(),
        Audit::describe(),
        Sessions::describe(),
        Tenants::describe(),
        Idempotency::describe(),
        Deprecated::describe(),
        SecurityCodes::describe(),
        Tokens::describe(),
        ClientEncryption::describe(),
        Threeds::describe(),
        Egress::describe(),
        Proxy::describe(),
        Webhooks::describe(),
        Log::describe(),
        Telemetry::describe(),
    ]
}

/// Returns the settings reference as Markdown, one table per section.
pub fn reference() -> String {
    let mut text = "# Settings\n\n\
        Settings are read from one TOML file and from environment variables, which override the file.\n\
        Durations are written like `10s`, `5m` or `1h`. Unknown names are rejected.\n"
        .to_owned();
    for Description { section, doc, rows } in sections() {
        let heads =
            "| key | type | default | meaning | environment |\n| --- | --- | --- | --- | --- |";
        // Writing to a string cannot fail.
        let _ = write!(text, "\n## `{section}`\n\n{doc}\n\n{heads}\n");
        for Row {
            key,
            kind,
            default,
            doc,
        } in rows
        {
            let default = default
                .map(|default| format!("`{default}`"))
                .unwrap_or_default();
            let name = environment_name(section, key);
            let _ = writeln!(text, "| `{key}` | {kind} | {default} | {doc} | `{name}` |");
        }
    }
    text
}

/// Returns a TOML file with all settings commented out, at their defaults.
pub fn sample() -> String {
    let mut text = String::new();
    for Description { section, doc, rows } in sections() {
        let gap = if text.is_empty() { "" } else { "\n" };
        let _ = write!(text, "{gap}# {doc}\n[{section}]\n");
        for Row {
            key,
            kind,
            default,
            doc,
        } in rows
        {
            let _ = match default {
                Some(default) => write!(text, "\n# {doc}\n#{key} = {}\n", to_toml(&default)),
                None => write!(
                    text,
                    "\n# {doc} Not set by default.\n#{key} = {}\n",
                    example(&kind)
                ),
            };
        }
    }
    text
}

/// A value of a setting that is not set, as TOML.
fn example(kind: &str) -> &'static str {
    match kind {
        "whole number" => "1",
        "path" => "\"/path/to/file\"",
        "URL" => "\"https://vault.example.com\"",
        "address and port" => "\"127.0.0.1:8443\"",
        "networks" => "\"10.0.0.0/8\"",
        _ => "\"…\"",
    }
}

/// Formats a default as TOML: numbers and booleans bare, everything else quoted.
fn to_toml(default: &str) -> String {
    let bare = default.parse::<f64>().is_ok() || default.parse::<bool>().is_ok();
    if bare {
        default.to_owned()
    } else {
        format!("\"{default}\"")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, load_from};

    #[test]
    fn every_setting_is_described() {
        for Description { section, doc, rows } in sections() {
            assert!(doc.ends_with('.'), "{section}: {doc}");
            for row in rows {
                assert!(row.doc.ends_with('.'), "{section}.{}: {}", row.key, row.doc);
                assert!(
                    !row.doc.contains('|'),
                    "{section}.{} breaks its table",
                    row.key
                );
            }
        }
    }

    #[test]
    fn the_reference_has_a_row_per_setting() {
        let reference = reference();

        let row = "| `body_timeout` | duration | `30s` | How long a client may take to send the body \
                   of a request. | `CLOAKROOM__HTTP__BODY_TIMEOUT` |";
        assert!(reference.contains(row), "{reference}");
        let rows: usize = sections().iter().map(|section| section.rows.len()).sum();
        assert_eq!(reference.matches("CLOAKROOM__").count(), rows);
    }

    #[test]
    fn every_line_of_the_sample_is_toml() {
        let uncommented = sample().replace("\n#", "\n").replace("\n ", "\n# ");
        let table: toml::Table = uncommented.parse().unwrap();
        let settings = table.values().filter_map(toml::Value::as_table);
        let rows: usize = sections().iter().map(|section| section.rows.len()).sum();
        assert_eq!(settings.map(toml::Table::len).sum::<usize>(), rows);
    }

    #[test]
    fn the_sample_matches_the_defaults() {
        let (mut uncommented, mut is_default) = (Vec::new(), true);
        for line in sample().lines() {
            match line.strip_prefix('#') {
                Some(rest) if rest.starts_with(' ') => {
                    is_default = !rest.ends_with(" Not set by default.");
                }
                Some(rest) if is_default => uncommented.push(rest.to_owned()),
                Some(_) => {}
                None => uncommented.push(line.to_owned()),
            }
        }
        let path = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(path.path(), uncommented.join("\n")).unwrap();

        let config = load_from(Some(path.path()), Default::default(), &[]).unwrap();

        assert_eq!(config, Config::default());
        assert!(
            uncommented
                .iter()
                .any(|line| line == "header_timeout = \"5s\"")
        );
    }
}
