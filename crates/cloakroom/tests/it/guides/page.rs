//! A page of docs/guides and its blocks of code.

use std::path::Path;

use serde_json::Value;
use tokio::process::Command;

/// The Markdown text of a page.
pub(super) struct Page(String);

impl Page {
    pub(super) fn read(name: &str) -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guides");
        Self(std::fs::read_to_string(folder.join(name)).unwrap())
    }

    /// The page with some text replaced, which must be on it.
    pub(super) fn replace(&self, old: &str, new: &str) -> Self {
        assert!(self.0.contains(old), "the page lacks {old}");
        Self(self.0.replace(old, new))
    }

    /// All blocks with this fence, one after the other.
    fn blocks(&self, fence: &str) -> String {
        let start = format!("```{fence}\n");
        let blocks = self.0.split(&start).skip(1);
        blocks
            .map(|rest| rest.split_once("```").unwrap().0)
            .collect()
    }

    /// The response that the page shows.
    pub(super) fn expected(&self) -> Value {
        serde_json::from_str(&self.blocks("json output")).unwrap()
    }

    /// Runs the shell commands of the page in one shell and returns their JSON output.
    pub(super) async fn run(&self, variables: &[(&str, &str)]) -> Value {
        let script = self.blocks("sh");
        let output = Command::new("bash")
            .args(["-euo", "pipefail", "-c", &script])
            .envs(variables.iter().copied())
            .output()
            .await
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        serde_json::from_str(&text).unwrap_or_else(|_| panic!("{:?} {text}", output.status))
    }
}

/// Whether `actual` has every member of `expected`, at every level.
pub(super) fn contains(actual: &Value, expected: &Value) -> bool {
    match (actual, expected) {
        (Value::Object(actual), Value::Object(expected)) => expected
            .iter()
            .all(|(name, value)| actual.get(name).is_some_and(|it| contains(it, value))),
        _ => actual == expected,
    }
}
