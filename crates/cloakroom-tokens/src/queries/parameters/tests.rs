//! Tests of parameters.

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use proptest::prelude::*;

use super::super::filter::tests::{container, filters, metadata};
use super::*;
use crate::types::TokenKind;

fn canonical(filter: &Filter) -> String {
    filter.canonical().expose().clone()
}

/// The names of invalid parameters, sorted, without duplicates.
fn paths(broken: Vec<FieldError>) -> String {
    let mut paths: Vec<_> = broken.into_iter().map(|broken| broken.path).collect();
    paths.sort();
    paths.dedup();
    paths.join(" ")
}

#[test]
fn v2_filters_are_parsed() {
    let card = || Some(Condition::Kind(TokenKind::Card));
    let print = || Some(Condition::Fingerprint("AKCU1".to_owned()));
    let cases = [
        ("", None, None),
        ("&&", None, None),
        ("container=/pci/", container("/pci/"), None),
        ("container=%2FPCI%2Fhigh%2F", container("/pci/high/"), None),
        ("type=card", None, card()),
        ("%74ype=card", None, card()),
        ("fingerprint=AKCU1", None, print()),
        ("metadata.Key=Value", None, metadata("Key", "Value")),
        ("metadata[Key]=Value", None, metadata("Key", "Value")),
        ("metadata%5BKey%5D=Value", None, metadata("Key", "Value")),
        (
            "metadata=%7B%22Key%22%3A%22Value%22%7D",
            None,
            metadata("Key", "Value"),
        ),
        (r#"metadata={"a":null,"b":"v"}"#, None, metadata("b", "v")),
        ("metadata={}", None, None),
        ("metadata={}&type=card", None, card()),
        ("metadata.a+b=c%20d%2B", None, metadata("a b", "c d+")),
        ("metadata.a.b[c]=d=e", None, metadata("a.b[c]", "d=e")),
        ("metadata[a[0]]=v", None, metadata("a[0]", "v")),
        ("metadata.%C3%A9=%C3%BC", None, metadata("é", "ü")),
        ("metadata.k=", None, metadata("k", "")),
        ("metadata.k", None, metadata("k", "")),
        ("metadata.k=%zz%", None, metadata("k", "%zz%")),
        ("container=/a/&type=card", container("/a/"), card()),
        ("fingerprint=AKCU1&container=/a/", container("/a/"), print()),
        (
            "container=/a/&metadata[k]=v",
            container("/a/"),
            metadata("k", "v"),
        ),
        // Unknown parameters are ignored, also repeated ones.
        ("color=red&color=blue&Type=x&metadatax=1", None, None),
    ];
    for (query, container, condition) in cases {
        let expected = Filter {
            container,
            condition,
        };
        let (filter, page) = parse(query).expect(query);
        assert_eq!(canonical(&filter), canonical(&expected), "{query}");
        assert_eq!(page, Page::new(None, None).unwrap(), "{query}");
    }
}

#[test]
fn invalid_v2_parameters_are_reported() {
    let cases = [
        // Each parameter at most once.
        ("container=/a/&container=/a/", "container"),
        ("type=card&type=card", "type"),
        ("fingerprint=a&fingerprint=a", "fingerprint"),
        ("size=1&size=1", "size"),
        ("start=a&start=a", "start"),
        ("metadata.a=1&metadata.a=1", "metadata"),
        ("metadata.a=1&metadata[b]=2", "metadata"),
        (r#"metadata={"a":"1","b":"2"}"#, "metadata"),
        (r#"metadata={"a":"1","a":"1"}"#, "metadata"),
        (r#"metadata={"a":"1"}&metadata={"b":"1"}"#, "metadata"),
        // At most one of type, fingerprint and metadata.
        ("type=card&fingerprint=a", "fingerprint type"),
        ("type=card&metadata.a=1", "metadata type"),
        ("fingerprint=a&metadata[a]=1", "fingerprint metadata"),
        (
            "container=/a/&type=card&fingerprint=a&metadata.a=1",
            "fingerprint metadata type",
        ),
        ("id=abc", "id"),
        ("page=2", "page"),
        ("id=", "id"),
        // Invalid and empty values.
        ("container=", "container"),
        ("container", "container"),
        ("container=pci", "container"),
        ("type=", "type"),
        ("type=unknown", "type"),
        ("type=Card", "type"),
        ("fingerprint=", "fingerprint"),
        ("fingerprint=a-b", "fingerprint"),
        ("metadata=", "metadata"),
        ("metadata=null", "metadata"),
        ("metadata=[]", "metadata"),
        (r#"metadata={"a":1}"#, "metadata"),
        (r#"metadata={"a":{"b":"c"}}"#, "metadata"),
        (r#"metadata={"a":"b"} x"#, "metadata"),
        (r#"metadata={"$serde_json::private::Number":1}"#, "metadata"),
        ("metadata.=v", "metadata"),
        ("metadata[]=v", "metadata"),
        ("metadata[k=v", "metadata"),
        ("metadata.k=%00", "metadata"),
        ("size=", "size"),
        ("size=101", "size"),
        ("size=-1", "size"),
        ("size=1.0", "size"),
        ("size=x", "size"),
        ("size=99999999999999999999", "size"),
        // Malformed UTF-8.
        ("type=%FF", "type"),
        ("metadata.k=%C3", "metadata"),
        ("metadata.%C3=v", "query"),
        ("color=%FF", "query"),
        ("%FF=1", "query"),
        // Several errors at once.
        (
            "container=x&type=x&size=x&id=x&color=%FF",
            "container id query size type",
        ),
    ];
    for (query, expected) in cases {
        assert_eq!(paths(parse(query).expect_err(query)), expected, "{query}");
    }
    let long = format!("start={}&size=101", "a".repeat(501));
    assert_eq!(paths(parse(&long).unwrap_err()), "size start");
}

#[test]
fn errors_never_contain_the_input() {
    let queries = [
        "type=4242424242424242",
        "metadata.4242=%00",
        "metadata[4242=1",
        "4242=%FF",
        "container=4242",
        "size=4242&start=4242",
    ];
    for query in queries {
        let broken = parse(query).expect_err(query);
        assert!(!format!("{broken:?}").contains("4242"), "{query}");
    }
}

#[test]
fn v2_pages_have_size_and_start() {
    let longest = "a".repeat(500);
    let cases = [
        ("size=0", 0, None),
        ("size=100&start=abc", 100, Some("abc")),
        ("start=", 20, None),
        (&*format!("start={longest}"), 20, Some(&*longest)),
    ];
    for (query, size, start) in cases {
        let expected = Page {
            size,
            start: start.map(str::to_owned),
        };
        assert_eq!(parse(query).unwrap().1, expected, "{query}");
    }
}

fn describe(filter: &FilterV1) -> String {
    let ids = filter.ids.iter().flatten().map(|id| format!("id={id}"));
    let entries = filter.metadata.iter().map(|(k, v)| format!("{k}={v}"));
    ids.chain(entries).collect::<Vec<_>>().join(";")
}

#[test]
fn v1_filters_are_parsed() {
    let cases = [
        ("", "", (1, 20)),
        ("id=A&id=b%20c&id=A", "id=A;id=b c;id=A", (1, 20)),
        ("metadata.Key=Value", "key=value", (1, 20)),
        ("metadata[Key]=Value", "key=value", (1, 20)),
        (
            "metadata=%7B%22Key%22%3A%22Value%22%7D",
            "key=value",
            (1, 20),
        ),
        (
            r#"metadata.a=1&metadata[b]=2&metadata={"c":"3","d":"4"}"#,
            "a=1;b=2;c=3;d=4",
            (1, 20),
        ),
        ("metadata.a=1&metadata.a=2&metadata.A=3", "a=1", (1, 20)),
        (r#"metadata={"a":"1","A":"2"}"#, "a=1", (1, 20)),
        ("metadata.a=", "a=", (1, 20)),
        ("id=x&metadata.a=1", "id=x;a=1", (1, 20)),
        ("page=3&size=0", "", (3, 0)),
        ("page=2147483647&size=100", "", (2_147_483_647, 100)),
        ("start=x&start=y&color=red&type=x&container=x", "", (1, 20)),
    ];
    for (query, expected, (number, size)) in cases {
        let (filter, page) = parse_v1(query).expect(query);
        assert_eq!(describe(&filter), expected, "{query}");
        assert_eq!((page.page, page.size), (number, size), "{query}");
    }
    let long = format!("start={}", "a".repeat(501));
    assert!(parse_v1(&long).is_ok());
}

#[test]
fn invalid_v1_parameters_are_reported() {
    let cases = [
        ("id=", "id"),
        ("id=a&id=%0A", "id"),
        ("metadata.=v", "metadata"),
        ("metadata[k=v", "metadata"),
        (r#"metadata={"a":1}"#, "metadata"),
        ("page=0", "page"),
        ("page=", "page"),
        ("page=x", "page"),
        ("page=2147483648", "page"),
        ("page=1&page=1", "page"),
        ("size=101", "size"),
        ("size=1&size=1", "size"),
        ("page=0&size=x&id=&metadata.=v", "id metadata page size"),
        ("id=%FF", "id"),
    ];
    for (query, expected) in cases {
        assert_eq!(
            paths(parse_v1(query).expect_err(query)),
            expected,
            "{query}"
        );
    }
}

#[test]
fn v1_accepts_100_ids_and_50_metadata_entries() {
    let repeat = |name: &str, count: usize| {
        let pairs: Vec<_> = (0..count)
            .map(|n| name.replace('N', &n.to_string()))
            .collect();
        pairs.join("&")
    };

    assert!(parse_v1(&repeat("id=N", 100)).is_ok());
    let broken = parse_v1(&repeat("id=N", 101)).unwrap_err();
    assert_eq!(paths(broken), "id");
    assert!(parse_v1(&repeat("metadata.N=v", 50)).is_ok());
    let broken = parse_v1(&repeat("metadata.N=v", 51)).unwrap_err();
    assert_eq!(paths(broken), "metadata");
    assert!(parse_v1(&repeat("metadata.a=N", 51)).is_ok());
}

fn encode(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

/// The query string of a filter, with metadata in one of the three notations; `None` for a search by data.
fn render(filter: &Filter, spelling: u8) -> Option<String> {
    let container = filter.container.as_ref();
    let container = container.map(|path| format!("container={}", encode(path.as_str())));
    let condition = match &filter.condition {
        None => None,
        Some(Condition::Kind(kind)) => Some(format!("type={}", kind.name())),
        Some(Condition::Fingerprint(text)) => Some(format!("fingerprint={text}")),
        Some(Condition::Metadata { key, value }) => Some(match spelling {
            0 => format!("metadata.{}={}", encode(key), encode(value)),
            1 => format!("metadata[{}]={}", encode(key), encode(value)),
            _ => {
                let object = serde_json::json!({ key.as_str(): value });
                format!("metadata={}", encode(&object.to_string()))
            }
        }),
        Some(Condition::Data(_)) => return None,
    };
    let parts: Vec<_> = container.into_iter().chain(condition).collect();
    Some(parts.join("&"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn rendered_filters_round_trip(filter in filters(), spelling in 0_u8..3) {
        if let Some(query) = render(&filter, spelling) {
            let (parsed, _) = parse(&query).unwrap();
            prop_assert_eq!(canonical(&parsed), canonical(&filter));
        }
    }

    #[test]
    fn parsing_never_panics(
        query in prop_oneof![
            any::<String>(),
            "((metadata([.\\[]k?\\]?)?|id|type|size|%F0)=([0-9é+{}\":]|%[0-9A-F]{2}){0,4}&?){0,4}",
        ],
    ) {
        for broken in [parse(&query).err(), parse_v1(&query).err()].into_iter().flatten() {
            prop_assert!(!broken.is_empty());
        }
    }
}
