//! Evaluates a JSON path.

use serde_json::Value;

use super::{Comparable, JsonPath, LogicalExpression, Operator, Segment, Selector, Slice};
use crate::EvaluationError;
use crate::condition::{equal, order};

/// Charges for one visit to a value; fails when the budget is exhausted.
pub(crate) type ChargeVisit<'a> = dyn Fn() -> Result<(), EvaluationError> + 'a;

impl JsonPath {
    /// The values selected by this path, in document order.
    pub(crate) fn find<'v>(
        &self,
        root: &'v Value,
        charge_visit: &ChargeVisit<'_>,
    ) -> Result<Vec<&'v Value>, EvaluationError> {
        Finder { root, charge_visit }.evaluate(self, root)
    }
}

struct Finder<'v, 'p> {
    root: &'v Value,
    charge_visit: &'p ChargeVisit<'p>,
}

impl<'v> Finder<'v, '_> {
    fn evaluate(
        &self,
        path: &JsonPath,
        current: &'v Value,
    ) -> Result<Vec<&'v Value>, EvaluationError> {
        let start = if path.from_root { self.root } else { current };
        let mut values = vec![start];
        for segment in &path.segments {
            let mut next = Vec::new();
            for value in values {
                self.apply_segment(segment, value, &mut next)?;
            }
            values = next;
        }
        Ok(values)
    }

    fn apply_segment(
        &self,
        segment: &Segment,
        value: &'v Value,
        found: &mut Vec<&'v Value>,
    ) -> Result<(), EvaluationError> {
        (self.charge_visit)()?;
        for selector in &segment.selectors {
            self.select(selector, value, found)?;
        }
        if segment.is_descendant {
            for child in children(value) {
                self.apply_segment(segment, child, found)?;
            }
        }
        Ok(())
    }

    fn select(
        &self,
        selector: &Selector,
        value: &'v Value,
        found: &mut Vec<&'v Value>,
    ) -> Result<(), EvaluationError> {
        match selector {
            Selector::Name(name) => found.extend(value.get(name)),
            Selector::Index(index) => {
                let list = value.as_array();
                found.extend(list.and_then(|list| list.get(position(list.len(), *index)?)));
            }
            Selector::Slice(slice) => {
                let list = value.as_array().map_or(&[][..], Vec::as_slice);
                for position in slice.positions(list.len()) {
                    (self.charge_visit)()?;
                    found.extend(list.get(position));
                }
            }
            Selector::Wildcard => {
                for child in children(value) {
                    (self.charge_visit)()?;
                    found.push(child);
                }
            }
            Selector::Filter(test) => {
                for child in children(value) {
                    (self.charge_visit)()?;
                    if self.matches(test, child)? {
                        found.push(child);
                    }
                }
            }
        }
        Ok(())
    }

    fn matches(&self, test: &LogicalExpression, value: &'v Value) -> Result<bool, EvaluationError> {
        match test {
            LogicalExpression::Any(tests) => {
                for test in tests {
                    if self.matches(test, value)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            LogicalExpression::All(tests) => {
                for test in tests {
                    if !self.matches(test, value)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            LogicalExpression::Not(test) => self.matches(test, value).map(|matches| !matches),
            LogicalExpression::Exists(path) => {
                self.evaluate(path, value).map(|found| !found.is_empty())
            }
            LogicalExpression::Compare(left, operator, right) => {
                (self.charge_visit)()?;
                let left = self.comparable(left, value)?;
                let right = self.comparable(right, value)?;
                Ok(compare(left.as_ref(), *operator, right.as_ref()))
            }
        }
    }

    /// The value to compare: a literal, or the scalar selected by a path with exactly one match.
    fn comparable(
        &self,
        comparable: &Comparable,
        value: &'v Value,
    ) -> Result<Option<Value>, EvaluationError> {
        Ok(match comparable {
            Comparable::Literal(literal) => Some(literal.clone()),
            Comparable::Path(path) => match self.evaluate(path, value)?[..] {
                [one] if !one.is_array() && !one.is_object() => Some(one.clone()),
                _ => None,
            },
        })
    }
}

/// A missing value equals no value and has no order.
fn compare(left: Option<&Value>, operator: Operator, right: Option<&Value>) -> bool {
    let (Some(left), Some(right)) = (left, right) else {
        return operator == Operator::NotEqual && left.is_some() != right.is_some();
    };
    let order = order(left, right);
    match operator {
        Operator::Equal => equal(left, right),
        Operator::NotEqual => !equal(left, right),
        Operator::Less => order.is_some_and(|order| order.is_lt()),
        Operator::LessOrEqual => order.is_some_and(|order| order.is_le()),
        Operator::Greater => order.is_some_and(|order| order.is_gt()),
        Operator::GreaterOrEqual => order.is_some_and(|order| order.is_ge()),
    }
}

fn children(value: &Value) -> Box<dyn Iterator<Item = &Value> + '_> {
    match value {
        Value::Array(list) => Box::new(list.iter()),
        Value::Object(object) => Box::new(object.values()),
        _ => Box::new(std::iter::empty()),
    }
}

/// Negative positions count from the end.
fn position(length: usize, index: i64) -> Option<usize> {
    let distance = usize::try_from(index.unsigned_abs()).ok()?;
    match index {
        0.. => Some(distance),
        _ => length.checked_sub(distance),
    }
}

impl Slice {
    fn positions(&self, length: usize) -> Box<dyn Iterator<Item = usize>> {
        let size = i64::try_from(length).unwrap_or(i64::MAX);
        let from_end = |bound: i64| {
            if bound < 0 {
                size.saturating_add(bound)
            } else {
                bound
            }
        };
        let stride = usize::try_from(self.step.unsigned_abs()).unwrap_or(usize::MAX);
        if self.step > 0 {
            let start = from_end(self.start.unwrap_or(0)).clamp(0, size);
            let end = from_end(self.end.unwrap_or(size)).clamp(0, size);
            return Box::new((start as usize..end as usize).step_by(stride));
        }
        let start = from_end(self.start.unwrap_or(size - 1)).clamp(-1, size - 1);
        let end = self.end.map_or(-1, from_end).clamp(-1, size - 1);
        let (first, last) = ((end + 1) as usize, (start + 1) as usize);
        Box::new((first..last).rev().step_by(stride))
    }
}
