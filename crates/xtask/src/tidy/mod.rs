//! Checks of the source tree that neither compiler nor clippy makes: layout, cycles, sizes, names, SQL.
//!
//! Sources are read as text: the checks need no build, and a file that does not compile is still checked.

mod code;
mod cycles;
mod layout;
mod manifests;
mod migrations;
mod names;
mod sizes;
mod sql;
mod text;
mod tree;

use std::fmt;
use std::path::PathBuf;

use anyhow::{Result, bail};
use cloakroom_devtools::workspace;
use tree::Tree;

/// A violated rule, and how to fix it.
#[derive(Clone, Debug)]
struct Violation {
    path: PathBuf,
    line: usize,
    rule: &'static str,
    advice: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            path,
            line,
            rule,
            advice,
        } = self;
        write!(f, "{}:{line}: {rule}: {advice}", path.display())
    }
}

const RULES: [fn(&Tree) -> Vec<Violation>; 8] = [
    layout::check,
    sql::check,
    cycles::check,
    sizes::check,
    names::check,
    manifests::check,
    text::check,
    migrations::check,
];

pub(crate) fn run() -> Result<()> {
    let tree = Tree::read(&workspace::root())?;
    let found = violations(&tree);
    for violation in &found {
        println!("{violation}");
    }
    match found.len() {
        0 => {
            let (files, cycles) = (tree.files.len(), cycles::ALLOWED.len());
            println!("tidy: {files} files, no violations; {cycles} allowed cycles of modules");
            Ok(())
        }
        count => bail!("tidy: {count} violations"),
    }
}

fn violations(tree: &Tree) -> Vec<Violation> {
    let mut found: Vec<_> = RULES.iter().flat_map(|rule| rule(tree)).collect();
    found.sort_by(|a, b| (&a.path, a.line, a.rule).cmp(&(&b.path, b.line, b.rule)));
    found
}

#[cfg(test)]
mod tests;
