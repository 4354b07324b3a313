//! Comparisons of two nodes, one with a feature and one without.

use std::path::Path;

use anyhow::Result;

use super::load::Operation;

/// Two nodes that differ in their settings or in the requests.
pub(super) struct Pair {
    pub(super) title: &'static str,
    pub(super) with: Side,
    pub(super) without: Side,
    /// Requests to the two nodes.
    pub(super) operations: &'static [(Operation, Operation)],
}

/// One of the two nodes.
pub(super) struct Side {
    /// Name in the table.
    pub(super) name: &'static str,
    /// Settings, applied in this order.
    pub(super) settings: &'static [&'static [Setting]],
}

/// A setting, as an environment variable of a node.
pub(super) type Setting = (&'static str, Value);

#[derive(Clone, Copy)]
pub(super) enum Value {
    Text(&'static str),
    /// The URL of the Redis server.
    RedisUrl,
    /// The default limits, raised so that no request is rejected.
    HighLimits,
}

/// All features on, as in production, with limits that reject no request.
pub(super) const EVERYTHING: &[Setting] = &[
    ("CLOAKROOM__LIMITS__ENABLED", Value::Text("true")),
    ("CLOAKROOM__LIMITS__FILE", Value::HighLimits),
    ("CLOAKROOM__REDIS__URL", Value::RedisUrl),
];

/// The same without Redis and the features that need it.
const UNLIMITED: &[Setting] = &[("CLOAKROOM__LIMITS__ENABLED", Value::Text("false"))];

pub(super) const PAIRS: &[Pair] = &[
    Pair {
        title: "recording of reads",
        with: Side {
            name: "recorded",
            settings: &[EVERYTHING],
        },
        without: Side {
            name: "unrecorded",
            settings: &[
                EVERYTHING,
                &[("CLOAKROOM__AUDIT__RECORD_READS", Value::Text("false"))],
            ],
        },
        operations: &[
            (Operation::GetMasked, Operation::GetMasked),
            (Operation::GetRevealed, Operation::GetRevealed),
        ],
    },
    Pair {
        title: "limits on the rate",
        with: Side {
            name: "limited",
            settings: &[EVERYTHING],
        },
        without: Side {
            name: "unlimited",
            settings: &[UNLIMITED],
        },
        operations: &[
            (Operation::Create, Operation::Create),
            (Operation::GetMasked, Operation::GetMasked),
        ],
    },
    Pair {
        title: "idempotency keys",
        with: Side {
            name: "with a key",
            settings: &[EVERYTHING],
        },
        without: Side {
            name: "without",
            settings: &[EVERYTHING],
        },
        operations: &[(Operation::CreateOnce, Operation::Create)],
    },
];

const SHIPPED_LIMITS: &str = include_str!("../../../cloakroom-core/src/rate_limits/limits.toml");

/// The environment variables of a node.
pub(super) fn resolved(
    settings: &[&[Setting]],
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
        .copied()
        .flatten()
        .map(|(name, value)| Ok((*name, text(value)?)))
        .collect()
}

/// The same limits in shorter windows, in which a node cannot serve as many requests.
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
