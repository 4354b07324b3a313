//! Following a JSON path through a document.

use serde_json::Value;

use super::{JsonPath, Operator, Segment, Selector, Slice, Term, Test};
use crate::EvaluationError;
use crate::condition::{equal, order};

/// Pays for one visit to a value, or says that there is nothing left to pay with.
pub(crate) type Pay<'a> = dyn Fn() -> Result<(), EvaluationError> + 'a;

impl JsonPath {
    /// The values this path leads to, in the order of the document.
    pub(crate) fn find<'v>(
        &self,
        root: &'v Value,
        pay: &Pay<'_>,
    ) -> Result<Vec<&'v Value>, EvaluationError> {
        Finder { root, pay }.follow(self, root)
    }
}

struct Finder<'v, 'p> {
    root: &'v Value,
    pay: &'p Pay<'p>,
}

impl<'v> Finder<'v, '_> {
    fn follow(
        &self,
        path: &JsonPath,
        current: &'v Value,
    ) -> Result<Vec<&'v Value>, EvaluationError> {
        let start = if path.from_root { self.root } else { current };
        let mut values = vec![start];
        for segment in &path.segments {
            let mut next = Vec::new();
            for value in values {
                self.segment(segment, value, &mut next)?;
            }
            values = next;
        }
        Ok(values)
    }

    fn segment(
        &self,
        segment: &Segment,
        value: &'v Value,
        found: &mut Vec<&'v Value>,
    ) -> Result<(), EvaluationError> {
        (self.pay)()?;
        for selector in &segment.selectors {
            self.select(selector, value, found)?;
        }
        if segment.is_deep {
            for child in children(value) {
                self.segment(segment, child, found)?;
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
                    (self.pay)()?;
                    found.extend(list.get(position));
                }
            }
            Selector::Every => {
                for child in children(value) {
                    (self.pay)()?;
                    found.push(child);
                }
            }
            Selector::Filter(test) => {
                for child in children(value) {
                    (self.pay)()?;
                    if self.passes(test, child)? {
                        found.push(child);
                    }
                }
            }
        }
        Ok(())
    }

    fn passes(&self, test: &Test, value: &'v Value) -> Result<bool, EvaluationError> {
        match test {
            Test::Any(tests) => {
                for test in tests {
                    if self.passes(test, value)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Test::All(tests) => {
                for test in tests {
                    if !self.passes(test, value)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Test::Not(test) => self.passes(test, value).map(|passes| !passes),
            Test::Exists(path) => self.follow(path, value).map(|found| !found.is_empty()),
            Test::Compare(left, operator, right) => {
                (self.pay)()?;
                let left = self.term(left, value)?;
                let right = self.term(right, value)?;
                Ok(compare(left.as_ref(), *operator, right.as_ref()))
            }
        }
    }

    /// What a term stands for, if that is exactly one value.
    fn term(&self, term: &Term, value: &'v Value) -> Result<Option<Value>, EvaluationError> {
        Ok(match term {
            Term::Literal(literal) => Some(literal.clone()),
            Term::Path(path) => match self.follow(path, value)?[..] {
                [one] if !one.is_array() && !one.is_object() => Some(one.clone()),
                _ => None,
            },
        })
    }
}

/// What is missing equals nothing and has no order.
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
