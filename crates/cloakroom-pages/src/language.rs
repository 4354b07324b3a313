//! The languages of pages, and how the one of a request is chosen.

use http::HeaderMap;
use http::header::ACCEPT_LANGUAGE;

/// A language that every text is available in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Language {
    #[default]
    English,
    German,
    French,
    Spanish,
    Portuguese,
}

/// Entries of an `Accept-Language` header that are read.
const ENTRIES_MAX: usize = 20;

impl Language {
    pub const ALL: [Self; 5] = [
        Self::English,
        Self::German,
        Self::French,
        Self::Spanish,
        Self::Portuguese,
    ];

    /// The BCP 47 tag.
    pub fn tag(self) -> &'static str {
        match self {
            Self::English => "en",
            Self::German => "de",
            Self::French => "fr",
            Self::Spanish => "es",
            Self::Portuguese => "pt",
        }
    }

    /// The language of a BCP 47 tag such as `pt-BR`.
    pub fn of_tag(tag: &str) -> Option<Self> {
        let primary = tag.trim().split(['-', '_']).next().unwrap_or_default();
        Self::ALL
            .into_iter()
            .find(|language| primary.eq_ignore_ascii_case(language.tag()))
    }

    /// The language that a browser prefers, or English.
    pub fn of_headers(headers: &HeaderMap) -> Self {
        let value = headers.get(ACCEPT_LANGUAGE);
        let text = value.and_then(|value| value.to_str().ok());
        Self::of_preferences(text.unwrap_or_default())
    }

    /// The first of the supported languages with the highest weight.
    fn of_preferences(text: &str) -> Self {
        let mut best = (Self::default(), 0.0);
        for entry in text.split(',').take(ENTRIES_MAX) {
            let (tag, parameters) = entry.split_once(';').unwrap_or((entry, ""));
            let weight = parameters.trim().strip_prefix("q=");
            let weight = weight.map_or(1.0, |weight| weight.parse().unwrap_or(0.0));
            if let Some(language) = Self::of_tag(tag)
                && weight > best.1
            {
                best = (language, weight);
            }
        }
        best.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_preferred_supported_language_is_chosen() {
        use Language::{English, French, German, Portuguese, Spanish};
        let cases = [
            ("", English),
            ("de", German),
            ("pt-BR,pt;q=0.9,en;q=0.8", Portuguese),
            ("ja,fr-CH;q=0.4,es;q=0.7", Spanish),
            ("ja", English),
            ("FR-ca", French),
            ("de;q=0,fr;q=0.1", French),
            ("de;q=x", English),
            ("den", English),
            ("*", English),
            (",,;;q=", English),
        ];
        for (header, expected) in cases {
            assert_eq!(Language::of_preferences(header), expected, "{header}");
        }
    }
}
