//! Numbers of migrations: from 0001 without gaps, `NNNN_what_it_does.sql`.

use std::path::Path;

use super::Violation;
use super::tree::Tree;

const FOLDER: &str = "migrations";

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut expected = 1;
    let inside = tree
        .files
        .iter()
        .filter(|file| file.path.starts_with(FOLDER));
    for file in inside.filter(|file| !file.path.ends_with("README.md")) {
        let violation = |advice| Violation {
            path: file.path.clone(),
            line: 1,
            rule: "migration-number",
            advice,
        };
        match number_of(&file.path) {
            None => found.push(violation("name it NNNN_what_it_does.sql".to_owned())),
            Some(number) if number != expected => {
                found.push(violation(format!("number it {expected:04}")));
                expected = number + 1;
            }
            Some(_) => expected += 1,
        }
    }
    found
}

fn number_of(path: &Path) -> Option<u32> {
    let name = path
        .strip_prefix(FOLDER)
        .ok()?
        .to_str()?
        .strip_suffix(".sql")?;
    let (number, words) = name.split_once('_')?;
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let is_valid = number.len() == 4 && !words.is_empty() && words.chars().all(is_plain);
    is_valid.then(|| number.parse().ok()).flatten()
}
