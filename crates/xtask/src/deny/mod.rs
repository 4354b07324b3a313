//! Which crates the workspace may be built from: licences, sources, bans and duplicates.
//!
//! `deny.toml` says what is allowed. cargo-deny reads it where it is installed; elsewhere the
//! checks below read the same file, so that a machine without it is no reason to skip them.

mod licence;
mod packages;
mod policy;

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::{process, workspace};
use packages::Package;
use policy::Policy;

/// Earlier versions read another shape of deny.toml.
const CARGO_DENY_VERSION_MIN: (u32, u32) = (0, 16);

pub(crate) fn run() -> Result<()> {
    if has_cargo_deny() {
        let mut command = workspace::cargo();
        command.args(["deny", "--locked", "check", "bans", "licenses", "sources"]);
        process::run_well(command)?;
    } else {
        let text = std::fs::read_to_string(workspace::root().join("deny.toml"))?;
        let policy = Policy::read(&text)?;
        let packages = packages::read(&policy.graph.targets)?;
        let found = check(&policy, &packages);
        for line in &found {
            println!("{line}");
        }
        if !found.is_empty() {
            bail!("deny: {} to do", found.len());
        }
        println!(
            "deny: {} crates, nothing to do (built-in check)",
            packages.len()
        );
    }
    check_advisories()
}

fn has_cargo_deny() -> bool {
    let version = Command::new("cargo-deny").arg("--version").output().ok();
    let version = version.and_then(|output| String::from_utf8(output.stdout).ok());
    version.is_some_and(|text| version_of(&text) >= Some(CARGO_DENY_VERSION_MIN))
}

fn version_of(said: &str) -> Option<(u32, u32)> {
    let mut numbers = said.split_whitespace().nth(1)?.split('.').map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// Known vulnerabilities come from a database that not every machine can reach.
fn check_advisories() -> Result<()> {
    if !has_cargo_deny() || !advisory_databases().iter().any(|folder| folder.is_dir()) {
        println!("deny: advisories not checked: they need cargo-deny and its advisory database");
        return Ok(());
    }
    let mut command = workspace::cargo();
    command.args(["deny", "--locked", "check", "--disable-fetch", "advisories"]);
    process::run_well(command).context("advisories")
}

fn advisory_databases() -> Vec<PathBuf> {
    let home = std::env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| {
            let home = std::env::var_os("HOME")?;
            Some(PathBuf::from(home).join(".cargo"))
        });
    home.into_iter()
        .flat_map(|home| [home.join("advisory-dbs"), home.join("advisory-db")])
        .collect()
}

fn check(policy: &Policy, packages: &[Package]) -> Vec<String> {
    let mut found = Vec::new();
    for package in packages.iter().filter(|package| !package.is_own) {
        found.extend(licence_problem(policy, package));
        found.extend(source_problem(package));
        found.extend(ban_problem(policy, package));
    }
    found.extend(duplicates(policy, packages));
    found.extend(unneeded(policy, packages));
    found
}

fn licence_problem(policy: &Policy, package: &Package) -> Option<String> {
    let allowed = policy.licences_of(package);
    let Some(expression) = &package.licence else {
        return Some(format!("{package}: licence: it names none"));
    };
    match licence::is_allowed(expression, &allowed) {
        Ok(true) => None,
        Ok(false) => Some(format!("{package}: licence: `{expression}` is not allowed")),
        Err(reason) => Some(format!("{package}: licence: `{expression}`: {reason}")),
    }
}

fn source_problem(package: &Package) -> Option<String> {
    // Cargo's own registry has many mirrors, but keeps its name in the lock file.
    let is_known = package.source.as_deref().is_some_and(|source| {
        source.starts_with("registry+") && source.ends_with("/crates.io-index")
    });
    let source = package
        .source
        .as_deref()
        .unwrap_or("a folder outside the workspace");
    (!is_known).then(|| format!("{package}: source: {source} is not the crate registry"))
}

fn ban_problem(policy: &Policy, package: &Package) -> Option<String> {
    let ban = policy.bans.deny.iter().find(|ban| ban.forbids(package))?;
    Some(format!("{package}: banned: {}", ban.reason))
}

fn duplicates(policy: &Policy, packages: &[Package]) -> Vec<String> {
    let is_skipped = |package: &Package| policy.bans.skip.iter().any(|skip| skip.covers(package));
    let mut counted: Vec<&Package> = packages.iter().filter(|it| !is_skipped(it)).collect();
    counted.sort_by(|a, b| (&a.name, &a.version).cmp(&(&b.name, &b.version)));
    counted
        .chunk_by(|a, b| a.name == b.name)
        .filter(|versions| versions.len() > 1)
        .map(|versions| {
            let all: Vec<_> = versions.iter().map(|package| package.version.as_str()).collect();
            format!(
                "{}: duplicate: {} together; agree on one, or list the older under `skip` with a reason",
                versions[0].name,
                all.join(" and ")
            )
        })
        .collect()
}

