//! The query string of a list: what is asked for and which page of it.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};

use super::page::SIZE_MAX;
use super::{Condition, Filter, OldFilter, Page};
use crate::access::Container;
use crate::api::{Broken, NumberedPage, Query};

const IDS_MAX: usize = 100;
/// No token has more entries, so a longer list could only find nothing.
const METADATA_MAX: usize = 50;

/// Reads the query string of the second version.
///
/// Unknown parameters are ignored. A parameter without a value is one with an empty value, which
/// only metadata and `start` may have: an empty filter must not widen a list to everything.
pub fn read(query: &str) -> Result<(Filter, Page), Vec<Broken>> {
    let mut given = Given::decode(query);
    if given.has("id") {
        let rule = "is not supported here: ask for the token itself, at /tokens/{id}";
        given.query.refuse("id", rule);
    }
    let container = given.query.once("container").and_then(|path| {
        let container = Container::parse(&path).map_err(|rule| rule.to_string());
        given.query.check("container", container)
    });
    let condition = given.condition();
    let size = given.query.number("size");
    let page = Page::new(size, given.query.once("start"));
    let filter = Filter {
        container,
        condition,
    };
    given.query.settle(filter, page)
}

/// Reads the query string of the first version. Unknown parameters are ignored, and so is `start`.
pub fn read_old(query: &str) -> Result<(OldFilter, NumberedPage), Vec<Broken>> {
    let mut given = Given::decode(query);
    let mut filter = OldFilter::default();
    for id in given.query.all("id") {
        let added = filter.add_id(id);
        given.query.check("id", added);
    }
    if filter.ids.as_ref().is_some_and(|ids| ids.len() > IDS_MAX) {
        given
            .query
            .refuse("id", format!("must be given at most {IDS_MAX} times"));
    }
    for (key, value) in std::mem::take(&mut given.metadata) {
        let added = filter.add_metadata(&key, &value);
        given.query.check("metadata", added);
        if filter.metadata.len() > METADATA_MAX {
            given.query.refuse(
                "metadata",
                format!("must have at most {METADATA_MAX} entries"),
            );
            break;
        }
    }
    let page = NumberedPage::new(
        given.query.number("page"),
        given.query.number("size"),
        SIZE_MAX,
    );
    given.query.settle(filter, page)
}

const KNOWN: [&str; 8] = [
    "container",
    "fingerprint",
    "id",
    "metadata",
    "page",
    "size",
    "start",
    "type",
];

/// The decoded parameters, metadata apart, and what is wrong with them.
struct Given {
    query: Query,
    metadata: Vec<(String, String)>,
}

impl Given {
    /// Metadata comes as `metadata.key=value`, `metadata[key]=value` and `metadata={"key":"value"}`.
    fn decode(query: &str) -> Self {
        let mut query = Query::decode(Some(query), &KNOWN);
        let mut metadata = Vec::new();
        let is_metadata = |name: &str| {
            let key = name.strip_prefix("metadata");
            key.is_some_and(|key| key.is_empty() || key.starts_with(['.', '[']))
        };
        for (name, value) in query.take(is_metadata) {
            let key = name.strip_prefix("metadata").unwrap_or_default();
            if key.is_empty() {
                match serde_json::from_str::<Entries>(&value) {
                    Ok(Entries(entries)) => metadata.extend(entries),
                    Err(_) => query.refuse("metadata", "must be a JSON object of strings"),
                }
            } else if let Some(key) = key.strip_prefix('.') {
                metadata.push((key.to_owned(), value));
            } else {
                match key.strip_prefix('[').and_then(|key| key.strip_suffix(']')) {
                    Some(key) => metadata.push((key.to_owned(), value)),
                    None => query.refuse("metadata", "must have its key in brackets"),
                }
            }
        }
        Self { query, metadata }
    }

    /// At most one of the conditions that exclude each other.
    fn condition(&mut self) -> Option<Condition> {
        let conditions = ["type", "fingerprint", "metadata"];
        let given: Vec<_> = conditions.into_iter().filter(|n| self.has(n)).collect();
        if given.len() > 1 {
            for name in given {
                self.query.refuse(
                    name,
                    "must be the only one of type, fingerprint and metadata",
                );
            }
        }
        if self.metadata.len() > 1 {
            self.query
                .refuse("metadata", "must be given at most once, with one key");
        }
        let kind = self.query.once("type").map(|name| Condition::kind(&name));
        let kind = kind.and_then(|kind| self.query.check("type", kind));
        let fingerprint = self.query.once("fingerprint");
        let fingerprint = fingerprint.map(|text| Condition::fingerprint(&text));
        let fingerprint = fingerprint.and_then(|text| self.query.check("fingerprint", text));
        let metadata = self.metadata.pop();
        let metadata = metadata.map(|(key, value)| Condition::metadata(key, value));
        let metadata = metadata.and_then(|entry| self.query.check("metadata", entry));
        kind.or(fingerprint).or(metadata)
    }

    fn has(&self, name: &str) -> bool {
        let is_metadata = name == "metadata" && !self.metadata.is_empty();
        is_metadata || self.query.has(name)
    }
}

