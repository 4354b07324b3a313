//! The grammar of rooms: which folders and files the service's source folder may hold.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::Violation;
use super::rooms::{self, GATED, SOURCE};
use super::tree::Tree;

const ROOM_FILES_MAX: usize = 15;

/// Names that say how a file is built instead of what it does or is.
const ROLELESS: [(&str, &str); 21] = [
    ("constants", "put each constant where it is used"),
    ("db", "the room's statements go to store.rs"),
    ("dto", "wire shapes go to api.rs"),
    ("error", "the room's Error goes to mod.rs"),
    ("errors", "the room's Error goes to mod.rs"),
    ("handler", "handlers go to api.rs"),
    ("handlers", "handlers go to api.rs"),
    ("http", "handlers and wire shapes go to api.rs"),
    ("impls", "put each impl next to its type"),
    ("lib", "a room's front door is mod.rs"),
    ("manager", "name the verb or the noun"),
    ("model", "one noun per file, named after the noun"),
    ("models", "one noun per file, named after the noun"),
    ("queries", "the room's statements go to store.rs"),
    ("repository", "the room's statements go to store.rs"),
    ("routes", "routes go to api.rs"),
    ("service", "one verb per file, named after the verb"),
    ("sql", "the room's statements go to store.rs"),
    ("traits", "put each trait next to what needs it"),
    ("types", "one noun per file, named after the noun"),
    ("verbs", "one verb per file, named after the verb"),
];

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut folders: BTreeMap<PathBuf, BTreeSet<String>> = BTreeMap::new();
    for file in tree
        .files
        .iter()
        .filter(|file| file.path.starts_with(SOURCE))
    {
        let Some(name) = file.path.file_name().and_then(|name| name.to_str()) else {
            continue;
        };
        let folder = file.path.parent().unwrap_or(Path::new(SOURCE)).to_owned();
        found.extend(check_file(&file.path, name));
        folders.entry(folder).or_default().insert(name.to_owned());
    }
    for (folder, names) in &folders {
        if folder != Path::new(SOURCE) && !names.contains("mod.rs") {
            let advice = "give the room its front door, mod.rs".to_owned();
            found.push(violation(folder, "room-grammar", advice));
        }
    }
    found.extend(check_sizes(&folders));
    found
}

fn check_file(path: &Path, name: &str) -> Option<Violation> {
    let inside = path.strip_prefix(SOURCE).ok()?;
    let top = inside.iter().next()?.to_str()?;
    let room = top.strip_suffix(".rs").unwrap_or(top);
    if room != "lib" && !rooms::is_known(room) {
        let advice = format!("`{room}` is no room: put it in one, or add it to the table of rooms");
        return Some(violation(path, "room-grammar", advice));
    }
    if name.ends_with(".sql") && room != "storage" {
        let advice = "migrations go to migrations/, statements to store.rs".to_owned();
        return Some(violation(path, "sql-place", advice));
    }
    let stem = name.strip_suffix(".rs")?;
    if inside.iter().count() == 1 {
        return None;
    }
    if stem == "gate" && !GATED.contains(&room) {
        let advice = format!("only {} have a gate: use a verb file", GATED.join(", "));
        return Some(violation(path, "room-grammar", advice));
    }
    if rooms::is_vocabulary(room) {
        return None;
    }
    let (_, advice) = ROLELESS.iter().find(|(refused, _)| *refused == stem)?;
    Some(violation(path, "room-grammar", (*advice).to_owned()))
}

fn check_sizes(folders: &BTreeMap<PathBuf, BTreeSet<String>>) -> Vec<Violation> {
    let mut sizes: BTreeMap<PathBuf, usize> = BTreeMap::new();
    for (folder, names) in folders {
        let Ok(inside) = folder.strip_prefix(SOURCE) else {
            continue;
        };
        if let Some(room) = inside.iter().next() {
            // Sizes are without tests, for rooms as for files.
            let files = names.iter().filter(|name| *name != "tests.rs").count();
            *sizes.entry(Path::new(SOURCE).join(room)).or_default() += files;
        }
    }
    let too_large = sizes.iter().filter(|(_, size)| **size > ROOM_FILES_MAX);
    too_large
        .map(|(room, size)| {
            let advice = format!("{size} files, {ROOM_FILES_MAX} at most: split the room in two");
            violation(room, "room-size", advice)
        })
        .collect()
}

fn violation(path: &Path, rule: &'static str, advice: String) -> Violation {
    Violation {
        path: path.to_owned(),
        line: 1,
        rule,
        advice,
    }
}
