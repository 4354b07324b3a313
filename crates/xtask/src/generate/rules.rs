//! The rules of the API, one file per section, as statements that a test can check.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

/// Folder of the files. Their names start with the number of the section.
pub(super) const FOLDER: &str = "docs/api/rules";

/// Section and number, such as `3.14`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RuleId {
    pub section: u32,
    pub number: u32,
}

impl FromStr for RuleId {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (section, number) = text.split_once('.').ok_or(())?;
        let is_plain = |part: &str| {
            !part.is_empty()
                && part.bytes().all(|byte| byte.is_ascii_digit())
                && !part.starts_with('0')
        };
        if !is_plain(section) || !is_plain(number) {
            return Err(());
        }
        Ok(Self {
            section: section.parse().map_err(drop)?,
            number: number.parse().map_err(drop)?,
        })
    }
}

impl fmt::Display for RuleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.section, self.number)
    }
}

#[derive(Debug)]
pub(super) struct Section {
    pub number: u32,
    pub title: String,
    pub rules: Vec<Rule>,
}

#[derive(Debug)]
pub(super) struct Rule {
    pub id: RuleId,
    pub says: String,
    /// The missing part of the service, for rules that cannot be tested yet.
    pub waits_for: Option<String>,
}

/// The content of a file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SectionFile {
    title: String,
    rule: Vec<RuleEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleEntry {
    id: String,
    says: String,
    waits_for: Option<String>,
}

/// Reads every section below `root`, in order.
pub(super) fn read(root: &Path) -> Result<Vec<Section>> {
    let folder = root.join(FOLDER);
    let mut sections = Vec::new();
    for entry in std::fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        let Some(stem) = name.and_then(|name| name.strip_suffix(".toml")) else {
            continue;
        };
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let section = parse(stem, &text).with_context(|| path.display().to_string())?;
        sections.push(section);
    }
    sections.sort_by_key(|section| section.number);
    Ok(sections)
}

/// Reads one file. `stem` is its name without the extension.
pub(super) fn parse(stem: &str, text: &str) -> Result<Section> {
    let number = stem
        .split_once('-')
        .and_then(|(number, _)| number.parse().ok());
    let number: u32 =
        number.context("the file name must start with the number of the section and a dash")?;
    let file: SectionFile = toml::from_str(text)?;
    let mut rules: Vec<Rule> = Vec::with_capacity(file.rule.len());
    for entry in file.rule {
        let Ok(id) = entry.id.parse::<RuleId>() else {
            bail!("{} is not the id of a rule", entry.id);
        };
        if id.section != number {
            bail!("{id} belongs to another section");
        }
        if rules.last().is_some_and(|last| last.id >= id) {
            bail!("{id} is out of order");
        }
        rules.push(Rule {
            id,
            says: entry.says,
            waits_for: entry.waits_for,
        });
    }
    Ok(Section {
        number,
        title: file.title,
        rules,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_have_one_spelling() {
        for text in ["3.4", "12.10"] {
            assert_eq!(text.parse::<RuleId>().unwrap().to_string(), text);
        }
        for text in ["3", "3.", ".4", "3.04", "03.4", "3.4.1", "3.x", "+3.4", ""] {
            assert!(text.parse::<RuleId>().is_err(), "{text}");
        }
    }

    #[test]
    fn rules_are_sorted_in_the_file_of_their_section() {
        let file = |ids: &[&str]| {
            let rules = ids
                .iter()
                .map(|id| format!("[[rule]]\nid = \"{id}\"\nsays = \"x\"\n"));
            let text = format!("title = \"Create\"\n{}", rules.collect::<String>());
            parse("03-create", &text).map(|section| section.rules.len())
        };

        assert_eq!(file(&["3.1", "3.2", "3.10"]).unwrap(), 3);
        for planted in [["3.1", "4.2"], ["3.2", "3.1"], ["3.1", "3.1"], ["3.1", "x"]] {
            assert!(file(&planted).is_err(), "{planted:?}");
        }
        assert!(parse("create", "title = \"Create\"\nrule = []").is_err());
        assert!(parse("03-create", "title = \"Create\"\nrules = []").is_err());
    }
}
