//! The steps of the pipeline, in order, each with the files that decide its result.

/// A command that must succeed.
pub(super) struct Step {
    pub name: &'static str,
    pub tool: Tool,
    pub words: &'static [&'static str],
    pub needs_services: bool,
    /// Whether it needs a full table, a browser or a cluster.
    pub is_deep: bool,
    /// What decides its result, as pathspecs of git. A step that has passed is skipped until one of these files changes.
    /// Steps without inputs always run.
    pub inputs: &'static [&'static [&'static str]],
}

#[derive(Clone, Copy)]
pub(super) enum Tool {
    Cargo,
    /// This program itself, as another process.
    Task,
    /// cargo-nextest if it is installed, else `cargo test`.
    Tests,
}

/// What the programs and tests are built from.
const SOURCES: &[&str] = &[
    ".cargo",
    "Cargo.lock",
    "Cargo.toml",
    "clippy.toml",
    "crates",
    // Compiled in.
    "docs/api/*.json",
    "formulas",
    "migrations",
    "rust-toolchain.toml",
    "web/elements/dist",
];

/// What tests read beside the sources.
const READ_BY_TESTS: &[&str] = &[
    ".config",
    "conformance",
    "deploy",
    "docs/api/sdk-methods.md",
    "docs/guides",
    "docs/operate/bins.md",
    "docs/operate/egress.md",
    "docs/operate/runbooks",
    "docs/trust/adversary.toml",
    "examples",
    "fuzz",
];

/// Markdown and what renders, checks and executes it.
const PAGES: &[&str] = &["*.md", "docs", "examples", "conformance/unsupported.json"];

const CLIENTS: &[&str] = &[
    "conformance",
    "docs/api/sdk-methods.md",
    "examples",
    "web/elements",
];

/// Both parts need it.
pub(super) const BUILD: &str = "build";

/// Fast steps first, and every step after those that it depends on.
pub(super) static STEPS: [Step; 17] = [
    cargo("format", &["fmt", "--all", "--check"]),
    task("tidy", &["tidy"]),
    task("deny", &["deny"]).of(&[&[
        "Cargo.lock",
        "Cargo.toml",
        "crates/*/Cargo.toml",
        "deny.toml",
    ]]),
    cargo(
        "clippy",
        &[
            "clippy",
            "--workspace",
            "--all-targets",
            "--locked",
            "--",
            "-D",
            "warnings",
        ],
    )
    .of(&[SOURCES]),
    cargo("docs", &["doc", "--workspace", "--no-deps", "--locked"]).of(&[SOURCES]),
    // What the steps below run. With the examples, dependencies have the features that the tests need, and none is
    // compiled twice.
    cargo(
        BUILD,
        &["build", "--workspace", "--bins", "--examples", "--locked"],
    ),
    Step::new("tests", Tool::Tests, &["--workspace", "--locked"])
        .of(&[SOURCES, READ_BY_TESTS])
        .with_services(),
    cargo("doctests", &["test", "--doc", "--workspace", "--locked"]).of(&[SOURCES]),
    task("generate", &["generate", "--check"]),
    task("scale", &["scale", "--tokens", "100000"])
        .of(&[SOURCES])
        .deep(),
    task("growth", &["scale", "--grow", "0.1,0.3"])
        .of(&[SOURCES])
        .deep(),
    task("conformance", &["conformance", "--nodes", "3"])
        .of(&[SOURCES, CLIENTS])
        .deep(),
    task("site", &["docs"]).of(&[PAGES]).deep(),
    task("site-lint", &["docs", "--lint"]).of(&[PAGES]).deep(),
    task("site-run", &["docs", "--execute"])
        .of(&[SOURCES, PAGES])
        .deep(),
    task("bench", &["bench", "--short", "--built"])
        .of(&[SOURCES])
        .with_services()
        .deep(),
    task("faults", &["faults", "--built", "--short"])
        .of(&[SOURCES, &["deploy/ha"]])
        .deep(),
];

const fn cargo(name: &'static str, words: &'static [&'static str]) -> Step {
    Step::new(name, Tool::Cargo, words)
}

const fn task(name: &'static str, words: &'static [&'static str]) -> Step {
    Step::new(name, Tool::Task, words)
}

impl Step {
    const fn new(name: &'static str, tool: Tool, words: &'static [&'static str]) -> Self {
        Self {
            name,
            tool,
            words,
            needs_services: false,
            is_deep: false,
            inputs: &[],
        }
    }

    const fn of(mut self, inputs: &'static [&'static [&'static str]]) -> Self {
        self.inputs = inputs;
        self
    }

    const fn with_services(mut self) -> Self {
        self.needs_services = true;
        self
    }

    const fn deep(mut self) -> Self {
        self.is_deep = true;
        self
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    use cloakroom_devtools::workspace;

    use super::*;

    /// A step that is skipped although a file that it reads has changed would hide a failure.
    #[test]
    fn every_page_that_sources_and_tests_read_is_an_input_of_the_tests() {
        let mut read = Vec::new();
        for file in sources(&workspace::root().join("crates")) {
            let text = fs::read_to_string(&file).unwrap();
            let is_path = |line: &&str| {
                let marks = ["include_str!", "join(\"", "CARGO_MANIFEST_DIR"];
                marks.iter().any(|mark| line.contains(mark))
            };
            read.extend(
                text.lines()
                    .filter(is_path)
                    .filter_map(page)
                    .map(str::to_owned),
            );
        }

        assert!(read.len() > 8, "{read:?}");
        for path in read {
            let inputs = SOURCES.iter().chain(READ_BY_TESTS);
            let is_input = |input: &&str| match input.strip_suffix("*.json") {
                Some(folder) => path.starts_with(folder) && path.ends_with(".json"),
                None => Path::new(&path).starts_with(input),
            };
            // The test joins the name of its file, adversary.toml, later.
            assert!(
                path == "docs/trust" || inputs.copied().any(|input| is_input(&input)),
                "add {path} to the inputs"
            );
        }
    }

    /// The path of a page in a line of code.
    fn page(line: &str) -> Option<&str> {
        let (_, path) = line.split_once("docs/")?;
        let end = path.find('"')?;
        let start = line.len() - path.len() - "docs/".len();
        Some(&line[start..start + "docs/".len() + end])
    }

    fn sources(folder: &Path) -> Vec<PathBuf> {
        let mut found = Vec::new();
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.ends_with("xtask") {
                found.extend(sources(&path));
            } else if path.extension().is_some_and(|kind| kind == "rs") {
                found.push(path);
            }
        }
        found
    }
}
