//! What is measured by comparing two nodes: one with something, one without it.

use std::path::Path;

use anyhow::Result;

use super::load::Operation;

/// Two nodes that differ in their settings, or in what is asked of them.
pub(super) struct Pair {
    pub(super) title: &'static str,
    /// What the two are called in the table.
    pub(super) names: (&'static str, &'static str),
    pub(super) with: &'static [Setting],
    pub(super) without: &'static [Setting],
    /// What is asked of the two.
    pub(super) operations: &'static [(Operation, Operation)],
}

/// A setting, named as in the environment of a node.
type Setting = (&'static str, Value);

#[derive(Clone, Copy)]
pub(super) enum Value {
    Text(&'static str),
    /// The address of the Redis of the measurement.
    RedisUrl,
    /// A table with the shipped limits, each so high that it refuses nobody.
    HighLimits,
}

pub(super) const PAIRS: &[Pair] = &[
    Pair {
        title: "recording of reads",
        names: ("recorded", "unrecorded"),
        with: &[],
        without: &[("CLOAKROOM__AUDIT__RECORD_READS", Value::Text("false"))],
        operations: &[
            (Operation::GetMasked, Operation::GetMasked),
            (Operation::GetRevealed, Operation::GetRevealed),
        ],
    },
    Pair {
        title: "limits on the rate",
        names: ("limited", "unlimited"),
        with: &[
            ("CLOAKROOM__LIMITS__ENABLED", Value::Text("true")),
            ("CLOAKROOM__LIMITS__FILE", Value::HighLimits),
            ("CLOAKROOM__REDIS__URL", Value::RedisUrl),
        ],
        without: &[],
        operations: &[
            (Operation::Create, Operation::Create),
            (Operation::GetMasked, Operation::GetMasked),
        ],
    },
    Pair {
        title: "idempotency keys",
        names: ("with a key", "without"),
        with: &[],
        without: &[],
        operations: &[(Operation::CreateOnce, Operation::Create)],
    },
];

const SHIPPED_LIMITS: &str = include_str!("../../../cloakroom/src/rate_limits/limits.toml");

/// The settings as a node is given them.
pub(super) fn resolved(
    settings: &[Setting],
    redis_url: &str,
    folder: &Path,
) -> Result<Vec<(&'static str, String)>> {
    let text = |value: &Value| -> Result<String> {
        Ok(match value {
            Value::Text(text) => (*text).to_owned(),
            Value::RedisUrl => redis_url.to_owned(),
            Value::HighLimits => {
                let file = folder.join("limits.toml");
                std::fs::write(&file, high_limits())?;
                file.display().to_string()
            }
        })
    };
    settings
        .iter()
        .map(|(name, value)| Ok((*name, text(value)?)))
        .collect()
}

/// The same limits in shorter windows: a window never holds as many requests as a node can answer.
fn high_limits() -> String {
    let lines = SHIPPED_LIMITS
        .lines()
        .map(|line| match line.split_once(" = ") {
            Some(("requests", _)) => "requests = 100000\n".to_owned(),
            Some(("window", _)) => "window = \"1s\"\n".to_owned(),
            _ => format!("{line}\n"),
        });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_limit_is_made_high() {
        let table: toml::Table = high_limits().parse().unwrap();
        let limits = table["limit"].as_array().unwrap();

        assert!(limits.len() > 10);
        for limit in limits {
            assert_eq!(limit["requests"].as_integer(), Some(100_000));
            assert_eq!(limit["window"].as_str(), Some("1s"));
        }
    }
}
