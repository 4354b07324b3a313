//! Tests of filter.

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

/// Filters that fit into a query of 200 characters, even fully escaped.
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
fn canonical_text_is_unambiguous() {
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
fn debug_output_hides_search_values() {
    let filter = Filter {
        container: None,
        condition: data("4242424242424242"),
    };
    assert!(!format!("{filter:?}").contains("4242"));
}

#[test]
fn filter_values_have_the_limits_of_stored_values() {
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
        let old = FilterV1::default().add_metadata(key, value);
        assert_eq!(old.is_ok(), fits, "{key} {value}");
    }
}

#[test]
fn ids_must_be_valid_but_need_not_exist() {
    let mut filter = FilterV1::default();
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
fn duplicate_metadata_keys_are_ignored_case_insensitively() {
    let mut filter = FilterV1::default();

    assert_eq!(filter.add_metadata("Kéy", "Ä"), Ok(true));
    assert_eq!(filter.add_metadata("kÉY", "other"), Ok(false));
    assert_eq!(filter.add_metadata("key", "v"), Ok(true));

    let expected = [("kéy", "ä"), ("key", "v")].map(|(k, v)| (k.to_owned(), v.to_owned()));
    assert_eq!(filter.metadata, expected);
}
