//! Parsers of tag contents: names, values and the head of a loop.

use crate::cursor::Cursor;
use crate::node::Node;
use crate::output::Output;
use crate::variable::Operand;
use crate::{Context, ParseError};

/// Enough to recognize a misspelled name without echoing the whole text.
pub(crate) const NAME_CHARACTERS_MAX: usize = 40;

/// `item in list reversed limit: 2 offset: 1`.
#[derive(Debug)]
pub(crate) struct ForHead {
    pub(crate) name: String,
    pub(crate) items: Items,
    pub(crate) is_reversed: bool,
    pub(crate) limit: Option<Operand>,
    pub(crate) offset: Option<Operand>,
}

#[derive(Debug)]
pub(crate) enum Items {
    Value(Operand),
    Range(Operand, Operand),
}

impl ForHead {
    pub(crate) fn parse(text: &str) -> Result<Self, ParseError> {
        const BAD: ParseError = ParseError::BadTag("for");
        let mut cursor = Cursor::new(text);
        let name = cursor.identifier().ok_or(BAD)?.to_owned();
        cursor.skip_whitespace();
        if !cursor.eat_word("in") {
            return Err(BAD);
        }
        cursor.skip_whitespace();
        let mut head = Self {
            name,
            items: parse_items(&mut cursor)?.ok_or(BAD)?,
            is_reversed: false,
            limit: None,
            offset: None,
        };
        cursor.skip_whitespace();
        while !cursor.is_at_end() {
            match cursor.identifier() {
                Some("reversed") => head.is_reversed = true,
                Some("limit") => head.limit = Some(parse_option(&mut cursor)?.ok_or(BAD)?),
                Some("offset") => head.offset = Some(parse_option(&mut cursor)?.ok_or(BAD)?),
                _ => return Err(BAD),
            }
            cursor.skip_whitespace();
            if cursor.eat(',') {
                cursor.skip_whitespace();
            }
        }
        Ok(head)
    }
}

fn parse_items(cursor: &mut Cursor<'_>) -> Result<Option<Items>, ParseError> {
    if !cursor.eat('(') {
        return Ok(Operand::parse(cursor)?.map(Items::Value));
    }
    cursor.skip_whitespace();
    let first = Operand::parse(cursor)?;
    cursor.skip_whitespace();
    let has_dots = cursor.eat_text("..");
    cursor.skip_whitespace();
    let last = Operand::parse(cursor)?;
    cursor.skip_whitespace();
    let is_whole = has_dots && cursor.eat(')');
    let ends = first.zip(last).filter(|_| is_whole);
    Ok(ends.map(|(first, last)| Items::Range(first, last)))
}

fn parse_option(cursor: &mut Cursor<'_>) -> Result<Option<Operand>, ParseError> {
    cursor.skip_whitespace();
    if !cursor.eat(':') {
        return Ok(None);
    }
    cursor.skip_whitespace();
    Operand::parse(cursor)
}

/// `name = value | filters`.
pub(crate) fn parse_assign(context: Context, text: &str) -> Result<Node, ParseError> {
    const BAD: ParseError = ParseError::BadTag("assign");
    let mut cursor = Cursor::new(text);
    let name = cursor.identifier().ok_or(BAD)?;
    cursor.skip_whitespace();
    if !cursor.eat('=') {
        return Err(BAD);
    }
    let output = Output::parse(context, cursor.rest())?;
    Ok(Node::Assign(name.to_owned(), output))
}

/// A single name, quoted or not.
pub(crate) fn parse_name(tag: &'static str, text: &str) -> Result<String, ParseError> {
    let mut cursor = Cursor::new(text);
    let name = cursor.quoted().or_else(|| cursor.identifier());
    let name = name.filter(|_| cursor.is_at_end());
    name.map(str::to_owned).ok_or(ParseError::BadTag(tag))
}

/// A single value.
pub(crate) fn parse_operand(tag: &'static str, text: &str) -> Result<Operand, ParseError> {
    let mut cursor = Cursor::new(text);
    let operand = Operand::parse(&mut cursor)?;
    operand
        .filter(|_| cursor.is_at_end())
        .ok_or(ParseError::BadTag(tag))
}

/// Values separated by `,` or `or`.
pub(crate) fn parse_when(text: &str) -> Result<Vec<Operand>, ParseError> {
    const BAD: ParseError = ParseError::BadTag("when");
    let mut cursor = Cursor::new(text);
    let mut values = Vec::new();
    loop {
        cursor.skip_whitespace();
        values.push(Operand::parse(&mut cursor)?.ok_or(BAD)?);
        cursor.skip_whitespace();
        if cursor.is_at_end() {
            return Ok(values);
        }
        if !cursor.eat(',') && !cursor.eat_word("or") {
            return Err(BAD);
        }
    }
}
