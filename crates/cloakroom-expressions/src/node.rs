//! The syntax tree of a template and its parser.

use crate::condition::Condition;
use crate::output::Output;
use crate::piece::{self, Piece};
use crate::tag::{self, ForHead};
use crate::variable::Operand;
use crate::{Context, DEPTH_MAX, ParseError};

#[derive(Debug)]
pub(crate) enum Node {
    Text(String),
    Output(Output),
    Assign(String, Output),
    Capture(String, Vec<Node>),
    If(Vec<Branch>, Vec<Node>),
    Case(Operand, Vec<Arm>, Vec<Node>),
    For(Box<ForHead>, Vec<Node>, Vec<Node>),
    Break,
    Continue,
}

/// An `if`, `unless` or `elsif`: taken if its condition evaluates to `expected`.
#[derive(Debug)]
pub(crate) struct Branch {
    pub(crate) condition: Condition,
    pub(crate) expected: bool,
    pub(crate) body: Vec<Node>,
}

/// A `when`.
#[derive(Debug)]
pub(crate) struct Arm {
    pub(crate) values: Vec<Operand>,
    pub(crate) body: Vec<Node>,
}

pub(crate) fn parse(context: Context, text: &str) -> Result<Vec<Node>, ParseError> {
    let pieces = piece::split(text)?;
    let mut parser = Parser {
        context,
        pieces: pieces.into_iter(),
        depth: 0,
        loops: 0,
    };
    match parser.block(None)? {
        (nodes, None) => Ok(nodes),
        (_, Some(end)) => Err(ParseError::MisplacedTag(end.name)),
    }
}

/// Whether any output is random.
pub(crate) fn is_random(nodes: &[Node]) -> bool {
    nodes.iter().any(|node| match node {
        Node::Text(_) | Node::Break | Node::Continue => false,
        Node::Output(output) | Node::Assign(_, output) => output.is_random(),
        Node::Capture(_, body) => is_random(body),
        Node::If(branches, otherwise) => {
            branches.iter().any(|branch| is_random(&branch.body)) || is_random(otherwise)
        }
        Node::Case(_, arms, otherwise) => {
            arms.iter().any(|arm| is_random(&arm.body)) || is_random(otherwise)
        }
        Node::For(_, body, otherwise) => is_random(body) || is_random(otherwise),
    })
}

struct Parser<'a> {
    context: Context,
    pieces: std::vec::IntoIter<Piece<'a>>,
    depth: usize,
    loops: usize,
}

/// The tag that ended a block, and the text after its name.
struct End<'a> {
    name: &'static str,
    rest: &'a str,
}

/// Tags that end or divide a block.
const ENDS: [&str; 8] = [
    "else",
    "elsif",
    "endcapture",
    "endcase",
    "endfor",
    "endif",
    "endunless",
    "when",
];

impl<'a> Parser<'a> {
    /// Parses up to a tag that ends or divides the block opened by `owner`.
    fn block(
        &mut self,
        owner: Option<&'static str>,
    ) -> Result<(Vec<Node>, Option<End<'a>>), ParseError> {
        let mut nodes = Vec::new();
        while let Some(piece) = self.pieces.next() {
            match piece {
                Piece::Text(text) => nodes.push(Node::Text(text.to_owned())),
                Piece::Output(text) => {
                    nodes.push(Node::Output(Output::parse(self.context, text)?));
                }
                Piece::Tag(name, rest) => {
                    if let Some(name) = ENDS.into_iter().find(|end| *end == name) {
                        return Ok((nodes, Some(End { name, rest })));
                    }
                    nodes.push(self.tag(name, rest)?);
                }
            }
        }
        match owner {
            Some(owner) => Err(ParseError::NoEnd(owner)),
            None => Ok((nodes, None)),
        }
    }

    /// Parses a block inside a tag; a missing end tag is an error.
    fn inner(&mut self, owner: &'static str) -> Result<(Vec<Node>, End<'a>), ParseError> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(ParseError::TooDeep);
        }
        let (nodes, end) = self.block(Some(owner))?;
        self.depth -= 1;
        Ok((nodes, end.ok_or(ParseError::NoEnd(owner))?))
    }

    fn tag(&mut self, name: &str, rest: &'a str) -> Result<Node, ParseError> {
        match name {
            "assign" => tag::parse_assign(self.context, rest),
            "capture" => {
                let variable = tag::parse_name("capture", rest)?;
                let (body, end) = self.inner("capture")?;
                end.must_be("endcapture")?;
                Ok(Node::Capture(variable, body))
            }
            "if" => self.branches("if", "endif", rest),
            "unless" => self.branches("unless", "endunless", rest),
            "case" => self.case(rest),
            "for" => self.for_loop(rest),
            "break" if self.loops > 0 => Ok(Node::Break),
            "continue" if self.loops > 0 => Ok(Node::Continue),
            "break" => Err(ParseError::MisplacedTag("break")),
            "continue" => Err(ParseError::MisplacedTag("continue")),
            _ => Err(ParseError::UnsupportedTag(
                name.chars().take(tag::NAME_CHARACTERS_MAX).collect(),
            )),
        }
    }

    fn branches(
        &mut self,
        name: &'static str,
        closing: &'static str,
        rest: &'a str,
    ) -> Result<Node, ParseError> {
        let mut branches = Vec::new();
        let mut head = (name, rest);
        loop {
            let condition = Condition::parse(head.1)?.ok_or(ParseError::BadTag(head.0))?;
            let (body, end) = self.inner(name)?;
            branches.push(Branch {
                condition,
                expected: head.0 != "unless",
                body,
            });
            if end.name == "elsif" {
                head = (end.name, end.rest);
                continue;
            }
            let otherwise = self.otherwise(name, end, closing)?;
            return Ok(Node::If(branches, otherwise));
        }
    }

    fn case(&mut self, rest: &'a str) -> Result<Node, ParseError> {
        let subject = tag::parse_operand("case", rest)?;
        let mut arms = Vec::new();
        // Content before the first `when` is never rendered.
        let (_, mut end) = self.inner("case")?;
        while end.name == "when" {
            let values = tag::parse_when(end.rest)?;
            let (body, next) = self.inner("case")?;
            arms.push(Arm { values, body });
            end = next;
        }
        let otherwise = self.otherwise("case", end, "endcase")?;
        Ok(Node::Case(subject, arms, otherwise))
    }

    fn for_loop(&mut self, rest: &'a str) -> Result<Node, ParseError> {
        let head = ForHead::parse(rest)?;
        self.loops += 1;
        let (body, end) = self.inner("for")?;
        self.loops -= 1;
        let otherwise = self.otherwise("for", end, "endfor")?;
        Ok(Node::For(Box::new(head), body, otherwise))
    }

    /// The block after `else`, if `end` is `else`, up to the closing tag.
    fn otherwise(
        &mut self,
        owner: &'static str,
        end: End<'a>,
        closing: &'static str,
    ) -> Result<Vec<Node>, ParseError> {
        if end.name != "else" {
            end.must_be(closing)?;
            return Ok(Vec::new());
        }
        let (body, end) = self.inner(owner)?;
        end.must_be(closing)?;
        Ok(body)
    }
}

impl End<'_> {
    fn must_be(&self, closing: &'static str) -> Result<(), ParseError> {
        match self.name == closing {
            true => Ok(()),
            false => Err(ParseError::MisplacedTag(self.name)),
        }
    }
}
