//! Names and numbers of files in the modules of the service.

use std::collections::BTreeMap;
use std::path::Path;

use super::Violation;
use super::tree::Tree;

/// The source folders of the service.
const SOURCES: [&str; 5] = [
    "crates/cloakroom/src",
    "crates/cloakroom-core/src",
    "crates/cloakroom-management/src",
    "crates/cloakroom-threeds/src",
    "crates/cloakroom-tokens/src",
];

const MODULE_FILES_MAX: usize = 15;

/// Names of technical roles. Files are named after an operation or a type.
const ROLE_NAMES: [(&str, &str); 21] = [
    ("constants", "put each constant where it is used"),
    ("db", "the module's statements go to store.rs"),
    ("dto", "requests and responses go to api.rs"),
    ("error", "the module's Error goes to mod.rs"),
    ("errors", "the module's Error goes to mod.rs"),
    ("handler", "handlers go to api.rs"),
    ("handlers", "handlers go to api.rs"),
    ("http", "handlers, requests and responses go to api.rs"),
    ("impls", "put each impl next to its type"),
    ("lib", "the root of a module is mod.rs"),
    ("manager", "name the operation or the type"),
    ("model", "one type per file, named after the type"),
    ("models", "one type per file, named after the type"),
    ("queries", "the module's statements go to store.rs"),
    ("repository", "the module's statements go to store.rs"),
    ("routes", "routes go to api.rs"),
    (
        "service",
        "one operation per file, named after the operation",
    ),
    ("sql", "the module's statements go to store.rs"),
    ("traits", "put each trait next to what needs it"),
    ("types", "one type per file, named after the type"),
    ("verbs", "one operation per file, named after the operation"),
];

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut folders: BTreeMap<&Path, usize> = BTreeMap::new();
    for file in &tree.files {
        // Files of a module, but not those at the top of a crate.
        let is_in_module = |source: &&str| {
            file.path
                .strip_prefix(source)
                .is_ok_and(|inside| inside.iter().count() > 1)
        };
        if !SOURCES.iter().any(is_in_module) {
            continue;
        }
        found.extend(check_name(&file.path));
        // Tests do not count, as in the sizes of files.
        if let Some(folder) = file
            .path
            .parent()
            .filter(|_| !file.path.ends_with("tests.rs"))
        {
            *folders.entry(folder).or_default() += 1;
        }
    }
    // A folder has few enough files to be read as one list.
    for (folder, size) in folders
        .into_iter()
        .filter(|(_, size)| *size > MODULE_FILES_MAX)
    {
        let advice = format!("{size} files, {MODULE_FILES_MAX} at most: split the module");
        found.push(violation(folder, "module-size", advice));
    }
    found
}

fn check_name(path: &Path) -> Option<Violation> {
    if path.extension().is_some_and(|kind| kind == "sql") {
        let advice = "migrations go to migrations/, statements to store.rs".to_owned();
        return Some(violation(path, "sql-place", advice));
    }
    let stem = path.file_stem()?.to_str()?;
    let (_, advice) = ROLE_NAMES.iter().find(|(name, _)| *name == stem)?;
    Some(violation(path, "module-layout", (*advice).to_owned()))
}

fn violation(path: &Path, rule: &'static str, advice: String) -> Violation {
    Violation {
        path: path.to_owned(),
        line: 1,
        rule,
        advice,
    }
}
