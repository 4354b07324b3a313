//! Limits the cost of an evaluation, and measures values without allocating.

use std::io::{self, Write};

use serde_json::Value;

use crate::{EvaluationError, STEPS_MAX, WORK_BYTES_MAX};

/// The remaining budget of an evaluation. It bounds the time, because each step and each byte is cheap.
pub(crate) struct Budget {
    bytes_left: usize,
    steps_left: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            bytes_left: WORK_BYTES_MAX,
            steps_left: STEPS_MAX,
        }
    }
}

impl Budget {
    /// Charges for evaluating one node or filter.
    pub(crate) fn charge_step(&mut self) -> Result<(), EvaluationError> {
        let left = self.steps_left.checked_sub(1);
        self.steps_left = left.ok_or(EvaluationError::TooManySteps)?;
        Ok(())
    }

    /// Charges for work of a filter beyond reading its input.
    pub(crate) fn charge_bytes(&mut self, bytes: usize) -> Result<(), EvaluationError> {
        let left = self.bytes_left.checked_sub(bytes);
        self.bytes_left = left.unwrap_or(0);
        left.map(drop).ok_or(EvaluationError::TooMuchWork)
    }

    /// Charges for reading a value once.
    pub(crate) fn charge(&mut self, value: &Value) -> Result<(), EvaluationError> {
        self.measure(value, self.bytes_left)
            .map(drop)
            .ok_or(EvaluationError::TooMuchWork)
    }

    /// The size of a value in bytes, or `None` if it exceeds `limit`. Measuring is charged, too.
    pub(crate) fn measure(&mut self, value: &Value, limit: usize) -> Option<usize> {
        let limit = limit.min(self.bytes_left);
        let size = size_within(value, limit);
        self.bytes_left -= size.unwrap_or(limit);
        size
    }
}

/// The size of `value` as text or JSON, or `None` if it exceeds `limit`.
fn size_within(value: &Value, limit: usize) -> Option<usize> {
    let size = match value {
        Value::String(text) => text.len(),
        Value::Array(_) | Value::Object(_) => {
            let mut counter = ByteCounter { left: limit };
            serde_json::to_writer(&mut counter, value).ok()?;
            limit - counter.left
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string().len(),
    };
    (size <= limit).then_some(size)
}

/// A writer that discards its input and fails when its capacity is exceeded.
struct ByteCounter {
    left: usize,
}

impl Write for ByteCounter {
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
    fn the_size_of_a_value_is_the_size_of_its_text() {
        let cases = [
            (json!("four"), 4),
            (json!({ "a": [1, "b"] }), 13),
            (json!(12), 2),
            (json!(null), 4),
        ];
        for (value, size) in cases {
            assert_eq!(size_within(&value, size), Some(size), "{value}");
            assert_eq!(size_within(&value, size - 1), None, "{value}");
        }
    }
}
