//! Filters that replace or remove parts of a text.

use super::{Applied, Filter, Given};

pub(super) const FILTERS: &[Filter] = &[
    Filter::new(
        "replace",
        1..=2,
        "a text and optionally its replacement",
        replace,
    ),
    Filter::new(
        "replace_first",
        1..=2,
        "a text and optionally its replacement",
        replace_first,
    ),
    Filter::new(
        "replace_last",
        1..=2,
        "a text and optionally its replacement",
        replace_last,
    ),
    Filter::new("remove", 1..=1, "a text", replace),
    Filter::new("remove_first", 1..=1, "a text", replace_first),
    Filter::new("remove_last", 1..=1, "a text", replace_last),
];

/// Without a second argument, this removes.
fn replace(given: &Given<'_>) -> Applied {
    let (text, from, to) = (
        given.text_or_empty()?,
        given.argument(0)?,
        given.argument(1)?,
    );
    // A short text with a long replacement at every character would be a very long one.
    let matches = text.matches(&*from).count();
    given.spend(matches.saturating_mul(to.len()))?;
    Ok(text.replace(&*from, &to).into())
}

fn replace_first(given: &Given<'_>) -> Applied {
    let (text, from, to) = (
        given.text_or_empty()?,
        given.argument(0)?,
        given.argument(1)?,
    );
    Ok(text.replacen(&*from, &to, 1).into())
}

fn replace_last(given: &Given<'_>) -> Applied {
    let (text, from, to) = (
        given.text_or_empty()?,
        given.argument(0)?,
        given.argument(1)?,
    );
    Ok(match text.rfind(&*from) {
        Some(at) => format!("{}{to}{}", &text[..at], &text[at + from.len()..]).into(),
        None => text.into(),
    })
}
