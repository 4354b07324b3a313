//! The rules that tests cover: `/// Covers 3.4, 7.2.` above a test in Rust, `# covers: 4.2` and `// covers: 4.2`
//! above one in the suites of the official clients.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::rules::RuleId;

/// Folders with tests. Not this crate: its own tests contain such comments as data.
const FOLDERS: [&str; 2] = ["crates", "conformance"];
const SKIPPED: [&str; 5] = ["xtask", "target", "node_modules", ".venv", "__pycache__"];

/// A test and the rules that it covers.
#[derive(Debug, PartialEq)]
pub(super) struct Covering {
    pub test: String,
    pub rules: Vec<RuleId>,
}

/// Reads every test below `root`, sorted by name.
pub(super) fn read(root: &Path) -> Result<Vec<Covering>> {
    let mut found = Vec::new();
    let mut folders: Vec<PathBuf> = FOLDERS.iter().map(|folder| root.join(folder)).collect();
    while let Some(folder) = folders.pop() {
        if !folder.is_dir() {
            continue;
        }
        for entry in std::fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
            let path = entry?.path();
            if path.is_dir() {
                if !SKIPPED.iter().any(|name| path.ends_with(name)) {
                    folders.push(path);
                }
            } else if Language::of(&path).is_some() {
                let text = std::fs::read_to_string(&path);
                let text = text.with_context(|| path.display().to_string())?;
                found.extend(parse(path.strip_prefix(root)?, &text)?);
            }
        }
    }
    found.sort_by(|a, b| a.test.cmp(&b.test));
    Ok(found)
}

#[derive(Clone, Copy)]
enum Language {
    Rust,
    Python,
    JavaScript,
}

impl Language {
    fn of(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()? {
            "rs" => Some(Self::Rust),
            "py" => Some(Self::Python),
            "mjs" => Some(Self::JavaScript),
            _ => None,
        }
    }

    /// The ids in a line, if it is a `covers` comment.
    fn mark(self, line: &str) -> Option<&str> {
        match self {
            Self::Rust => line.strip_prefix("/// Covers ")?.strip_suffix('.'),
            Self::Python => line.strip_prefix("# covers: "),
            Self::JavaScript => line.strip_prefix("// covers: "),
        }
    }

    /// The name of the test that starts in this line.
    fn test_name(self, line: &str) -> Option<&str> {
        match self {
            Self::Rust => {
                let line = line.strip_prefix("pub(crate) ").unwrap_or(line);
                let line = line.strip_prefix("async ").unwrap_or(line);
                line.strip_prefix("fn ")?.split('(').next()
            }
            Self::Python => {
                let line = line.strip_prefix("async ").unwrap_or(line);
                line.strip_prefix("def ")?.split('(').next()
            }
            Self::JavaScript => {
                let call = line.strip_prefix("test(").or(line.strip_prefix("it("))?;
                let quote = call.chars().next().filter(|c| "'\"`".contains(*c))?;
                call[1..].split(quote).next()
            }
        }
    }

    /// Whether a line may be between the comment and the test.
    fn is_between(self, line: &str) -> bool {
        match self {
            Self::Rust => line.starts_with("///") || line.starts_with('#'),
            // Decorators may span several lines.
            Self::Python => !line.is_empty(),
            Self::JavaScript => line.starts_with("//"),
        }
    }
}

/// Reads one file; `path` is relative to the workspace.
fn parse(path: &Path, text: &str) -> Result<Vec<Covering>> {
    let Some(language) = Language::of(path) else {
        return Ok(Vec::new());
    };
    let mut found = Vec::new();
    let mut rules: Vec<RuleId> = Vec::new();
    let mut is_test = !matches!(language, Language::Rust);
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        let place = || format!("{}:{}", path.display(), index + 1);
        if let Some(ids) = language.mark(line) {
            for id in ids.split(',').map(str::trim) {
                let Ok(id) = id.parse() else {
                    bail!("{}: `{id}` is not the id of a rule", place());
                };
                rules.push(id);
            }
        } else if rules.is_empty() {
            continue;
        } else if let Some(name) = language.test_name(line) {
            if !is_test {
                bail!("{}: {name} covers rules and is no test", place());
            }
            found.push(Covering {
                test: format!("{}{name}", prefix(path, language)),
                rules: std::mem::take(&mut rules),
            });
            is_test = !matches!(language, Language::Rust);
        } else if language.is_between(line) {
            is_test |= line == "#[test]" || line.starts_with("#[tokio::test");
        } else {
            bail!("{}: no test follows on what it covers", place());
        }
    }
    if !rules.is_empty() {
        bail!("{}: no test follows on what it covers", path.display());
    }
    Ok(found)
}

/// The prefix of a test's name, by which the test can be found.
fn prefix(path: &Path, language: Language) -> String {
    let parts: Vec<&str> = path.iter().filter_map(|part| part.to_str()).collect();
    match (language, parts.as_slice()) {
        (Language::Rust, ["crates", package, kind, inside @ ..]) => {
            let modules = inside.iter().filter_map(|part| {
                let name = part.strip_suffix(".rs").unwrap_or(part);
                let is_generic = matches!(name, "it" | "mod" | "lib" | "main" | "tests");
                (!is_generic).then(|| format!("{name}::"))
            });
            // HTTP tests are named by their area, whichever crate they belong to.
            let package = match (*package, *kind) {
                ("cloakroom", _) | (_, "tests") => String::new(),
                (other, _) => format!("{other}: "),
            };
            package + &modules.collect::<String>()
        }
        (Language::Python, _) => "Python client: ".to_owned(),
        (Language::JavaScript, _) => "Node client: ".to_owned(),
        (Language::Rust, _) => String::new(),
    }
}

#[cfg(test)]
mod tests;
