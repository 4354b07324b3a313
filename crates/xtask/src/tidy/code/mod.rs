//! Rust source with comments and literals replaced by blanks, so that a search finds only code.

/// The code of a file, with unchanged lines and columns.
pub(super) struct Code {
    /// The source, with blanks for comments, contents of literals, and test modules.
    pub(super) text: String,
    /// The string literals outside test modules, with the line each starts on.
    pub(super) strings: Vec<(usize, String)>,
    /// Number of lines in test modules.
    pub(super) test_lines: usize,
}

impl Code {
    pub(super) fn read(source: &str) -> Self {
        let (mut text, mut strings) = blank(source);
        let mut test_lines = 0;
        while let Some((start, end)) = find_test_module(&text) {
            let (first, last) = (line_at(&text, start), line_at(&text, end));
            test_lines += last - first + 1;
            strings.retain(|(line, _)| !(first..=last).contains(line));
            let blanked = blanks(&text[start..end]);
            text.replace_range(start..end, &blanked);
        }
        Self {
            text,
            strings,
            test_lines,
        }
    }

    pub(super) fn line_at(&self, position: usize) -> usize {
        line_at(&self.text, position)
    }
}

/// The positions of `word` as a whole word.
pub(super) fn find_word(text: &str, word: &str) -> Vec<usize> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word)
        .map(|(at, _)| at)
        .filter(|&at| !text[..at].ends_with(is_part))
        .filter(|&at| !text[at + word.len()..].starts_with(is_part))
        .collect()
}

pub(super) fn line_at(text: &str, position: usize) -> usize {
    text[..position].matches('\n').count() + 1
}

/// The position after the bracket that closes the one at `open`.
pub(super) fn find_close(text: &str, open: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, c) in text[open..].char_indices() {
        match c {
            '{' | '(' | '[' => depth += 1,
            '}' | ')' | ']' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(open + at + c.len_utf8());
                }
            }
            _ => {}
        }
    }
    None
}

fn find_test_module(text: &str) -> Option<(usize, usize)> {
    let start = text.find("#[cfg(test)]")?;
    let rest = &text[start..];
    let open = rest.find('{').map(|at| start + at);
    let semicolon = rest.find(';').map(|at| start + at);
    match (open, semicolon) {
        // `mod tests;` or `use ...;`: the attribute covers one statement.
        (Some(open), Some(semicolon)) if semicolon < open => Some((start, semicolon + 1)),
        (Some(open), _) => Some((start, find_close(text, open).unwrap_or(text.len()))),
        (None, Some(semicolon)) => Some((start, semicolon + 1)),
        (None, None) => Some((start, text.len())),
    }
}

/// Blanks of the same length, with the line breaks of `text`.
fn blanks(text: &str) -> String {
    text.bytes()
        .map(|byte| if byte == b'\n' { '\n' } else { ' ' })
        .collect()
}

fn blank(source: &str) -> (String, Vec<(usize, String)>) {
    let mut text = String::with_capacity(source.len());
    let mut strings = Vec::new();
    let mut at = 0;
    while at < source.len() {
        let rest = &source[at..];
        let piece = piece_at(rest, text.chars().last());
        let taken = &rest[..piece.length];
        match piece.kind {
            Kind::Code => text.push_str(taken),
            Kind::Blank => text.push_str(&blanks(taken)),
            Kind::Text { open, close } => {
                let inside = &taken[open..taken.len() - close];
                strings.push((line_at(&text, text.len()), inside.to_owned()));
                // The quotes stay, so that a call with a literal still has an argument.
                text.push('"');
                text.push_str(&blanks(&taken[1..taken.len() - 1]));
                text.push('"');
            }
        }
        at += piece.length;
    }
    (text, strings)
}

struct Piece {
    length: usize,
    kind: Kind,
}

enum Kind {
    Code,
    Blank,
    /// A string literal, and the lengths of its opening and closing delimiters.
    Text {
        open: usize,
        close: usize,
    },
}

/// The piece at the start of `rest`, which is not empty. `before` is the character in front of it.
fn piece_at(rest: &str, before: Option<char>) -> Piece {
    let is_word_before = before.is_some_and(|c| c.is_alphanumeric() || c == '_');
    if rest.starts_with("//") {
        return Piece {
            length: rest.find('\n').unwrap_or(rest.len()),
            kind: Kind::Blank,
        };
    }
    if rest.starts_with("/*") {
        return Piece {
            length: block_comment_length(rest),
            kind: Kind::Blank,
        };
    }
    if let Some(piece) = raw_string_at(rest).filter(|_| !is_word_before) {
        return piece;
    }
    if rest.starts_with('"') {
        return plain_string_at(rest);
    }
    if let Some(length) = character_length(rest) {
        return Piece {
            length,
            kind: Kind::Blank,
        };
    }
    Piece {
        length: rest.chars().next().map_or(1, char::len_utf8),
        kind: Kind::Code,
    }
}

fn block_comment_length(rest: &str) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at < rest.len() {
        if rest[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += rest[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    rest.len()
}

fn raw_string_at(rest: &str) -> Option<Piece> {
    let letters = ["br", "cr", "r"]
        .into_iter()
        .find(|letters| rest.starts_with(letters))?;
    let hashes = rest[letters.len()..]
        .bytes()
        .take_while(|&byte| byte == b'#')
        .count();
    let open = letters.len() + hashes + 1;
    if rest.as_bytes().get(open - 1) != Some(&b'"') {
        return None;
    }
    let end = format!("\"{}", "#".repeat(hashes));
    let length = rest[open..]
        .find(&end)
        .map_or(rest.len(), |at| open + at + end.len());
    let close = end.len().min(length - open);
    Some(Piece {
        length,
        kind: Kind::Text { open, close },
    })
}

fn plain_string_at(rest: &str) -> Piece {
    let mut is_escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => {
                return Piece {
                    length: at + 1,
                    kind: Kind::Text { open: 1, close: 1 },
                };
            }
            _ => {}
        }
    }
    Piece {
        length: rest.len(),
        kind: Kind::Blank,
    }
}

/// The length of a character literal; `None` for a lifetime.
fn character_length(rest: &str) -> Option<usize> {
    let inside = rest.strip_prefix('\'')?;
    let mut chars = inside.char_indices();
    if chars.next()?.1 == '\\' {
        chars.next();
        return inside[2..].find('\'').map(|at| at + 4);
    }
    let (at, next) = chars.next()?;
    (next == '\'').then_some(at + 2)
}

#[cfg(test)]
mod tests;
