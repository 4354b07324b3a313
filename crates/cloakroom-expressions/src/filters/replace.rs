//! Filters that replace or remove parts of a text.

use super::{Filter, FilterArgs, FilterResult};

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

/// Removes the text if there is no second argument.
fn replace(args: &FilterArgs<'_>) -> FilterResult {
    let (text, from, to) = (args.text_or_empty()?, args.argument(0)?, args.argument(1)?);
    // Charged in advance: a long replacement at every character of a short text has a very long result.
    let matches = text.matches(&*from).count();
    args.charge(matches.saturating_mul(to.len()))?;
    Ok(text.replace(&*from, &to).into())
}

fn replace_first(args: &FilterArgs<'_>) -> FilterResult {
    let (text, from, to) = (args.text_or_empty()?, args.argument(0)?, args.argument(1)?);
    Ok(text.replacen(&*from, &to, 1).into())
}

fn replace_last(args: &FilterArgs<'_>) -> FilterResult {
    let (text, from, to) = (args.text_or_empty()?, args.argument(0)?, args.argument(1)?);
    Ok(match text.rfind(&*from) {
        Some(at) => format!("{}{to}{}", &text[..at], &text[at + from.len()..]).into(),
        None => text.into(),
    })
}
