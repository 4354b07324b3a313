//! Reading a JSON path.

use serde_json::Value;

use super::{JsonPath, Operator, Segment, Selector, Slice, Term, Test};
use crate::DEPTH_MAX;
use crate::cursor::Cursor;

/// What ends a name without quotes. Hyphens do not: header names have them.
const NAME_ENDS: &str = ".[]()?<>=!&|,*'\"@$:";

/// Longer signs first: `<=` starts with `<`.
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
        let path = path(&mut cursor, 0).filter(|path| path.from_root)?;
        cursor.is_at_end().then_some(path)
    }
}

fn path(cursor: &mut Cursor<'_>, depth: usize) -> Option<JsonPath> {
    if depth > DEPTH_MAX {
        return None;
    }
    let from_root = cursor.eat('$');
    if !from_root && !cursor.eat('@') {
        return None;
    }
    let mut segments = Vec::new();
    loop {
        let is_deep = cursor.eat_text("..");
        let selectors = if cursor.eat('[') {
            brackets(cursor, depth)?
        } else if is_deep || cursor.eat('.') {
            vec![member(cursor)?]
        } else {
            return Some(JsonPath {
                from_root,
                segments,
            });
        };
        segments.push(Segment { is_deep, selectors });
    }
}

fn member(cursor: &mut Cursor<'_>) -> Option<Selector> {
    if cursor.eat('*') {
        return Some(Selector::Every);
    }
    let is_part = |character: char| !character.is_whitespace() && !NAME_ENDS.contains(character);
    let name = cursor.take_while(is_part);
    (!name.is_empty()).then(|| Selector::Name(name.to_owned()))
}

fn brackets(cursor: &mut Cursor<'_>, depth: usize) -> Option<Vec<Selector>> {
    let mut selectors = Vec::new();
    loop {
        cursor.skip_whitespace();
        selectors.push(selector(cursor, depth)?);
        cursor.skip_whitespace();
        if cursor.eat(']') {
            return Some(selectors);
        }
        if !cursor.eat(',') {
            return None;
        }
    }
}

fn selector(cursor: &mut Cursor<'_>, depth: usize) -> Option<Selector> {
    if cursor.eat('*') {
        return Some(Selector::Every);
    }
    if cursor.eat('?') {
        return any(cursor, depth + 1).map(Selector::Filter);
    }
    if let Some(name) = cursor.quoted() {
        return Some(Selector::Name(name.to_owned()));
    }
    let start = integer(cursor)?;
    cursor.skip_whitespace();
    if !cursor.eat(':') {
        return start.map(Selector::Index);
    }
    cursor.skip_whitespace();
    let end = integer(cursor)?;
    cursor.skip_whitespace();
    let step = match cursor.eat(':') {
        true => {
            cursor.skip_whitespace();
            integer(cursor)?.unwrap_or(1)
        }
        false => 1,
    };
    (step != 0).then_some(Selector::Slice(Slice { start, end, step }))
}

/// An integer if one is here; one that is too large makes the path none.
fn integer(cursor: &mut Cursor<'_>) -> Option<Option<i64>> {
    let mut ahead = *cursor;
    let sign = if ahead.eat('-') { "-" } else { "" };
    let digits = ahead.take_while(|character| character.is_ascii_digit());
    if digits.is_empty() {
        return sign.is_empty().then_some(None);
    }
    *cursor = ahead;
    format!("{sign}{digits}").parse().ok().map(Some)
}

fn any(cursor: &mut Cursor<'_>, depth: usize) -> Option<Test> {
    chain(cursor, "||", Test::Any, |cursor| {
        chain(cursor, "&&", Test::All, |cursor| one(cursor, depth))
    })
}

/// Tests with a sign between them.
fn chain(
    cursor: &mut Cursor<'_>,
    sign: &str,
    join: fn(Vec<Test>) -> Test,
    next: impl Fn(&mut Cursor<'_>) -> Option<Test>,
) -> Option<Test> {
    let mut tests = vec![next(cursor)?];
    while cursor.eat_text(sign) {
        tests.push(next(cursor)?);
    }
    match tests.len() {
        1 => tests.pop(),
        _ => Some(join(tests)),
    }
}

fn one(cursor: &mut Cursor<'_>, depth: usize) -> Option<Test> {
    if depth > DEPTH_MAX {
        return None;
    }
    cursor.skip_whitespace();
    let test = if cursor.eat('!') {
        Test::Not(Box::new(one(cursor, depth + 1)?))
    } else if cursor.eat('(') {
        let inner = any(cursor, depth + 1)?;
        cursor.skip_whitespace();
        if !cursor.eat(')') {
            return None;
        }
        inner
    } else {
        comparison(cursor, depth)?
    };
    cursor.skip_whitespace();
    Some(test)
}

fn comparison(cursor: &mut Cursor<'_>, depth: usize) -> Option<Test> {
    let left = term(cursor, depth)?;
    cursor.skip_whitespace();
    let found = OPERATORS.iter().find(|(sign, _)| cursor.eat_text(sign));
    let Some((_, operator)) = found else {
        return match left {
            Term::Path(path) => Some(Test::Exists(path)),
            Term::Literal(_) => None,
        };
    };
    cursor.skip_whitespace();
    let right = term(cursor, depth)?;
    Some(Test::Compare(left, *operator, right))
}

fn term(cursor: &mut Cursor<'_>, depth: usize) -> Option<Term> {
    if cursor.next_is('@') || cursor.next_is('$') {
        return path(cursor, depth + 1).map(Term::Path);
    }
    if let Some(text) = cursor.quoted() {
        return Some(Term::Literal(text.into()));
    }
    if let Some(number) = cursor.number() {
        return Some(Term::Literal(number));
    }
    Some(Term::Literal(match cursor.identifier()? {
        "true" => true.into(),
        "false" => false.into(),
        "null" => Value::Null,
        _ => return None,
    }))
}
