//! Checks of the source tree that no compiler makes: layout, order of rooms, sizes, names.
//!
//! Sources are read as text: the checks need no build, and a broken file is still checked.

mod code;
mod dependencies;
mod exceptions;
mod grammar;
mod manifests;
mod migrations;
mod names;
mod rooms;
mod sizes;
mod sql;
mod tree;
mod wording;

use std::fmt;
use std::path::PathBuf;

use anyhow::{Result, bail};

use crate::workspace;
use tree::Tree;

/// Something that is not as it should be, and what to do instead.
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
    grammar::check,
    sql::check,
    dependencies::check,
    sizes::check,
    names::check,
    manifests::check,
    wording::check,
    migrations::check,
];

pub(crate) fn run() -> Result<()> {
    let tree = Tree::read(&workspace::root())?;
    let found = exceptions::apply(exceptions::EXCEPTIONS, violations(&tree));
    for violation in &found {
        println!("{violation}");
    }
    match found.len() {
        0 => {
            println!("tidy: {} files, nothing to do", tree.files.len());
            Ok(())
        }
        count => bail!("tidy: {count} to do"),
    }
}

fn violations(tree: &Tree) -> Vec<Violation> {
    let mut found: Vec<_> = RULES.iter().flat_map(|rule| rule(tree)).collect();
    found.sort_by(|a, b| (&a.path, a.line, a.rule).cmp(&(&b.path, b.line, b.rule)));
    found
}

#[cfg(test)]
mod planted;
