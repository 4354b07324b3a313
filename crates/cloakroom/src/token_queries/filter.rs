//! What a list or a search asks for, however it was written.

use cloakroom_crypto::Sensitive;

use crate::access::Container;
use crate::token_attributes::fold;
use crate::token_types::TokenKind;

const FINGERPRINT_CHARS_MAX: usize = 100;
const KEY_CHARS_MAX: usize = 200;
const VALUE_CHARS_MAX: usize = 1_000;
const ID_CHARS_MAX: usize = 400;

/// A list or search of the second version; without any part, every token is asked for.
#[derive(Debug, Default)]
pub struct Filter {
    /// This container and what lies below it.
    pub container: Option<Container>,
    pub condition: Option<Condition>,
}

/// One condition on tokens, besides where they lie.
#[derive(Debug)]
pub enum Condition {
    Kind(TokenKind),
    Fingerprint(String),
    /// Both are compared exactly, case included.
    Metadata {
        key: String,
        value: String,
    },
    /// The value of a search index: a piece of the data of the token that is looked for.
    Data(Sensitive<String>),
}

/// A list or search of the first version; without any part, every token is asked for.
#[derive(Debug, Default)]
pub struct OldFilter {
    /// Tokens with one of these ids. There is at least one.
    pub ids: Option<Vec<String>>,
    /// Tokens with all of these, each key once. Keys and values are in the form that case does not change.
    pub metadata: Vec<(String, String)>,
    /// The value of a search index, case included.
    pub data: Option<Sensitive<String>>,
}

impl Filter {
    /// One text for each filter: every part behind its length, so that no two filters share one.
    ///
    /// It holds what is searched for, so it is for digests and not for show.
    pub fn canonical(&self) -> Sensitive<String> {
        let mut parts = Vec::new();
        if let Some(container) = &self.container {
            parts.extend(["container", container.as_str()]);
        }
        match &self.condition {
            None => {}
            Some(Condition::Kind(kind)) => parts.extend(["type", kind.name()]),
            Some(Condition::Fingerprint(text)) => parts.extend(["fingerprint", text]),
            Some(Condition::Metadata { key, value }) => parts.extend(["metadata", key, value]),
            Some(Condition::Data(value)) => parts.extend(["data", value.expose()]),
        }
        // Room for everything at once: text that grows leaves copies of itself behind.
        let length = parts.iter().map(|part| part.len() + 21).sum();
        let mut text = Sensitive::new(String::with_capacity(length));
        for part in parts {
            text.expose_mut().push_str(&part.len().to_string());
            text.expose_mut().push(':');
            text.expose_mut().push_str(part);
        }
        text
    }
}

/// Each failure is the rule that was broken, in words for the client.
impl Condition {
    pub(super) fn kind(name: &str) -> Result<Self, String> {
        TokenKind::parse(name)
            .map(Self::Kind)
            .ok_or_else(|| "must name a token type".to_owned())
    }

    pub(super) fn fingerprint(text: &str) -> Result<Self, String> {
        let is_alphanumeric = text.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if text.is_empty() || text.len() > FINGERPRINT_CHARS_MAX || !is_alphanumeric {
            return Err(format!(
                "must be a fingerprint: 1 to {FINGERPRINT_CHARS_MAX} letters and digits"
            ));
        }
        Ok(Self::Fingerprint(text.to_owned()))
    }

    pub(super) fn metadata(key: String, value: String) -> Result<Self, String> {
        check_metadata(&key, &value)?;
        Ok(Self::Metadata { key, value })
    }
}

impl OldFilter {
    /// Asks for one more id, which need not exist.
    pub(super) fn add_id(&mut self, id: String) -> Result<(), String> {
        if id.is_empty() || id.chars().count() > ID_CHARS_MAX || id.contains(char::is_control) {
            return Err(format!(
                "must be a token id of at most {ID_CHARS_MAX} characters"
            ));
        }
        self.ids.get_or_insert_default().push(id);
        Ok(())
    }

    /// Asks for one more entry; false when its key is asked for already.
    pub(super) fn add_metadata(&mut self, key: &str, value: &str) -> Result<bool, String> {
        check_metadata(key, value)?;
        let key = fold(key);
        let is_new = self.metadata.iter().all(|(known, _)| *known != key);
        if is_new {
            self.metadata.push((key, fold(value)));
        }
        Ok(is_new)
    }
}

