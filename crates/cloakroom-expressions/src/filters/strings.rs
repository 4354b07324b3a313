//! Filters on text: case, whitespace, HTML and shortening.

use serde_json::Value;

use super::{Applied, Filter, Given, NOTHING};

pub(super) const FILTERS: &[Filter] = &[
    Filter::new("append", 1..=1, "a text", append),
    Filter::new("prepend", 1..=1, "a text", prepend),
    Filter::new("capitalize", 0..=0, NOTHING, capitalize),
    Filter::new("downcase", 0..=0, NOTHING, downcase),
    Filter::new("upcase", 0..=0, NOTHING, upcase),
    Filter::new("strip", 0..=0, NOTHING, strip),
    Filter::new("lstrip", 0..=0, NOTHING, lstrip),
    Filter::new("rstrip", 0..=0, NOTHING, rstrip),
    Filter::new("strip_html", 0..=0, NOTHING, strip_html),
    Filter::new("strip_newlines", 0..=0, NOTHING, strip_newlines),
    Filter::new("newline_to_br", 0..=0, NOTHING, newline_to_br),
    Filter::new("escape", 0..=0, NOTHING, escape),
    Filter::new("escape_once", 0..=0, NOTHING, escape_once),
    Filter::new("truncate", 0..=2, "up to a length and an ending", truncate),
    Filter::new(
        "truncatewords",
        0..=2,
        "up to a number of words and an ending",
        truncatewords,
    ),
];

fn append(given: &Given<'_>) -> Applied {
    Ok(format!("{}{}", given.text_or_empty()?, given.argument(0)?).into())
}

fn prepend(given: &Given<'_>) -> Applied {
    Ok(format!("{}{}", given.argument(0)?, given.text_or_empty()?).into())
}

fn capitalize(given: &Given<'_>) -> Applied {
    let text = given.text_or_empty()?;
    let mut characters = text.chars();
    let first: String = characters
        .next()
        .into_iter()
        .flat_map(char::to_uppercase)
        .collect();
    Ok((first + &characters.as_str().to_lowercase()).into())
}

fn downcase(given: &Given<'_>) -> Applied {
    Ok(given.text_or_empty()?.to_lowercase().into())
}

fn upcase(given: &Given<'_>) -> Applied {
    Ok(given.text_or_empty()?.to_uppercase().into())
}

fn strip(given: &Given<'_>) -> Applied {
    Ok(given.text_or_empty()?.trim().into())
}

fn lstrip(given: &Given<'_>) -> Applied {
    Ok(given.text_or_empty()?.trim_start().into())
}

fn rstrip(given: &Given<'_>) -> Applied {
    Ok(given.text_or_empty()?.trim_end().into())
}

fn strip_newlines(given: &Given<'_>) -> Applied {
    Ok(given.text_or_empty()?.replace(['\r', '\n'], "").into())
}

fn newline_to_br(given: &Given<'_>) -> Applied {
    let text = given.text_or_empty()?.replace("\r\n", "\n");
    Ok(text.replace('\n', "<br />\n").into())
}

/// Removes comments, scripts and styles with their content, and all other tags.
fn strip_html(given: &Given<'_>) -> Applied {
    const WITH_CONTENT: [(&str, &str); 3] = [
        ("<!--", "-->"),
        ("<script", "</script>"),
        ("<style", "</style>"),
    ];

    let text = given.text_or_empty()?;
    let lower = text.to_ascii_lowercase();
    // An end that was not found once is not looked for again, or the time would be quadratic.
    let mut is_absent = [false; 3];
    let mut kept = String::new();
    let mut position = 0;
    while let Some(at) = lower[position..].find('<') {
        let start = position + at;
        kept.push_str(&text[position..start]);
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
    kept.push_str(&text[position..]);
    Ok(kept.into())
}

fn escape(given: &Given<'_>) -> Applied {
    given.null_or(|text| {
        let escaped = text.chars().fold(String::new(), |mut escaped, character| {
            push_escaped(&mut escaped, character);
            escaped
        });
        Ok(escaped)
    })
}

/// As `escape`, but what is escaped already stays as it is.
fn escape_once(given: &Given<'_>) -> Applied {
    given.null_or(|text| {
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

/// Whether the text after `&` completes an entity: a name or a number, and `;`.
fn is_entity(text: &str) -> bool {
    let (body, is_part): (&str, fn(char) -> bool) = match text.strip_prefix('#') {
        Some(number) => (number, |character| character.is_ascii_digit()),
        None => (text, |character| character.is_ascii_alphabetic()),
    };
    let rest = body.trim_start_matches(is_part);
    rest.len() < body.len() && rest.starts_with(';')
}

fn truncate(given: &Given<'_>) -> Applied {
    let length = given.count(0, 50)?;
    let ending = if given.has(1) {
        given.argument(1)?
    } else {
        "...".into()
    };
    given.null_or(|text| {
        if text.chars().nth(length).is_none() {
            return Ok(text.to_owned());
        }
        let kept = length.saturating_sub(ending.chars().count());
        Ok(text.chars().take(kept).chain(ending.chars()).collect())
    })
}

fn truncatewords(given: &Given<'_>) -> Applied {
    let count = given.count(0, 15)?.max(1);
    let ending = if given.has(1) {
        given.argument(1)?
    } else {
        "...".into()
    };
    let Some(text) = given.text()? else {
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
