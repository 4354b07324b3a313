//! The part of `deny.toml` that the built-in check reads; unknown keys are cargo-deny's.

use anyhow::{Context, Result};
use serde::Deserialize;

use super::packages::Package;

#[derive(Deserialize)]
pub(super) struct Policy {
    pub(super) graph: Graph,
    pub(super) licenses: Licences,
    pub(super) bans: Bans,
}

#[derive(Deserialize)]
pub(super) struct Graph {
    /// Crates that only other targets need are not looked at.
    pub(super) targets: Vec<String>,
}

#[derive(Deserialize)]
pub(super) struct Licences {
    pub(super) allow: Vec<String>,
    #[serde(default)]
    exceptions: Vec<LicenceException>,
}

#[derive(Deserialize)]
struct LicenceException {
    #[serde(rename = "crate")]
    spec: String,
    allow: Vec<String>,
}

#[derive(Deserialize)]
pub(super) struct Bans {
    pub(super) deny: Vec<Ban>,
    #[serde(default)]
    pub(super) skip: Vec<Spec>,
}

/// A crate that nothing may use, but for the crates in `wrappers`.
#[derive(Deserialize)]
pub(super) struct Ban {
    #[serde(rename = "crate")]
    spec: String,
    pub(super) reason: String,
    #[serde(default)]
    wrappers: Vec<String>,
}

impl Ban {
    pub(super) fn forbids(&self, package: &Package) -> bool {
        let is_wrapped = !self.wrappers.is_empty()
            && package
                .dependents
                .iter()
                .all(|name| self.wrappers.contains(name));
        covers(&self.spec, package) && !is_wrapped
    }
}

/// A crate, or those of its versions that start alike: `name` or `name@0.9`.
#[derive(Deserialize)]
pub(super) struct Spec {
    #[serde(rename = "crate")]
    pub(super) spec: String,
    #[expect(
        dead_code,
        reason = "its presence is what is checked: every entry says why"
    )]
    reason: String,
}

impl Policy {
    pub(super) fn read(text: &str) -> Result<Self> {
        toml::from_str(text).context("deny.toml")
    }

    pub(super) fn licences_of(&self, package: &Package) -> Vec<&str> {
        let exceptions = self.licenses.exceptions.iter();
        let own = exceptions.filter(|exception| covers(&exception.spec, package));
        let own = own.flat_map(|exception| &exception.allow);
        self.licenses
            .allow
            .iter()
            .chain(own)
            .map(String::as_str)
            .collect()
    }
}

impl Spec {
    pub(super) fn name(&self) -> &str {
        self.spec.split('@').next().unwrap_or(&self.spec)
    }

    pub(super) fn covers(&self, package: &Package) -> bool {
        covers(&self.spec, package)
    }
}

fn covers(spec: &str, package: &Package) -> bool {
    match spec.split_once('@') {
        None => spec == package.name,
        Some((name, version)) => {
            let is_version = package.version == version
                || package
                    .version
                    .strip_prefix(version)
                    .is_some_and(|rest| rest.starts_with('.'));
            name == package.name && is_version
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_covers_those_that_start_with_all_of_it() {
        let cases = [
            ("rand", "0.9.1", true),
            ("rand@0.9", "0.9.1", true),
            ("rand@0.9.1", "0.9.1", true),
            ("rand@0.9", "0.90.1", false),
            ("rand@0.8", "0.9.1", false),
            ("random", "0.9.1", false),
        ];
        for (spec, version, expected) in cases {
            let package = Package {
                name: "rand".to_owned(),
                version: version.to_owned(),
                licence: None,
                source: None,
                is_own: false,
                dependents: Vec::new(),
            };
            assert_eq!(covers(spec, &package), expected, "{spec} {version}");
        }
    }
}
