//! What an evaluation may still cost, and how large a value is without writing it out.

use std::io::{self, Write};

use serde_json::Value;

use crate::{EvaluationError, STEPS_MAX, WORK_BYTES_MAX};

/// What an evaluation may still do. Time follows from it: every step and every byte costs little.
pub(crate) struct Work {
    bytes_left: usize,
    steps_left: usize,
}

impl Default for Work {
    fn default() -> Self {
        Self {
            bytes_left: WORK_BYTES_MAX,
            steps_left: STEPS_MAX,
        }
    }
}

impl Work {
    /// Pays for evaluating one more part.
    pub(crate) fn step(&mut self) -> Result<(), EvaluationError> {
        let left = self.steps_left.checked_sub(1);
        self.steps_left = left.ok_or(EvaluationError::TooManySteps)?;
        Ok(())
    }

    /// Pays for a filter that looked at more than its input.
    pub(crate) fn charge_bytes(&mut self, bytes: usize) -> Result<(), EvaluationError> {
        let left = self.bytes_left.checked_sub(bytes);
        self.bytes_left = left.unwrap_or(0);
        left.map(drop).ok_or(EvaluationError::TooMuchWork)
    }

    /// Pays for looking at a value once.
    pub(crate) fn charge(&mut self, value: &Value) -> Result<(), EvaluationError> {
        self.measure(value, self.bytes_left)
            .map(drop)
            .ok_or(EvaluationError::TooMuchWork)
    }

    /// The bytes of a value, or None if they are more than `limit`; finding out is paid for too.
    pub(crate) fn measure(&mut self, value: &Value, limit: usize) -> Option<usize> {
        let limit = limit.min(self.bytes_left);
        let size = within(value, limit);
        self.bytes_left -= size.unwrap_or(limit);
        size
    }
}

/// The bytes of `value` as text or JSON, or None if they are more than `limit`.
fn within(value: &Value, limit: usize) -> Option<usize> {
    let size = match value {
        Value::String(text) => text.len(),
        Value::Array(_) | Value::Object(_) => {
            let mut budget = Budget { left: limit };
            serde_json::to_writer(&mut budget, value).ok()?;
            limit - budget.left
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string().len(),
    };
    (size <= limit).then_some(size)
}

/// A writer that keeps nothing and refuses what exceeds it.
struct Budget {
    left: usize,
}

impl Write for Budget {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.left = self
            .left
            .checked_sub(bytes.len())
            .ok_or(io::ErrorKind::WriteZero)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_is_as_large_as_its_text() {
        let cases = [
            (json!("four"), 4),
            (json!({ "a": [1, "b"] }), 13),
            (json!(12), 2),
            (json!(null), 4),
        ];
        for (value, size) in cases {
            assert_eq!(within(&value, size), Some(size), "{value}");
            assert_eq!(within(&value, size - 1), None, "{value}");
        }
    }
}
