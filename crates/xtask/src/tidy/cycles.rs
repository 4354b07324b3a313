//! Cycles between the top-level modules of a crate. Between crates, Cargo rejects them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use super::Violation;
use super::code::{Code, find_close, find_word};
use super::tree::Tree;

/// Crates and modules of them that may use each other. This list only shrinks.
pub(super) const ALLOWED: [(&str, &str); 8] = [
    // Subcommands print a constant of their command.
    ("cloakroom-cli", "grants manage tenant_settings"),
    // An error is reported in a message, and parsing a message yields errors.
    ("cloakroom-emv3ds", "codec correlate fault fields messages"),
    // The grammar is recursive.
    ("cloakroom-expressions", "filters node output render tag"),
    // Clients apply a mutation, which also tampers with what they wrote.
    ("cloakroom-faults", "clients mutation"),
    // A soak is a run with its own report.
    ("cloakroom-faults", "report run soak"),
    // Both report an unusable folder.
    ("cloakroom-scratch", "folder owner"),
    // A vendor is a directory server with other results.
    ("cloakroom-threeds-simulator", "directory results vendor"),
    // The state holds the sender, which reads the state.
    ("cloakroom-threeds-simulator", "sender state"),
];

/// The modules that each module of a crate uses, with the file and line of the first use.
type Graph = BTreeMap<String, BTreeMap<String, (PathBuf, usize)>>;

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let mut found = Vec::new();
    for (name, graph) in graphs(tree) {
        let mut cycles = cycles(&graph);
        cycles.retain(|cycle| {
            let mut allowed = ALLOWED.iter().filter(|(in_crate, _)| *in_crate == name);
            !allowed.any(|(_, modules)| covers(modules, cycle))
        });
        found.extend(cycles.iter().filter_map(|cycle| violation(&graph, cycle)));
    }
    found
}

/// Whether the modules of an exception include all of a cycle.
fn covers(modules: &str, cycle: &BTreeSet<String>) -> bool {
    let is_listed = |module: &String| modules.split(' ').any(|listed| listed == module);
    cycle.iter().all(is_listed)
}

fn violation(graph: &Graph, cycle: &BTreeSet<String>) -> Option<Violation> {
    let uses = graph.get(cycle.first()?)?;
    let (path, line) = cycle.iter().find_map(|other| uses.get(other))?.clone();
    let modules = Vec::from_iter(cycle.iter().map(String::as_str)).join(", ");
    Some(Violation {
        path,
        line,
        rule: "module-cycle",
        advice: format!("{modules} use each other: remove one direction"),
    })
}

/// The graph of each crate.
fn graphs(tree: &Tree) -> BTreeMap<String, Graph> {
    let mut graphs: BTreeMap<String, Graph> = BTreeMap::new();
    for file in tree.rust("crates").filter(|file| !file.is_test()) {
        let parts: Vec<&str> = file.path.iter().filter_map(|part| part.to_str()).collect();
        let ["crates", name, "src", module, ..] = parts[..] else {
            continue;
        };
        let module = module.trim_end_matches(".rs");
        // The root of the crate uses all modules, and no module uses it.
        if module == "lib" || module == "main" {
            continue;
        }
        let code = Code::read(&file.text);
        let graph = graphs.entry(name.to_owned()).or_default();
        let uses = graph.entry(module.to_owned()).or_default();
        for at in find_word(&code.text, "crate") {
            for other in modules_in(&code.text[at..]) {
                if other != module {
                    let place = || (file.path.clone(), code.line_at(at));
                    uses.entry(other.to_owned()).or_insert_with(place);
                }
            }
        }
    }
    graphs
}

/// The modules in the path at the start of `text`: `crate::x::y` or `crate::{x, y::z}`.
fn modules_in(text: &str) -> impl Iterator<Item = &str> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let first_part = move |path: &str| path.find(|c| !is_part(c)).unwrap_or(path.len());
    let path = text.strip_prefix("crate::").unwrap_or_default();
    let list = match find_close(path, 0) {
        Some(end) if path.starts_with('{') => &path[1..end - 1],
        _ => &path[..first_part(path)],
    };
    let mut depth = 0;
    let paths = list.split(move |c| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        c == ',' && depth == 0
    });
    let paths = paths.map(str::trim_start);
    paths.map(move |path| &path[..first_part(path)])
}

/// Sets of modules that use each other, directly or through others.
fn cycles(graph: &Graph) -> BTreeSet<BTreeSet<String>> {
    let with = |module: &String| {
        let others = reached(graph, module).into_iter();
        let others = others.filter(|other| reached(graph, other).contains(module));
        others.cloned().collect::<BTreeSet<_>>()
    };
    let cycles = graph.keys().map(with);
    cycles.filter(|cycle| !cycle.is_empty()).collect()
}

fn reached<'a>(graph: &'a Graph, from: &String) -> BTreeSet<&'a String> {
    let uses = |module| graph.get(module).into_iter().flat_map(BTreeMap::keys);
    let mut reached = BTreeSet::new();
    let mut open: Vec<&String> = uses(from).collect();
    while let Some(module) = open.pop() {
        if reached.insert(module) {
            open.extend(uses(module));
        }
    }
    reached
}

#[test]
fn every_exception_is_needed() {
    let root = cloakroom_devtools::workspace::root();
    let graphs = graphs(&Tree::read(&root).unwrap());
    for row in &ALLOWED {
        let cycles = cycles(&graphs[row.0]);
        let is_needed = cycles.iter().any(|cycle| covers(row.1, cycle));
        assert!(is_needed, "there is no such cycle, remove {row:?}");
    }
}
