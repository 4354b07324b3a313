//! Tests of query.

use proptest::prelude::*;

use super::super::filter::tests::{container, data, filters, metadata};
use super::*;
use crate::types::TokenKind;

fn canonical(filter: &Filter) -> String {
    filter.canonical().expose().clone()
}

fn assert_reads(query: &str, container: Option<Container>, condition: Option<Condition>) {
    let expected = Filter {
        container,
        condition,
    };
    let read = parse(Some(query)).unwrap_or_else(|_| panic!("{query} is rejected"));
    assert_eq!(canonical(&read), canonical(&expected), "{query}");
}

#[test]
fn each_field_is_parsed() {
    let card = || Some(Condition::Kind(TokenKind::Card));
    let cases = [
        (r#"container:"/pci/""#, container("/pci/"), None),
        ("container:/PCI/high/", container("/pci/high/"), None),
        ("container:/", container("/"), None),
        ("type:card", None, card()),
        (r#"type:"card""#, None, card()),
        ("  type:card  ", None, card()),
        (
            "fingerprint:AKCUabc1",
            None,
            Some(Condition::Fingerprint("AKCUabc1".into())),
        ),
        ("metadata.Key:Value", None, metadata("Key", "Value")),
        (r#"metadata.k:"""#, None, metadata("k", "")),
        ("metadata.a.b:v", None, metadata("a.b", "v")),
        ("metadata.(k):v", None, metadata("(k)", "v")),
        ("data:4242", None, data("4242")),
        (r#"data:"Sensitive Value""#, None, data("Sensitive Value")),
        (r#"data:"""#, None, data("")),
        ("data:AND", None, data("AND")),
        ("data:-5", None, data("-5")),
    ];
    for (query, container, condition) in cases {
        assert_reads(query, container, condition);
    }
}

#[test]
fn escapes_and_quotes_allow_any_value_and_key() {
    let cases = [
        // The first unescaped colon splits; later ones belong to the value.
        ("data:a:b:c", None, data("a:b:c")),
        (r"metadata.a\:b:c:d", None, metadata("a:b", "c:d")),
        (r"metadata.a\ b:c", None, metadata("a b", "c")),
        (r#"metadata.a\"\\:c"#, None, metadata("a\"\\", "c")),
        (r#"data:"a \"b\" \\ c""#, None, data(r#"a "b" \ c"#)),
        (r#"data:"*?()[]{}: OR NOT""#, None, data("*?()[]{}: OR NOT")),
        (r"data:\*\?\(\)\[\]\{\}\ \x", None, data("*?()[]{} x")),
        (r"data:a\ ", None, data("a ")),
        (
            r#"data:"a AND b" AND container:/x/"#,
            container("/x/"),
            data("a AND b"),
        ),
    ];
    for (query, container, condition) in cases {
        assert_reads(query, container, condition);
    }
}

#[test]
fn a_container_combines_with_any_term_in_either_order() {
    let terms = ["type:card", "fingerprint:ab", "metadata.k:v", r#"data:"x""#];
    for term in terms {
        let alone = parse(Some(term)).unwrap();
        let expected = Filter {
            container: container("/pci/"),
            condition: alone.condition,
        };
        let joined = [
            format!(r#"{term} AND container:"/pci/""#),
            format!(r#"container:"/pci/" AND {term}"#),
            format!(r#"  container:/pci/   AND   {term} "#),
        ];
        for query in joined {
            let read = parse(Some(&query)).unwrap();
            assert_eq!(canonical(&read), canonical(&expected), "{query}");
        }
    }
}

#[test]
fn an_empty_query_matches_all_tokens() {
    for query in [None, Some(""), Some("   "), Some("\t\n")] {
        assert_eq!(canonical(&parse(query).unwrap()), "");
        assert_eq!(describe(&parse_old(query).unwrap()), "");
    }
}

/// Syntax errors in both versions.
const MALFORMED: [&str; 48] = [
    "card",
    r#""card""#,
    ":card",
    "data",
    "data:",
    "data: x",
    "data :x",
    "DATA:x",
    "color:red",
    "metadata:x",
    "metadata.:x",
    "metadata.k",
    "metadata.k:",
    r#"metadata."k":v"#,
    "metadata.a b:v",
    "Metadata.k:v",
    "data:x OR data:y",
    "data:x || data:y",
    "data:x && metadata.k:v",
    "NOT data:x",
    "data:x AND NOT metadata.k:v",
    "-data:x",
    "!data:x",
    "+data:x",
    "(data:x)",
    "data:(x)",
    "data:x)",
    "data:[a TO b]",
    "data:{a TO b}",
    "data:x*",
    "data:?x",
    "data:*",
    "*:*",
    "data:x y",
    "data:x metadata.k:v",
    "metadata.a:x and metadata.b:y",
    "metadata.a:x And metadata.b:y",
    "metadata.a:x AND",
    "metadata.a:x AND ",
    "AND metadata.a:x",
    "metadata.a:x AND AND metadata.b:y",
    "metadata.a:x ANDmetadata.b:y",
    r#"metadata.a:"x"AND metadata.b:y"#,
    r#"data:"x"#,
    r#"data:"x"y"#,
    r#"data:x"y""#,
    r"data:x\",
    r#"data:"x\"#,
];

#[test]
fn malformed_queries_are_rejected_with_the_supported_syntax() {
    for query in MALFORMED {
        let new = parse(Some(query)).err();
        assert_eq!(new, Some(broken(SUPPORTED)), "{query}");
        let old = parse_old(Some(query)).err();
        assert_eq!(old, Some(broken(SUPPORTED_OLD)), "{query}");
    }
}

#[test]
fn unsupported_combinations_and_v1_fields_are_rejected() {
    let queries = [
        "id:abc",
        "id:abc AND container:/x/",
        "type:card AND fingerprint:ab",
        "type:card AND type:card",
        "data:x AND data:y",
        "data:x AND metadata.k:v",
        "metadata.a:x AND metadata.b:y",
        "container:/x/ AND container:/y/",
        "container:/x/ AND container:/x/",
        "container:/x/ AND type:card AND data:x",
        "type:card AND container:/x/ AND container:/y/",
    ];
    for query in queries {
        assert_eq!(parse(Some(query)).err(), Some(broken(SUPPORTED)), "{query}");
    }
}

#[test]
fn invalid_values_are_rejected_without_repeating_them() {
    let queries = [
        "type:4242424242424242",
        r#"type:"""#,
        "type:Card",
        "container:4242424242424242",
        r#"container:"/pci""#,
        "fingerprint:4242-4242",
        "metadata.k:4242\0",
        "data:4242 4242",
    ];
    for query in queries {
        let broken = parse(Some(query)).expect_err(query);
        assert_eq!(broken.path, "query");
        assert!(!broken.rule.contains("4242"), "{query}");
    }
}

#[test]
fn queries_have_at_most_200_characters() {
    let longest = format!("data:{}", "é".repeat(195));
    let too_long = format!("{longest}e");

    assert!(parse(Some(&longest)).is_ok());
    assert!(parse_old(Some(&longest)).is_ok());
    let expected = Some(broken("must be at most 200 characters"));
    assert_eq!(parse(Some(&too_long)).err(), expected);
    assert_eq!(parse_old(Some(&too_long)).err(), expected);
    assert_eq!(parse(Some(&" ".repeat(201))).err(), expected);
}

fn describe(filter: &FilterV1) -> String {
    let ids = filter.ids.iter().flatten().map(|id| format!("id={id}"));
    let entries = filter.metadata.iter().map(|(k, v)| format!("{k}={v}"));
    let data = filter.data.iter().map(|v| format!("data={}", v.expose()));
    ids.chain(entries).chain(data).collect::<Vec<_>>().join(";")
}

#[test]
fn v1_accepts_one_term_or_several_metadata_terms() {
    let cases = [
        ("id:Abc", Some("id=Abc")),
        (r#"id:"a b""#, Some("id=a b")),
        ("data:X", Some("data=X")),
        ("metadata.Key:Value", Some("key=value")),
        ("metadata.a:1 AND metadata.b:2", Some("a=1;b=2")),
        (
            "metadata.a:1 AND metadata.b:2 AND metadata.c:3",
            Some("a=1;b=2;c=3"),
        ),
        ("metadata.a:1 AND metadata.a:2", None),
        ("metadata.a:1 AND metadata.A:1", None),
        ("id:a AND id:b", None),
        ("id:a AND data:x", None),
        ("data:x AND data:y", None),
        ("id:a AND metadata.a:1", None),
        ("metadata.a:1 AND id:a", None),
        ("data:x AND metadata.a:1", None),
        ("metadata.a:1 AND data:x", None),
        ("container:/x/", None),
        ("type:card", None),
        ("fingerprint:ab", None),
        ("data:x AND container:/x/", None),
    ];
    for (query, expected) in cases {
        let read = parse_old(Some(query));
        match expected {
            Some(expected) => assert_eq!(describe(&read.unwrap()), expected, "{query}"),
            None => assert_eq!(read.err(), Some(broken(SUPPORTED_OLD)), "{query}"),
        }
    }
    assert!(parse_old(Some(r#"id:"""#)).is_err());
}

fn quoted(value: &str) -> String {
    format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""))
}

fn escaped(text: &str) -> String {
    text.chars().flat_map(|c| ['\\', c]).collect()
}

fn render(filter: &Filter, bare: bool) -> Vec<String> {
    let value = |text: &str| match bare && !text.is_empty() {
        true => escaped(text),
        false => quoted(text),
    };
    let condition = filter.condition.as_ref().map(|condition| match condition {
        Condition::Kind(kind) => format!("type:{}", value(kind.name())),
        Condition::Fingerprint(text) => format!("fingerprint:{}", value(text)),
        Condition::Metadata { key, value: text } => {
            format!("metadata.{}:{}", escaped(key), value(text))
        }
        Condition::Data(text) => format!("data:{}", value(text.expose())),
    });
    let container = filter.container.as_ref();
    let container = container.map(|path| format!("container:{}", value(path.as_str())));
    container.into_iter().chain(condition).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn rendered_filters_round_trip(
        filter in filters(),
        bare in any::<bool>(),
        reversed in any::<bool>(),
    ) {
        let mut terms = render(&filter, bare);
        if reversed {
            terms.reverse();
        }
        let query = terms.join(" AND ");

        let read = parse(Some(&query));

        prop_assert_eq!(canonical(&read.unwrap()), canonical(&filter));
    }

    #[test]
    fn parsing_never_panics(
        query in prop_oneof![
            any::<String>(),
            "(metadata\\.[a\\\\]{1,2}|data|container):[a/é*\"\\\\ ]{0,4}( AND [a-d]{1,3}:\"?[é\\\\]{0,3})?",
        ],
    ) {
        for broken in [parse(Some(&query)).err(), parse_old(Some(&query)).err()].iter().flatten() {
            prop_assert_eq!(&broken.path, "query");
        }
    }
}
