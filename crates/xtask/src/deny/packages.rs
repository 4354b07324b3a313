//! The crates that the workspace is built from, as cargo resolved them.

use std::collections::HashSet;
use std::fmt;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::workspace;

#[derive(Clone, Debug)]
pub(super) struct Package {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) licence: Option<String>,
    pub(super) source: Option<String>,
    /// One of the workspace's crates.
    pub(super) is_own: bool,
    /// The crates that depend on it.
    pub(super) dependents: Vec<String>,
}

impl fmt::Display for Package {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name, self.version)
    }
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<MetadataPackage>,
    workspace_members: HashSet<String>,
    resolve: Resolve,
}

#[derive(Deserialize)]
struct MetadataPackage {
    id: String,
    name: String,
    version: String,
    license: Option<String>,
    source: Option<String>,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    dependencies: Vec<String>,
}

/// The crates that any of `targets` needs.
pub(super) fn read(targets: &[String]) -> Result<Vec<Package>> {
    let mut arguments = vec!["metadata", "--format-version=1"];
    for target in targets {
        arguments.extend(["--filter-platform", target]);
    }
    let metadata: Metadata = serde_json::from_str(&ask_cargo(&arguments)?)?;
    let built = built(targets)?;
    let is_built = |package: &&MetadataPackage| {
        built.contains(&(package.name.clone(), package.version.clone()))
    };
    let packages: Vec<_> = metadata.packages.iter().filter(is_built).collect();
    Ok(packages
        .iter()
        .map(|package| Package {
            name: package.name.clone(),
            version: package.version.clone(),
            licence: package.license.clone(),
            source: package.source.clone(),
            is_own: metadata.workspace_members.contains(&package.id),
            dependents: dependents(package, &packages, &metadata.resolve),
        })
        .collect())
}

fn dependents(
    package: &MetadataPackage,
    packages: &[&MetadataPackage],
    resolve: &Resolve,
) -> Vec<String> {
    let nodes = resolve
        .nodes
        .iter()
        .filter(|node| node.dependencies.contains(&package.id));
    let ids: HashSet<&str> = nodes.map(|node| node.id.as_str()).collect();
    let found = packages
        .iter()
        .filter(|other| ids.contains(other.id.as_str()));
    found.map(|other| other.name.clone()).collect()
}

/// Name and version of what is really built: the metadata also lists optional crates that no
/// feature asks for.
fn built(targets: &[String]) -> Result<HashSet<(String, String)>> {
    let mut found = HashSet::new();
    for target in targets {
        let arguments = [
            "tree",
            "--workspace",
            "--prefix=none",
            "--format={p}",
            "--target",
            target.as_str(),
        ];
        for line in ask_cargo(&arguments)?.lines() {
            let mut words = line.split_whitespace();
            if let (Some(name), Some(version)) = (words.next(), words.next()) {
                found.insert((name.to_owned(), version.trim_start_matches('v').to_owned()));
            }
        }
    }
    Ok(found)
}

fn ask_cargo(arguments: &[&str]) -> Result<String> {
    let output = workspace::cargo()
        .args(arguments)
        .arg("--locked")
        .output()
        .context("cargo")?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("cargo {}: {}", arguments.join(" "), said.trim());
    }
    Ok(String::from_utf8(output.stdout)?)
}
