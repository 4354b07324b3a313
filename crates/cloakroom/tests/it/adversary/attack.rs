//! Attacks on one table: how an attacker with write access manipulates a row or a column.

use std::fmt;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::rows::{Column, Table};

/// A way to manipulate rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Manipulation {
    /// A column gets another plausible value.
    Edit,
    /// A column becomes null.
    Clear,
    /// Two rows exchange the values of a column.
    Swap,
    /// A row from before a change or a deletion is put back.
    Restore,
    Delete,
    /// A copy of a row is added under another key.
    Insert,
    /// Two rows exchange their keys, and with them their places.
    Reorder,
}

impl fmt::Display for Manipulation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Edit => "edit",
            Self::Clear => "clear",
            Self::Swap => "swap",
            Self::Restore => "restore",
            Self::Delete => "delete",
            Self::Insert => "insert",
            Self::Reorder => "reorder",
        })
    }
}

/// A manipulation of one table, as the rows to remove and to add.
#[derive(Clone, Debug)]
pub(super) struct Attack {
    pub(super) table: Table,
    /// `None` for whole rows.
    pub(super) column: Option<String>,
    pub(super) manipulation: Manipulation,
    pub(super) removed: Vec<Value>,
    pub(super) added: Vec<Value>,
}

impl Attack {
    fn new(
        table: &Table,
        column: Option<&Column>,
        manipulation: Manipulation,
        removed: Vec<Value>,
        added: Vec<Value>,
    ) -> Self {
        Self {
            table: table.clone(),
            column: column.map(|column| column.name.clone()),
            manipulation,
            removed,
            added,
        }
    }

    /// Table and column, and the manipulation, as the list of expected outcomes has them.
    pub(super) fn place(&self) -> (String, String) {
        let place = match &self.column {
            Some(column) => format!("{}.{column}", self.table.name),
            None => self.table.name.clone(),
        };
        (place, self.manipulation.to_string())
    }
}

/// Every attack on a table. `old` are its rows before changes that the vault made since.
pub(super) fn attacks_on(
    table: &Table,
    old: &[Value],
    rows: &[Value],
    victim: usize,
) -> Vec<Attack> {
    let attack = |manipulation, removed: Vec<Value>, added| {
        Attack::new(table, None, manipulation, removed, added)
    };
    let mut attacks = Vec::new();
    for former in old {
        let identity = table.identity(former);
        let current = rows.iter().find(|row| table.identity(row) == identity);
        if current != Some(former) {
            let removed = current.into_iter().cloned().collect();
            attacks.push(attack(Manipulation::Restore, removed, vec![former.clone()]));
        }
    }
    let Some(target) = rows.get(victim) else {
        return attacks;
    };
    attacks.push(attack(Manipulation::Delete, vec![target.clone()], vec![]));
    attacks.push(attack(
        Manipulation::Insert,
        vec![],
        vec![copy_of(table, target)],
    ));
    let donor = donor_of(rows, victim);
    if let Some(donor) = donor {
        let exchanged = exchange(target, donor, |column| table.is_key(column));
        let both = vec![target.clone(), donor.clone()];
        attacks.push(attack(Manipulation::Reorder, both, exchanged));
    }
    attacks.extend(attacks_on_columns(table, target, donor));
    attacks
}

