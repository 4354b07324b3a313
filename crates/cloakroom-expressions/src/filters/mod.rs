//! The table of filters: name, arguments and implementation. To add a filter, add a row to the table in its file.

mod alias;
mod args;
mod arrays;
mod cards;
mod convert;
mod dates;
mod encode;
mod math;
mod replace;
mod slices;
mod strings;

use std::ops::RangeInclusive;

use serde_json::Value;

pub(crate) use args::FilterArgs;

use crate::EvaluationError;

type FilterResult = Result<Value, EvaluationError>;

/// The definition of a filter.
#[derive(Debug)]
pub(crate) struct Filter {
    pub(crate) name: &'static str,
    pub(crate) arguments: RangeInclusive<usize>,
    /// Describes the arguments in error messages.
    pub(crate) expected: &'static str,
    pub(crate) kind: Kind,
    pub(crate) apply: fn(&FilterArgs<'_>) -> FilterResult,
}

/// Restrictions on the position and the use of a filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Plain,
    /// Must be the last filter.
    Last,
    /// Returns bytes; only an encoder may follow.
    Bytes,
    Encoder,
    /// Returns a different value on every evaluation.
    Random,
    /// Takes a JSON path as its first argument.
    Path,
}

const TABLES: [&[Filter]; 10] = [
    alias::FILTERS,
    arrays::FILTERS,
    cards::FILTERS,
    convert::FILTERS,
    dates::FILTERS,
    encode::FILTERS,
    math::FILTERS,
    replace::FILTERS,
    slices::FILTERS,
    strings::FILTERS,
];

const NO_ARGUMENTS: &str = "no arguments";

impl Filter {
    const fn new(
        name: &'static str,
        arguments: RangeInclusive<usize>,
        expected: &'static str,
        apply: fn(&FilterArgs<'_>) -> FilterResult,
    ) -> Self {
        Self {
            name,
            arguments,
            expected,
            kind: Kind::Plain,
            apply,
        }
    }

    const fn with_kind(mut self, kind: Kind) -> Self {
        self.kind = kind;
        self
    }

    pub(crate) fn find(name: &str) -> Option<&'static Self> {
        let mut filters = TABLES.into_iter().flatten();
        filters.find(|filter| filter.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_filter_of_sections_3_and_4_exists_once() {
        let documented = "append prepend capitalize downcase upcase strip lstrip rstrip strip_html \
            strip_newlines newline_to_br escape escape_once url_encode url_decode base64_encode \
            base64_decode base64_url_safe_encode base64_url_safe_decode truncate truncatewords \
            replace replace_first replace_last remove remove_first remove_last slice split size \
            first last join concat reverse sort sort_natural uniq compact map where reject find has \
            sum abs ceil floor round plus minus times divided_by modulo at_least at_most default \
            date json stringify json_stringify last4 pad_left pad_right reveal reveal_last card_mask \
            card_bin card_exp alias_card alias_preserve_format alias_preserve_length to_string \
            to_number to_boolean hmac to_base64 to_base16";
        let mut documented: Vec<_> = documented.split_whitespace().collect();
        let mut present: Vec<_> = TABLES.into_iter().flatten().map(|row| row.name).collect();
        documented.sort_unstable();
        present.sort_unstable();
        assert_eq!(present, documented);
    }
}