/// The limits of metadata itself. NUL is refused because the database's text cannot hold it.
fn check_metadata(key: &str, value: &str) -> Result<(), String> {
    let fits = (1..=KEY_CHARS_MAX).contains(&key.chars().count())
        && value.chars().count() <= VALUE_CHARS_MAX
        && !key.contains('\0')
        && !value.contains('\0');
    fits.then_some(()).ok_or_else(|| {
        format!(
            "must have a key of 1 to {KEY_CHARS_MAX} characters and a value of at most \
             {VALUE_CHARS_MAX}, without NUL"
        )
    })
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::option;
    use proptest::prelude::*;

    use super::*;

    pub(in super::super) fn container(path: &str) -> Option<Container> {
        Some(Container::parse(path).unwrap())
    }

    pub(in super::super) fn metadata(key: &str, value: &str) -> Option<Condition> {
        Some(Condition::metadata(key.to_owned(), value.to_owned()).unwrap())
    }

    pub(in super::super) fn data(value: &str) -> Option<Condition> {
        Some(Condition::Data(Sensitive::new(value.to_owned())))
    }

    /// Filters that fit into a query of two hundred characters, even when all is escaped.
    pub(in super::super) fn filters() -> impl Strategy<Value = Filter> {
        let kind = proptest::sample::select(TokenKind::ALL.to_vec());
        let text = || proptest::collection::vec(any::<char>(), 0..20);
        let words = "[ a:\"\\\\AND(){}*?.\\[\\]=&+%|é]{0,20}";
        let value = prop_oneof![text().prop_map(String::from_iter), words.prop_map(|s| s)]
            .prop_map(|value| value.replace('\0', "0"));
        let key = value.clone().prop_map(|key| format!("k{key}"));
        let condition = prop_oneof![
            kind.prop_map(Condition::Kind),
            "[1-9A-HJ-NP-Za-km-z]{1,44}".prop_map(Condition::Fingerprint),
            (key, value.clone()).prop_map(|(key, value)| Condition::Metadata { key, value }),
            value.prop_map(|value| Condition::Data(Sensitive::new(value))),
        ];
        let container = "/([a-z0-9_-]{1,8}/){0,3}";
        (
            option::of(container.prop_map(|path| Container::parse(&path).unwrap())),
            option::of(condition),
        )
            .prop_map(|(container, condition)| Filter {
                container,
                condition,
            })
    }

    fn canonical(container: Option<Container>, condition: Option<Condition>) -> String {
        let filter = Filter {
            container,
            condition,
        };
        filter.canonical().expose().clone()
    }

    #[test]
    fn the_canonical_text_tells_filters_apart() {
        let cases = [
            (None, None, ""),
            (container("/"), None, "9:container1:/"),
            (container("/A/"), None, "9:container3:/a/"),
            (None, Some(Condition::Kind(TokenKind::Card)), "4:type4:card"),
            (
                None,
                Some(Condition::Fingerprint("ab".to_owned())),
                "11:fingerprint2:ab",
            ),
            (None, metadata("a", "b1:c"), "8:metadata1:a4:b1:c"),
            (None, metadata("a4:b", "1:c"), "8:metadata4:a4:b3:1:c"),
            (None, metadata("é", ""), "8:metadata2:é0:"),
            (container("/a/"), data("x y"), "9:container3:/a/4:data3:x y"),
        ];
        for (container, condition, expected) in cases {
            assert_eq!(canonical(container, condition), expected);
        }
    }

    #[test]
    fn what_is_looked_for_is_not_shown_by_debug() {
        let filter = Filter {
            container: None,
            condition: data("4242424242424242"),
        };
        assert!(!format!("{filter:?}").contains("4242"));
    }

    #[test]
    fn values_are_held_to_the_limits_of_what_they_are_compared_with() {
        assert!(Condition::kind("card").is_ok());
        for name in ["", "Card", "cards", "card "] {
            assert!(Condition::kind(name).is_err(), "{name}");
        }

        assert!(Condition::fingerprint("a").is_ok());
        assert!(Condition::fingerprint(&"a".repeat(100)).is_ok());
        for text in ["", "a b", "a-b", "é", &"a".repeat(101)] {
            assert!(Condition::fingerprint(text).is_err(), "{text}");
        }

        let (key, value) = ("é".repeat(200), "é".repeat(1_000));
        let entries = [
            (&*key, &*value, true),
            ("k", "", true),
            ("", "v", false),
            (&*format!("{key}k"), "v", false),
            ("k", &*format!("{value}v"), false),
            ("k\0", "v", false),
            ("k", "\0", false),
        ];
        for (key, value, fits) in entries {
            let condition = Condition::metadata(key.to_owned(), value.to_owned());
            assert_eq!(condition.is_ok(), fits, "{key} {value}");
            let old = OldFilter::default().add_metadata(key, value);
            assert_eq!(old.is_ok(), fits, "{key} {value}");
        }
    }

    #[test]
    fn ids_need_not_exist_but_must_be_possible() {
        let mut filter = OldFilter::default();
        let longest = "é".repeat(400);

        for id in ["", "a\nb", "\0", &format!("{longest}a")] {
            assert!(filter.add_id(id.to_owned()).is_err(), "{id}");
        }
        assert_eq!(filter.ids, None);
        for id in ["a", "a b", &longest] {
            filter.add_id(id.to_owned()).unwrap();
        }
        assert_eq!(filter.ids.unwrap(), ["a", "a b", &longest]);
    }

    #[test]
    fn the_first_of_two_equal_keys_counts_whatever_their_case() {
        let mut filter = OldFilter::default();

        assert_eq!(filter.add_metadata("Kéy", "Ä"), Ok(true));
        assert_eq!(filter.add_metadata("kÉY", "other"), Ok(false));
        assert_eq!(filter.add_metadata("key", "v"), Ok(true));

        let expected = [("kéy", "ä"), ("key", "v")].map(|(k, v)| (k.to_owned(), v.to_owned()));
        assert_eq!(filter.metadata, expected);
    }
}
