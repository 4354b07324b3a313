//! Which way rooms use each other: downwards only, in no circle, and by verbs instead of stores.

use std::collections::{BTreeMap, BTreeSet};

use super::Violation;
use super::code::Code;
use super::rooms::{self, LAYERS, SOURCE};
use super::tree::Tree;

/// One mention of another module.
struct Mention {
    path: Vec<String>,
    position: usize,
}

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut sideways: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut places = Vec::new();
    for file in tree.rust(SOURCE).filter(|file| !file.is_test()) {
        let Some(module) = rooms::module_of(&file.path) else {
            continue;
        };
        let Some(room) = module.first().cloned() else {
            continue;
        };
        let code = Code::read(&file.text);
        for mention in mentions(&code.text, &module) {
            let violation = |rule, advice| Violation {
                path: file.path.clone(),
                line: code.line_at(mention.position),
                rule,
                advice,
            };
            let Some(other) = mention.path.first().filter(|other| **other != room) else {
                continue;
            };
            if mention.path.get(1).is_some_and(|part| part == "store") {
                let advice = format!("call a verb of `{other}` instead of its store");
                found.push(violation("foreign-store", advice));
            }
            match (rooms::depth_of(&room), rooms::depth_of(other)) {
                (Some(own), Some(theirs)) if theirs < own => {
                    found.push(violation("room-order", upward(&room, other)));
                }
                (Some(own), Some(theirs)) if theirs == own => {
                    sideways
                        .entry(room.clone())
                        .or_default()
                        .insert(other.clone());
                    places.push((
                        room.clone(),
                        other.clone(),
                        violation("room-circle", String::new()),
                    ));
                }
                _ => {}
            }
        }
    }
    found.extend(circles(&sideways, places));
    found
}

fn upward(room: &str, other: &str) -> String {
    format!(
        "`{room}` stands below `{other}`: record an event, or move what both need into `{room}` \
         or below"
    )
}

/// Rooms of one row may use each other, in one direction.
fn circles(
    sideways: &BTreeMap<String, BTreeSet<String>>,
    places: Vec<(String, String, Violation)>,
) -> Vec<Violation> {
    places
        .into_iter()
        .filter(|(room, other, _)| reaches(sideways, other, room))
        .map(|(room, other, violation)| {
            let advice = format!("`{other}` uses `{room}` as well: keep one of the two directions");
            Violation {
                advice,
                ..violation
            }
        })
        .collect()
}

fn reaches(sideways: &BTreeMap<String, BTreeSet<String>>, from: &str, to: &str) -> bool {
    let mut seen = BTreeSet::new();
    let mut open = vec![from];
    while let Some(room) = open.pop() {
        if room == to {
            return true;
        }
        if seen.insert(room) {
            open.extend(sideways.get(room).into_iter().flatten().map(String::as_str));
        }
    }
    false
}

/// Every path in `text` that leads to another module of the service, from the crate's root.
fn mentions(text: &str, module: &[String]) -> Vec<Mention> {
    let mut found = Vec::new();
    for position in super::code::find_word(text, "crate") {
        let paths = text[position..]
            .strip_prefix("crate::")
            .map(read_paths)
            .unwrap_or_default();
        found.extend(paths.into_iter().map(|path| Mention { path, position }));
    }
    for position in super::code::find_word(text, "super") {
        let is_first = !text[..position].ends_with("super::");
        if !is_first || !text[position..].starts_with("super::") {
            continue;
        }
        let (mut rest, mut base) = (&text[position..], module.to_vec());
        while let Some(after) = rest.strip_prefix("super::") {
            rest = after;
            base.pop();
        }
        for path in read_paths(rest) {
            found.push(Mention {
                path: [base.clone(), path].concat(),
                position,
            });
        }
    }
    // After `use crate::tokens`, a store would be reached as `tokens::store`.
    for room in LAYERS.concat() {
        for position in super::code::find_word(text, &format!("{room}::store")) {
            if !text[..position].ends_with("::") {
                let path = vec![room.to_owned(), "store".to_owned()];
                found.push(Mention { path, position });
            }
        }
    }
    found
}

/// The paths that start at `text`, with the braces of imports multiplied out.
fn read_paths(text: &str) -> Vec<Vec<String>> {
    let text = text.trim_start();
    if text.starts_with('{') {
        let end = super::code::find_close(text, 0).map_or(text.len(), |end| end - 1);
        return split_list(&text[1..end])
            .into_iter()
            .flat_map(read_paths)
            .collect();
    }
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let end = text.find(|c| !is_part(c)).unwrap_or(text.len());
    if end == 0 {
        return Vec::new();
    }
    let head = text[..end].to_owned();
    let tails = text[end..]
        .strip_prefix("::")
        .map(read_paths)
        .unwrap_or_default();
    if tails.is_empty() {
        return vec![vec![head]];
    }
    tails
        .into_iter()
        .map(|tail| [vec![head.clone()], tail].concat())
        .collect()
}

fn split_list(inside: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0_usize, 0);
    for (at, c) in inside.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(&inside[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&inside[start..]);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_read_from_the_root_of_the_crate() {
        let cases = [
            ("use crate::tokens;", "tokens"),
            (
                "use crate::{api::Json, tokens::{self, store}};",
                "api::Json tokens::self tokens::store",
            ),
            ("crate::ids::TokenId::new(now)", "ids::TokenId::new"),
            ("use super::store;", "events::store"),
            ("use super::super::tokens::find;", "tokens::find"),
            ("tokens::store::find(conn)", "tokens::store"),
            ("pub(super) fn find()", ""),
            ("pub(crate) fn find()", ""),
        ];
        let module = ["events".to_owned(), "record".to_owned()];
        for (text, expected) in cases {
            let found: Vec<_> = mentions(text, &module)
                .iter()
                .map(|mention| mention.path.join("::"))
                .collect();
            assert_eq!(found.join(" "), expected, "{text}");
        }
    }
}
