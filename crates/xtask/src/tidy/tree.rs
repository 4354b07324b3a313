//! The source tree: the path of every file, and the text of source files.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Folders of generated files.
const SKIPPED: [&str; 10] = [
    ".git",
    "target",
    "scratch",
    "fuzz/found",
    "fuzz/artifacts",
    "node_modules",
    ".venv",
    "__pycache__",
    "dist",
    "snapshots",
];
const READ: [&str; 12] = [
    "rs", "toml", "sql", "ts", "tsx", "js", "mjs", "py", "sh", "css", "html", "yml",
];

pub(super) struct Tree {
    pub(super) files: Vec<File>,
}

pub(super) struct File {
    /// Relative to the root.
    pub(super) path: PathBuf,
    /// Empty for files that no check reads.
    pub(super) text: String,
}

impl Tree {
    pub(super) fn read(root: &Path) -> Result<Self> {
        let mut files = Vec::new();
        let mut folders = vec![root.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
                let path = entry?.path();
                if path.is_dir() {
                    if !SKIPPED.iter().any(|name| path.ends_with(name)) {
                        folders.push(path);
                    }
                    continue;
                }
                let is_read = path
                    .extension()
                    .is_some_and(|kind| READ.iter().any(|k| kind == *k));
                let text = if is_read {
                    std::fs::read(&path)?
                } else {
                    Vec::new()
                };
                let text = String::from_utf8_lossy(&text).into_owned();
                files.push(File {
                    path: path.strip_prefix(root)?.to_owned(),
                    text,
                });
            }
        }
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Self { files })
    }

    /// The Rust files below `folder`.
    pub(super) fn rust(&self, folder: &str) -> impl Iterator<Item = &File> {
        self.files
            .iter()
            .filter(move |file| file.is_rust() && file.path.starts_with(folder))
    }
}

impl File {
    pub(super) fn is_rust(&self) -> bool {
        self.path.extension().is_some_and(|kind| kind == "rs")
    }

    /// Whether the file contains only tests, or what they share.
    pub(super) fn is_test(&self) -> bool {
        self.path.starts_with("crates/cloakroom-testkit")
            || self
                .path
                .iter()
                .any(|part| part == "tests" || part == "benches" || part == "fuzz")
            || self.path.file_name().is_some_and(|name| name == "tests.rs")
    }
}
