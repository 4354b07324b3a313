//! The `section!` macro, which defines the key, default and description of each setting, and its input.

use std::path::Path;

use ::config::{Map, Value, ValueKind};

use super::finding::Finding;
use super::setting::Setting;

/// Defines one section: the struct, its defaults, its parser and its rows in the reference.
///
/// The doc comment of a field is its description in the reference for operators.
macro_rules! section {
    (
        $(#[doc = $section_doc:literal])+
        pub struct $name:ident in $section:literal {
            $(
                $(#[doc = $doc:literal])+
                pub $field:ident: $type:ty = $default:expr,
            )+
        }
    ) => {
        $(#[doc = $section_doc])+
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name {
            $($(#[doc = $doc])+ pub $field: $type,)+
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $default,)+ }
            }
        }

        impl $name {
            pub(super) const SECTION: &'static str = $section;
            pub(super) const KEYS: &'static [&'static str] = &[$(stringify!($field)),+];

            pub(super) fn read(source: &mut $crate::config::section::Source) -> Self {
                let mut reader = source.section(Self::SECTION);
                let section = Self { $($field: reader.take(stringify!($field), $default),)+ };
                reader.finish(Self::KEYS);
                section
            }

            pub(super) fn describe() -> $crate::config::section::Description {
                use $crate::config::section::{Description, Row, join};
                use $crate::config::setting::Setting;

                let defaults = Self::default();
                Description {
                    section: Self::SECTION,
                    doc: join(&[$($section_doc),+]),
                    rows: vec![$(Row {
                        key: stringify!($field),
                        kind: <$type as Setting>::kind(),
                        default: defaults.$field.text(),
                        doc: join(&[$($doc),+]),
                    }),+],
                }
            }
        }
    };
}
pub(super) use section;

/// Description of a section in the reference.
pub(super) struct Description {
    pub(super) section: &'static str,
    pub(super) doc: String,
    pub(super) rows: Vec<Row>,
}

pub(super) struct Row {
    pub(super) key: &'static str,
    pub(super) kind: String,
    pub(super) default: Option<String>,
    pub(super) doc: String,
}

/// Joins the lines of a doc comment into one.
pub(super) fn join(lines: &[&str]) -> String {
    let lines: Vec<&str> = lines.iter().map(|line| line.trim()).collect();
    lines.join(" ").trim().to_owned()
}

pub(super) fn environment_name(section: &str, key: &str) -> String {
    format!(
        "CLOAKROOM__{}__{}",
        section.to_uppercase(),
        key.to_uppercase()
    )
}

/// The merged input that has not been read yet, and the errors found so far.
pub(super) struct Source {
    file: Option<String>,
    values: Map<String, Value>,
    pub(super) findings: Vec<Finding>,
}

impl Source {
    pub(super) fn new(file: Option<&Path>, values: Map<String, Value>) -> Self {
        let file = file.map(|path| path.display().to_string());
        Self {
            file,
            values,
            findings: Vec::new(),
        }
    }

    pub(super) fn section(&mut self, section: &'static str) -> Reader<'_> {
        let values = match self.values.remove(section) {
            None => Map::new(),
            Some(value) => match value.kind {
                ValueKind::Table(table) => table,
                _ => {
                    let message = format!("must be a section, written as [{section}]");
                    self.findings.push(Finding::error(section, message));
                    Map::new()
                }
            },
        };
        Reader {
            source: self,
            section,
            values,
        }
    }

    /// Adds an error for each unknown section and returns all findings.
    pub(super) fn finish(mut self, sections: &[&str]) -> Vec<Finding> {
        let mut unknown: Vec<(String, Value)> = self.values.drain().collect();
        unknown.sort_by(|(a, _), (b, _)| a.cmp(b));
        for (name, value) in unknown {
            let location = match (is_from_environment(&value), &self.file) {
                (false, Some(file)) => format!("{name} in {file}"),
                _ => format!("{name} in the environment"),
            };
            let message = format!("no such section; there are {}", sections.join(", "));
            self.findings.push(Finding::error(location, message));
        }
        self.findings
    }
}

/// Reads one section, key by key.
pub(super) struct Reader<'a> {
    source: &'a mut Source,
    section: &'static str,
    values: Map<String, Value>,
}

impl Reader<'_> {
    pub(super) fn take<T: Setting>(&mut self, key: &str, default: T) -> T {
        let Some(value) = self.values.remove(key) else {
            return default;
        };
        let location = self.location(key, &value);
        let parsed = match to_text(value, T::IS_LIST) {
            Some(text) => T::parse(&text),
            None => Err("must be a single value".to_owned()),
        };
        parsed.unwrap_or_else(|message| {
            self.source.findings.push(Finding::error(location, message));
            default
        })
    }

    pub(super) fn finish(mut self, keys: &[&str]) {
        let mut unknown: Vec<(String, Value)> = self.values.drain().collect();
        unknown.sort_by(|(a, _), (b, _)| a.cmp(b));
        for (key, value) in unknown {
            let location = self.location(&key, &value);
            let message = format!(
                "no such setting; [{}] has {}",
                self.section,
                keys.join(", ")
            );
            self.source.findings.push(Finding::error(location, message));
        }
    }

    fn location(&self, key: &str, value: &Value) -> String {
        let section = self.section;
        match (is_from_environment(value), &self.source.file) {
            (true, _) => format!("{} in the environment", environment_name(section, key)),
            (false, Some(file)) => format!("{section}.{key} in {file}"),
            (false, None) => format!("{section}.{key}"),
        }
    }
}

/// Converts a value to text. Lists become comma-separated, as in environment variables.
fn to_text(value: Value, may_be_list: bool) -> Option<String> {
    match value.kind {
        ValueKind::Array(values) if may_be_list => {
            let texts = values.into_iter().map(|value| to_text(value, false));
            Some(texts.collect::<Option<Vec<String>>>()?.join(","))
        }
        _ => value.into_string().ok(),
    }
}

/// A table merged from file and environment has no origin of its own; its values have.
fn is_from_environment(value: &Value) -> bool {
    match &value.kind {
        ValueKind::Table(table) => table.values().any(is_from_environment),
        _ => value.origin() == Some("the environment"),
    }
}