/// What the policy lets pass and nothing needs: such lists only shrink.
fn unneeded(policy: &Policy, packages: &[Package]) -> Vec<String> {
    let skips = policy
        .bans
        .skip
        .iter()
        .filter(|skip| {
            let of_name = packages.iter().filter(|it| it.name == skip.name()).count();
            of_name < 2 || !packages.iter().any(|package| skip.covers(package))
        })
        .map(|skip| format!("{}: skip: no longer a duplicate, take it out", skip.spec));
    let licences = policy
        .licenses
        .allow
        .iter()
        .filter(|id| {
            !packages.iter().any(|package| {
                package
                    .licence
                    .as_deref()
                    .is_some_and(|text| licence::names(text, id))
            })
        })
        .map(|id| format!("{id}: licence: no crate has it, take it out"));
    skips.chain(licences).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: &str = r#"
        [graph]
        targets = ["x86_64-unknown-linux-gnu"]
        [licenses]
        allow = ["MIT", "Apache-2.0"]
        exceptions = [{ crate = "tables", allow = ["Unicode-3.0"] }]
        [bans]
        deny = [
            { crate = "openssl", reason = "one TLS" },
            { crate = "time", reason = "one time library", wrappers = ["rcgen"] },
        ]
        skip = [{ crate = "old@0.9", reason = "until its users move" }]
    "#;

    fn package(name: &str, version: &str, licence: &str) -> Package {
        Package {
            name: name.to_owned(),
            version: version.to_owned(),
            licence: Some(licence.to_owned()),
            source: Some("registry+https://example.test/crates.io-index".to_owned()),
            is_own: false,
            dependents: vec!["axum".to_owned()],
        }
    }

    fn clean() -> Vec<Package> {
        vec![
            package("serde", "1.0.1", "MIT OR Apache-2.0"),
            package("tables", "3.0.0", "Unicode-3.0 AND MIT"),
            package("old", "0.9.7", "MIT"),
            package("old", "1.2.0", "MIT"),
            Package {
                dependents: vec!["rcgen".to_owned()],
                ..package("time", "0.3.1", "MIT")
            },
            Package {
                source: None,
                is_own: true,
                ..package("cloakroom", "0.1.0", "Apache-2.0")
            },
        ]
    }

    fn found(planted: Package) -> Vec<String> {
        let policy = Policy::read(POLICY).unwrap();
        let packages: Vec<_> = clean().into_iter().chain([planted]).collect();
        check(&policy, &packages)
    }

    #[test]
    fn a_clean_graph_passes() {
        let policy = Policy::read(POLICY).unwrap();

        assert_eq!(check(&policy, &clean()), Vec::<String>::new());
    }

    #[test]
    fn each_planted_crate_is_found() {
        let cases = [
            (
                package("a", "1.0.0", "GPL-3.0"),
                "a 1.0.0: licence: `GPL-3.0` is not allowed",
            ),
            (
                package("a", "1.0.0", "Unicode-3.0"),
                "a 1.0.0: licence: `Unicode-3.0` is not allowed",
            ),
            (
                Package {
                    licence: None,
                    ..package("a", "1.0.0", "")
                },
                "a 1.0.0: licence: it names none",
            ),
            (
                Package {
                    source: Some("git+https://example.test/a".to_owned()),
                    ..package("a", "1.0.0", "MIT")
                },
                "a 1.0.0: source: git+https://example.test/a is not the crate registry",
            ),
            (
                Package {
                    source: None,
                    ..package("a", "1.0.0", "MIT")
                },
                "a 1.0.0: source: a folder outside the workspace is not the crate registry",
            ),
            (
                package("openssl", "0.10.1", "MIT"),
                "openssl 0.10.1: banned: one TLS",
            ),
            (
                package("serde", "2.0.0", "MIT"),
                "serde: duplicate: 1.0.1 and 2.0.0 together; agree on one, or list the older under \
                 `skip` with a reason",
            ),
        ];
        for (planted, expected) in cases {
            assert_eq!(found(planted), [expected]);
        }
    }

    #[test]
    fn a_wrapped_crate_is_banned_for_everybody_else() {
        let policy = Policy::read(POLICY).unwrap();
        let mut packages = clean();
        for package in packages.iter_mut().filter(|package| package.name == "time") {
            package.dependents.push("axum".to_owned());
        }

        assert_eq!(
            check(&policy, &packages),
            ["time 0.3.1: banned: one time library"]
        );
    }

    #[test]
    fn what_the_policy_no_longer_needs_is_found() {
        let policy = Policy::read(POLICY).unwrap();
        let packages = [package("serde", "1.0.1", "MIT")];

        let found = check(&policy, &packages);

        assert_eq!(
            found,
            [
                "old@0.9: skip: no longer a duplicate, take it out",
                "Apache-2.0: licence: no crate has it, take it out",
            ]
        );
    }

    #[test]
    fn versions_of_cargo_deny_are_compared_as_numbers() {
        assert!(version_of("cargo-deny 0.18.3") >= Some(CARGO_DENY_VERSION_MIN));
        assert!(version_of("cargo-deny 0.14.2") < Some(CARGO_DENY_VERSION_MIN));
        assert_eq!(version_of("no such command"), None);
    }
}
