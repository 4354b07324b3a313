//! Filters on text: case, whitespace, HTML and truncation.

use serde_json::Value;

use super::{Filter, FilterArgs, FilterResult, NO_ARGUMENTS};

pub(super) const FILTERS: &[Filter] = &[
    Filter::new("append", 1..=1, "a text", append),
    Filter::new("prepend", 1..=1, "a text", prepend),
    Filter::new("capitalize", 0..=0, NO_ARGUMENTS, capitalize),
    Filter::new("downcase", 0..=0, NO_ARGUMENTS, downcase),
    Filter::new("upcase", 0..=0, NO_ARGUMENTS, upcase),
    Filter::new("strip", 0..=0, NO_ARGUMENTS, strip),
    Filter::new("lstrip", 0..=0, NO_ARGUMENTS, lstrip),
    Filter::new("rstrip", 0..=0, NO_ARGUMENTS, rstrip),
    Filter::new("strip_html", 0..=0, NO_ARGUMENTS, strip_html),
    Filter::new("strip_newlines", 0..=0, NO_ARGUMENTS, strip_newlines),
    Filter::new("newline_to_br", 0..=0, NO_ARGUMENTS, newline_to_br),
    Filter::new("escape", 0..=0, NO_ARGUMENTS, escape),
    Filter::new("escape_once", 0..=0, NO_ARGUMENTS, escape_once),
    Filter::new("truncate", 0..=2, "up to a length and an ending", truncate),
    Filter::new(
        "truncatewords",
        0..=2,
        "up to a number of words and an ending",
        truncatewords,
    ),
];

fn append(args: &FilterArgs<'_>) -> FilterResult {
    Ok(format!("{}{}", args.text_or_empty()?, args.argument(0)?).into())
}

fn prepend(args: &FilterArgs<'_>) -> FilterResult {
    Ok(format!("{}{}", args.argument(0)?, args.text_or_empty()?).into())
}

fn capitalize(args: &FilterArgs<'_>) -> FilterResult {
    let text = args.text_or_empty()?;
    let mut characters = text.chars();
    let first: String = characters
        .next()
        .into_iter()
        .flat_map(char::to_uppercase)
        .collect();
    Ok((first + &characters.as_str().to_lowercase()).into())
}

fn downcase(args: &FilterArgs<'_>) -> FilterResult {
    Ok(args.text_or_empty()?.to_lowercase().into())
}

fn upcase(args: &FilterArgs<'_>) -> FilterResult {
    Ok(args.text_or_empty()?.to_uppercase().into())
}

fn strip(args: &FilterArgs<'_>) -> FilterResult {
    Ok(args.text_or_empty()?.trim().into())
}

fn lstrip(args: &FilterArgs<'_>) -> FilterResult {
    Ok(args.text_or_empty()?.trim_start().into())
}

fn rstrip(args: &FilterArgs<'_>) -> FilterResult {
    Ok(args.text_or_empty()?.trim_end().into())
}

fn strip_newlines(args: &FilterArgs<'_>) -> FilterResult {
    Ok(args.text_or_empty()?.replace(['\r', '\n'], "").into())
}

fn newline_to_br(args: &FilterArgs<'_>) -> FilterResult {
    let text = args.text_or_empty()?.replace("\r\n", "\n");
    Ok(text.replace('\n', "<br />\n").into())
}

/// Removes comments, scripts and styles with their content, and all other tags.
fn strip_html(args: &FilterArgs<'_>) -> FilterResult {
    const WITH_CONTENT: [(&str, &str); 3] = [
        ("<!--", "-->"),
        ("<script", "</script>"),
        ("<style", "</style>"),
    ];

    let text = args.text_or_empty()?;
    let lower = text.to_ascii_lowercase();
    // A missing end tag is searched only once; otherwise the time would be quadratic.
    let mut is_absent = [false; 3];
    let mut stripped = String::new();
    let mut position = 0;
    while let Some(at) = lower[position..].find('<') {
        let start = position + at;
        stripped.push_str(&text[position..start]);
        let rest = &lower[start..];
        let mut end = None;
        for (kind, (open, close)) in WITH_CONTENT.into_iter().enumerate() {
            if end.is_none() && rest.starts_with(open) && !is_absent[kind] {
                end = rest.find(close).map(|at| at + close.len());
                is_absent[kind] = end.is_none();
            }
        }
        let Some(end) = end.or_else(|| rest.find('>').map(|at| at + 1)) else {
            position = start;
            break;
        };
        position = start + end;
    }
    stripped.push_str(&text[position..]);
    Ok(stripped.into())
}

fn escape(args: &FilterArgs<'_>) -> FilterResult {
    args.map_text(|text| {
        let escaped = text.chars().fold(String::new(), |mut escaped, character| {
            push_escaped(&mut escaped, character);
            escaped
        });
        Ok(escaped)
    })
}

/// Like `escape`, but preserves existing entities.
fn escape_once(args: &FilterArgs<'_>) -> FilterResult {
    args.map_text(|text| {
        let mut escaped = String::new();
        for (position, character) in text.char_indices() {
            if character == '&' && is_entity(&text[position + 1..]) {
                escaped.push('&');
            } else {
                push_escaped(&mut escaped, character);
            }
        }
        Ok(escaped)
    })
}

fn push_escaped(escaped: &mut String, character: char) {
    match character {
        '&' => escaped.push_str("&amp;"),
        '<' => escaped.push_str("&lt;"),
        '>' => escaped.push_str("&gt;"),
        '"' => escaped.push_str("&quot;"),
        '\'' => escaped.push_str("&#39;"),
        character => escaped.push(character),
    }
}

/// Whether the text after `&` completes an entity: a name or a number, followed by `;`.
fn is_entity(text: &str) -> bool {
    let (body, is_part): (&str, fn(char) -> bool) = match text.strip_prefix('#') {
        Some(number) => (number, |character| character.is_ascii_digit()),
        None => (text, |character| character.is_ascii_alphabetic()),
    };
    let rest = body.trim_start_matches(is_part);
    rest.len() < body.len() && rest.starts_with(';')
}

fn truncate(args: &FilterArgs<'_>) -> FilterResult {
    let length = args.count(0, 50)?;
    let ending = if args.has(1) {
        args.argument(1)?
    } else {
        "...".into()
    };
    args.map_text(|text| {
        if text.chars().nth(length).is_none() {
            return Ok(text.to_owned());
        }
        let stripped = length.saturating_sub(ending.chars().count());
        Ok(text.chars().take(stripped).chain(ending.chars()).collect())
    })
}

fn truncatewords(args: &FilterArgs<'_>) -> FilterResult {
    let count = args.count(0, 15)?.max(1);
    let ending = if args.has(1) {
        args.argument(1)?
    } else {
        "...".into()
    };
    let Some(text) = args.text()? else {
        return Ok(Value::Null);
    };
    let words: Vec<_> = text
        .split_whitespace()
        .take(count.saturating_add(1))
        .collect();
    if words.len() <= count {
        return Ok(text.into());
    }
    Ok((words[..count].join(" ") + &ending).into())
}