/// Every attack on a column of a row. `donor` is another row.
fn attacks_on_columns(table: &Table, target: &Value, donor: Option<&Value>) -> Vec<Attack> {
    let attack = |column, manipulation, removed: Vec<Value>, added| {
        Attack::new(table, Some(column), manipulation, removed, added)
    };
    let mut attacks = Vec::new();
    for column in &table.columns {
        let edited = with(target, column, edited(column, &target[&column.name]));
        attacks.push(attack(
            column,
            Manipulation::Edit,
            vec![target.clone()],
            vec![edited],
        ));
        if column.is_nullable && !target[&column.name].is_null() {
            let cleared = with(target, column, Value::Null);
            attacks.push(attack(
                column,
                Manipulation::Clear,
                vec![target.clone()],
                vec![cleared],
            ));
        }
        if let Some(donor) = donor
            && donor[&column.name] != target[&column.name]
            && !table.is_key(&column.name)
        {
            let exchanged = exchange(target, donor, |name| name == column.name);
            let both = vec![target.clone(), donor.clone()];
            attacks.push(attack(column, Manipulation::Swap, both, exchanged));
        }
    }
    // Last, so that a scene that has to be set again for one of them has all other attacks behind it.
    let empty = table
        .columns
        .iter()
        .filter_map(|column| Some((column, empty_for_null(column, &target[&column.name])?)));
    for (column, empty) in empty {
        attacks.push(attack(
            column,
            Manipulation::Edit,
            vec![target.clone()],
            vec![with(target, column, empty)],
        ));
    }
    attacks
}

/// Another row, of the same tenant if there is one.
fn donor_of(rows: &[Value], victim: usize) -> Option<&Value> {
    let others = || {
        rows.iter()
            .enumerate()
            .filter(|(index, _)| *index != victim)
    };
    let tenant = &rows[victim]["tenant_id"];
    let same = others().find(|(_, row)| &row["tenant_id"] == tenant);
    same.or_else(|| others().next()).map(|(_, row)| row)
}

fn exchange(one: &Value, other: &Value, is_exchanged: impl Fn(&str) -> bool) -> Vec<Value> {
    let (mut first, mut second) = (one.clone(), other.clone());
    for name in one
        .as_object()
        .unwrap()
        .keys()
        .filter(|name| is_exchanged(name))
    {
        first[name] = other[name].clone();
        second[name] = one[name].clone();
    }
    vec![first, second]
}

fn with(row: &Value, column: &Column, value: Value) -> Value {
    let mut row = row.clone();
    row[&column.name] = value;
    row
}

/// The same row under another key.
fn copy_of(table: &Table, row: &Value) -> Value {
    let last = table
        .columns
        .iter()
        .rfind(|column| table.is_key(&column.name));
    let column = last.unwrap();
    with(row, column, edited(column, &row[&column.name]))
}

/// The empty value in place of null, which a MAC must not take for null.
fn empty_for_null(column: &Column, value: &Value) -> Option<Value> {
    let empty = match column.kind.as_str() {
        "text" => json!(""),
        "bytea" => json!("\\x"),
        "text[]" | "bytea[]" => json!([]),
        _ => return None,
    };
    value.is_null().then_some(empty)
}

/// Another valid value of the column's type.
fn edited(column: &Column, value: &Value) -> Value {
    let text = value.as_str().unwrap_or_default();
    match column.kind.as_str() {
        "boolean" => json!(!value.as_bool().unwrap_or_default()),
        "smallint" | "integer" | "bigint" => json!(value.as_i64().unwrap_or_default() + 1),
        "uuid" => json!(cloakroom::ids::new_uuid()),
        "bytea" => json!(edited_bytes(text)),
        "text[]" => pushed(value, json!("x")),
        "bytea[]" => pushed(value, json!("\\x00112233445566778899aabbccddeeff")),
        kind if kind.starts_with("timestamp") => {
            let at = text.parse::<Timestamp>().unwrap_or(Timestamp::UNIX_EPOCH);
            let later = at + jiff::Span::new().hours(24 * 365);
            // As PostgreSQL writes it, or the row would not be found again.
            json!(later.to_string().replace('Z', "+00:00"))
        }
        "text" => json!(format!("{text}x")),
        other => panic!("no edit of {other} in {}", column.name),
    }
}

fn pushed(value: &Value, item: Value) -> Value {
    let mut items = value.as_array().cloned().unwrap_or_default();
    items.push(item);
    Value::Array(items)
}

/// Flips the last bit.
fn edited_bytes(text: &str) -> String {
    let mut bytes = hex::decode(text.trim_start_matches("\\x")).unwrap();
    match bytes.last_mut() {
        Some(last) => *last ^= 1,
        None => bytes.push(0),
    }
    format!("\\x{}", hex::encode(bytes))
}