/// The entries of a JSON object as they came, even the same key twice; a null entry is none.
struct Entries(Vec<(String, String)>);

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;

        impl<'de> Visitor<'de> for Collect {
            type Value = Entries;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of strings")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries, A::Error> {
                let mut entries = Vec::new();
                while let Some((key, value)) = map.next_entry::<String, Option<String>>()? {
                    entries.extend(value.map(|value| (key, value)));
                }
                Ok(Entries(entries))
            }
        }

        deserializer.deserialize_map(Collect)
    }
}

#[cfg(test)]
mod tests {
    use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
    use proptest::prelude::*;

    use super::super::filter::tests::{container, filters, metadata};
    use super::*;
    use crate::token_types::TokenKind;

    fn canonical(filter: &Filter) -> String {
        filter.canonical().expose().clone()
    }

    /// The names that are refused, each once, in alphabetical order.
    fn paths(broken: Vec<Broken>) -> String {
        let mut paths: Vec<_> = broken.into_iter().map(|broken| broken.path).collect();
        paths.sort();
        paths.dedup();
        paths.join(" ")
    }

    #[test]
    fn each_filter_of_the_second_version_is_read() {
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
            // Unknown parameters are ignored, however often they come.
            ("color=red&color=blue&page=0&Type=x&metadatax=1", None, None),
        ];
        for (query, container, condition) in cases {
            let expected = Filter {
                container,
                condition,
            };
            let (filter, page) = read(query).expect(query);
            assert_eq!(canonical(&filter), canonical(&expected), "{query}");
            assert_eq!(page, Page::new(None, None).unwrap(), "{query}");
        }
    }

    #[test]
    fn what_breaks_a_rule_of_the_second_version_is_named() {
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
            ("id=", "id"),
            // Values that cannot be, and empty ones.
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
            // Everything at once.
            (
                "container=x&type=x&size=x&id=x&color=%FF",
                "container id query size type",
            ),
        ];
        for (query, expected) in cases {
            assert_eq!(paths(read(query).expect_err(query)), expected, "{query}");
        }
        let long = format!("start={}&size=101", "a".repeat(501));
        assert_eq!(paths(read(&long).unwrap_err()), "size start");
    }

    #[test]
    fn failures_never_repeat_what_was_sent() {
        let queries = [
            "type=4242424242424242",
            "metadata.4242=%00",
            "metadata[4242=1",
            "4242=%FF",
            "container=4242",
            "size=4242&start=4242",
        ];
        for query in queries {
            let broken = read(query).expect_err(query);
            assert!(!format!("{broken:?}").contains("4242"), "{query}");
        }
    }

    #[test]
    fn a_page_of_the_second_version_has_size_and_start() {
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
            assert_eq!(read(query).unwrap().1, expected, "{query}");
        }
    }

    fn told(filter: &OldFilter) -> String {
        let ids = filter.ids.iter().flatten().map(|id| format!("id={id}"));
        let entries = filter.metadata.iter().map(|(k, v)| format!("{k}={v}"));
        ids.chain(entries).collect::<Vec<_>>().join(";")
    }

    #[test]
    fn each_filter_of_the_first_version_is_read() {
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
            let (filter, page) = read_old(query).expect(query);
            assert_eq!(told(&filter), expected, "{query}");
            assert_eq!((page.page, page.size), (number, size), "{query}");
        }
        let long = format!("start={}", "a".repeat(501));
        assert!(read_old(&long).is_ok());
    }

    #[test]
    fn what_breaks_a_rule_of_the_first_version_is_named() {
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
                paths(read_old(query).expect_err(query)),
                expected,
                "{query}"
            );
        }
    }

    #[test]
    fn the_first_version_takes_a_hundred_ids_and_fifty_entries() {
        let repeat = |name: &str, count: usize| {
            let pairs: Vec<_> = (0..count)
                .map(|n| name.replace('N', &n.to_string()))
                .collect();
            pairs.join("&")
        };

        assert!(read_old(&repeat("id=N", 100)).is_ok());
        let broken = read_old(&repeat("id=N", 101)).unwrap_err();
        assert_eq!(paths(broken), "id");
        assert!(read_old(&repeat("metadata.N=v", 50)).is_ok());
        let broken = read_old(&repeat("metadata.N=v", 51)).unwrap_err();
        assert_eq!(paths(broken), "metadata");
        assert!(read_old(&repeat("metadata.a=N", 51)).is_ok());
    }

    fn encode(text: &str) -> String {
        utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
    }

    /// The parameters of a filter, its metadata in one of the three spellings; a search of data
    /// has none.
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
        fn a_rendered_filter_reads_back(filter in filters(), spelling in 0_u8..3) {
            if let Some(query) = render(&filter, spelling) {
                let (read, _) = read(&query).unwrap();
                prop_assert_eq!(canonical(&read), canonical(&filter));
            }
        }

        #[test]
        fn reading_never_panics(
            query in prop_oneof![
                any::<String>(),
                "((metadata([.\\[]k?\\]?)?|id|type|size|%F0)=([0-9é+{}\":]|%[0-9A-F]{2}){0,4}&?){0,4}",
            ],
        ) {
            for broken in [read(&query).err(), read_old(&query).err()].into_iter().flatten() {
                prop_assert!(!broken.is_empty());
            }
        }
    }
}
