//! Parses a JSON path.

use serde_json::Value;

use super::{Comparable, JsonPath, LogicalExpression, Operator, Segment, Selector, Slice};
use crate::DEPTH_MAX;
use crate::cursor::Cursor;

/// Characters that end an unquoted name. Hyphens do not, because header names contain them.
const NAME_ENDS: &str = ".[]()?<>=!&|,*'\"@$:";

/// Longer operators first: `<=` starts with `<`.
const OPERATORS: [(&str, Operator); 6] = [
    ("==", Operator::Equal),
    ("!=", Operator::NotEqual),
    ("<=", Operator::LessOrEqual),
    (">=", Operator::GreaterOrEqual),
    ("<", Operator::Less),
    (">", Operator::Greater),
];

impl JsonPath {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut cursor = Cursor::new(text.trim());
        let path = parse_path(&mut cursor, 0).filter(|path| path.from_root)?;
        cursor.is_at_end().then_some(path)
    }
}

fn parse_path(cursor: &mut Cursor<'_>, depth: usize) -> Option<JsonPath> {
    if depth > DEPTH_MAX {
        return None;
    }
    let from_root = cursor.eat('$');
    if !from_root && !cursor.eat('@') {
        return None;
    }
    let mut segments = Vec::new();
    loop {
        let is_descendant = cursor.eat_text("..");
        let selectors = if cursor.eat('[') {
            parse_brackets(cursor, depth)?
        } else if is_descendant || cursor.eat('.') {
            vec![parse_member(cursor)?]
        } else {
            return Some(JsonPath {
                from_root,
                segments,
            });
        };
        segments.push(Segment {
            is_descendant,
            selectors,
        });
    }
}

fn parse_member(cursor: &mut Cursor<'_>) -> Option<Selector> {
    if cursor.eat('*') {
        return Some(Selector::Wildcard);
    }
    let is_name_character =
        |character: char| !character.is_whitespace() && !NAME_ENDS.contains(character);
    let name = cursor.take_while(is_name_character);
    (!name.is_empty()).then(|| Selector::Name(name.to_owned()))
}

fn parse_brackets(cursor: &mut Cursor<'_>, depth: usize) -> Option<Vec<Selector>> {
    let mut selectors = Vec::new();
    loop {
        cursor.skip_whitespace();
        selectors.push(parse_selector(cursor, depth)?);
        cursor.skip_whitespace();
        if cursor.eat(']') {
            return Some(selectors);
        }
        if !cursor.eat(',') {
            return None;
        }
    }
}

fn parse_selector(cursor: &mut Cursor<'_>, depth: usize) -> Option<Selector> {
    if cursor.eat('*') {
        return Some(Selector::Wildcard);
    }
    if cursor.eat('?') {
        return parse_or(cursor, depth + 1).map(Selector::Filter);
    }
    if let Some(name) = cursor.quoted() {
        return Some(Selector::Name(name.to_owned()));
    }
    let start = parse_integer(cursor)?;
    cursor.skip_whitespace();
    if !cursor.eat(':') {
        return start.map(Selector::Index);
    }
    cursor.skip_whitespace();
    let end = parse_integer(cursor)?;
    cursor.skip_whitespace();
    let step = match cursor.eat(':') {
        true => {
            cursor.skip_whitespace();
            parse_integer(cursor)?.unwrap_or(1)
        }
        false => 1,
    };
    (step != 0).then_some(Selector::Slice(Slice { start, end, step }))
}

/// An optional integer. The outer `None` rejects the path: the integer is out of range.
fn parse_integer(cursor: &mut Cursor<'_>) -> Option<Option<i64>> {
    let mut ahead = *cursor;
    let sign = if ahead.eat('-') { "-" } else { "" };
    let digits = ahead.take_while(|character| character.is_ascii_digit());
    if digits.is_empty() {
        return sign.is_empty().then_some(None);
    }
    *cursor = ahead;
    format!("{sign}{digits}").parse().ok().map(Some)
}

fn parse_or(cursor: &mut Cursor<'_>, depth: usize) -> Option<LogicalExpression> {
    parse_chain(cursor, "||", LogicalExpression::Any, |cursor| {
        parse_chain(cursor, "&&", LogicalExpression::All, |cursor| {
            parse_basic(cursor, depth)
        })
    })
}

/// Parses expressions separated by `sign`.
fn parse_chain(
    cursor: &mut Cursor<'_>,
    sign: &str,
    combine: fn(Vec<LogicalExpression>) -> LogicalExpression,
    next: impl Fn(&mut Cursor<'_>) -> Option<LogicalExpression>,
) -> Option<LogicalExpression> {
    let mut expressions = vec![next(cursor)?];
    while cursor.eat_text(sign) {
        expressions.push(next(cursor)?);
    }
    match expressions.len() {
        1 => expressions.pop(),
        _ => Some(combine(expressions)),
    }
}

fn parse_basic(cursor: &mut Cursor<'_>, depth: usize) -> Option<LogicalExpression> {
    if depth > DEPTH_MAX {
        return None;
    }
    cursor.skip_whitespace();
    let expression = if cursor.eat('!') {
        LogicalExpression::Not(Box::new(parse_basic(cursor, depth + 1)?))
    } else if cursor.eat('(') {
        let inner = parse_or(cursor, depth + 1)?;
        cursor.skip_whitespace();
        if !cursor.eat(')') {
            return None;
        }
        inner
    } else {
        parse_comparison(cursor, depth)?
    };
    cursor.skip_whitespace();
    Some(expression)
}

fn parse_comparison(cursor: &mut Cursor<'_>, depth: usize) -> Option<LogicalExpression> {
    let left = parse_comparable(cursor, depth)?;
    cursor.skip_whitespace();
    let found = OPERATORS.iter().find(|(sign, _)| cursor.eat_text(sign));
    let Some((_, operator)) = found else {
        return match left {
            Comparable::Path(path) => Some(LogicalExpression::Exists(path)),
            Comparable::Literal(_) => None,
        };
    };
    cursor.skip_whitespace();
    let right = parse_comparable(cursor, depth)?;
    Some(LogicalExpression::Compare(left, *operator, right))
}

fn parse_comparable(cursor: &mut Cursor<'_>, depth: usize) -> Option<Comparable> {
    if cursor.next_is('@') || cursor.next_is('$') {
        return parse_path(cursor, depth + 1).map(Comparable::Path);
    }
    if let Some(text) = cursor.quoted() {
        return Some(Comparable::Literal(text.into()));
    }
    if let Some(number) = cursor.number() {
        return Some(Comparable::Literal(number));
    }
    Some(Comparable::Literal(match cursor.identifier()? {
        "true" => true.into(),
        "false" => false.into(),
        "null" => Value::Null,
        _ => return None,
    }))
}
