//! Reads JSON: one array of objects, or one object per line.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read};
use std::ops::ControlFlow;

use serde::de::{DeserializeSeed, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::BinFile;
use super::rows::Rows;
use crate::bins::row::{Cells, Column};
use crate::bins::{Error, Problem};

/// Counts the bytes read through it.
struct CountingReader<R> {
    inner: R,
    bytes: std::rc::Rc<std::cell::Cell<u64>>,
}

impl<R: Read> Read for CountingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.bytes.set(self.bytes.get() + count as u64);
        Ok(count)
    }
}

pub(super) fn read(file: &BinFile, opened: File, rows: &mut Rows<'_>) -> Result<(), Error> {
    let bytes = std::rc::Rc::new(std::cell::Cell::new(0));
    let mut reader = BufReader::new(CountingReader {
        inner: opened,
        bytes: bytes.clone(),
    });
    let start = reader
        .fill_buf()
        .map_err(|error| file.unreadable(error.kind()))?;
    let first = start.iter().find(|byte| !byte.is_ascii_whitespace());
    let is_array = first == Some(&b'[');
    let mut take = |value| add_object(rows, value, bytes.get());
    let result = if is_array {
        let mut parser = serde_json::Deserializer::from_reader(reader);
        let elements = Elements { take: &mut take };
        elements
            .deserialize(&mut parser)
            .and_then(|flow| match flow {
                ControlFlow::Continue(()) => parser.end(),
                ControlFlow::Break(()) => Ok(()),
            })
    } else {
        let mut values = serde_json::Deserializer::from_reader(reader).into_iter::<Value>();
        values
            .try_for_each(|value| match value.map(&mut take) {
                Ok(ControlFlow::Continue(())) => ControlFlow::Continue(()),
                Ok(ControlFlow::Break(())) => ControlFlow::Break(Ok(())),
                Err(error) => ControlFlow::Break(Err(error)),
            })
            .break_value()
            .unwrap_or(Ok(()))
    };
    match result {
        Err(_) if rows.flow().is_break() => Ok(()),
        Err(error) if error.is_io() => Err(file.unreadable("it could not be read to the end")),
        // Reports only the position: the parser's message may quote the content.
        Err(error) => {
            let rule = format!("is not JSON (line {})", error.line());
            rows.problems.push(Problem::of_row(rows.count + 1, rule));
            Ok(())
        }
        Ok(()) => Ok(()),
    }
}

/// Visits the elements of an array one by one instead of collecting them.
struct Elements<'a> {
    take: &'a mut dyn FnMut(Value) -> ControlFlow<()>,
}

impl<'de> DeserializeSeed<'de> for Elements<'_> {
    type Value = ControlFlow<()>;

    fn deserialize<D: serde::Deserializer<'de>>(
        self,
        deserializer: D,
    ) -> Result<ControlFlow<()>, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Elements<'_> {
    type Value = ControlFlow<()>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an array of objects")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<ControlFlow<()>, A::Error> {
        while let Some(value) = elements.next_element()? {
            if (self.take)(value).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

fn add_object(rows: &mut Rows<'_>, value: Value, done: u64) -> ControlFlow<()> {
    let cells = rows.next();
    let Value::Object(members) = value else {
        return rows.reject("must be an object");
    };
    match set_members(cells, &members) {
        Ok(()) => rows.add(done),
        Err(rule) => rows.reject(rule),
    }
}

fn set_members(cells: &mut Cells, members: &Map<String, Value>) -> Result<(), String> {
    for (name, value) in members {
        let Some(column) = Column::parse(name) else {
            let known = Column::ALL.map(Column::name).join(", ");
            return Err(format!("has a member that is not known; known are {known}"));
        };
        match value {
            Value::Null => {}
            Value::String(text) => cells.set(column, text),
            Value::Bool(_) | Value::Number(_) => cells.set(column, &value.to_string()),
            Value::Array(_) if column == Column::Additional => {
                cells.set(column, &value.to_string());
            }
            Value::Array(_) | Value::Object(_) => {
                return Err(format!("has no plain value in {}", column.name()));
            }
        }
    }
    Ok(())
}
