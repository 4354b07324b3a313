//! Finds outputs and raw blocks in text.

pub(super) struct Braces<'a> {
    pub(super) before: &'a str,
    pub(super) inside: Inside<'a>,
    pub(super) rest: &'a str,
}

pub(super) enum Inside<'a> {
    Output(&'a str),
    Raw(&'a str),
}

/// The next complete output or raw block. Other tags and unclosed braces are plain text.
///
/// Calls never scan the same part of the text twice, so parsing a long body takes linear time.
pub(super) fn next_braces(text: &str) -> Option<Braces<'_>> {
    for (at, _) in text.match_indices('{') {
        let (before, opened) = text.split_at(at);
        if let Some(opened) = opened.strip_prefix("{{") {
            return output_at(before, opened);
        }
        if let Some((raw, rest)) = raw_at(opened) {
            return Some(Braces {
                before,
                inside: Inside::Raw(raw),
                rest,
            });
        }
    }
    None
}

fn output_at<'a>(before: &'a str, opened: &'a str) -> Option<Braces<'a>> {
    let (inner, rest) = opened.split_once("}}")?;
    let (inner, before) = match inner.strip_prefix('-') {
        Some(inner) => (inner, before.trim_end()),
        None => (inner, before),
    };
    let (inner, rest) = match inner.strip_suffix('-') {
        Some(inner) => (inner, rest.trim_start()),
        None => (inner, rest),
    };
    Some(Braces {
        before,
        inside: Inside::Output(inner),
        rest,
    })
}

/// The content of a `{% raw %}` block at the start of `text`. The next tag must be `{% endraw %}`.
fn raw_at(text: &str) -> Option<(&str, &str)> {
    let opened = strip_tag(text, "raw")?;
    let (raw, closing) = opened.split_at(opened.find("{%")?);
    Some((raw, strip_tag(closing, "endraw")?))
}

fn strip_tag<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let inner = text.strip_prefix("{%")?.trim_start();
    inner.strip_prefix(name)?.trim_start().strip_prefix("%}")
}
