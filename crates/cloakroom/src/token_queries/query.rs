//! The query of a search: `field:value` terms joined by `AND`.
//!
//! ```text
//! query = term *( 1*SP "AND" 1*SP term )
//! term  = field ":" value
//! field = "container" / "type" / "fingerprint" / "data" / "id" / "metadata." key
//! key   = 1*( any character except ":" SP DQUOTE, or "\" and any character )
//! value = DQUOTE *( any character except DQUOTE and "\", or "\" and any character ) DQUOTE
//!       / 1*( any character except SP DQUOTE ( ) [ ] { } * ?, or "\" and any character )
//! ```

use cloakroom_crypto::Sensitive;

use super::{Condition, Filter, OldFilter};
use crate::access::Container;
use crate::api::Broken;

const CHARS_MAX: usize = 200;

const SUPPORTED: &str = "must be one term `field:value`, or one term `AND` one container term; the \
    fields are container, type, fingerprint, metadata.KEY and data; a value with spaces or special \
    characters stands in double quotes; OR, NOT, parentheses, ranges and wildcards are not supported";
const SUPPORTED_OLD: &str = "must be one term `field:value`, or metadata terms with different keys \
    joined by `AND`; the fields are id, metadata.KEY and data; a value with spaces or special \
    characters stands in double quotes; OR, NOT, parentheses, ranges and wildcards are not supported";

/// Reads a query of the second version. An absent or blank one asks for everything.
pub fn parse(query: Option<&str>) -> Result<Filter, Broken> {
    let mut filter = Filter::default();
    for term in terms(query.unwrap_or_default(), SUPPORTED)? {
        add(&mut filter, term).map_err(broken)?;
    }
    Ok(filter)
}

/// Reads a query of the first version. An absent or blank one asks for everything.
pub fn parse_old(query: Option<&str>) -> Result<OldFilter, Broken> {
    let mut filter = OldFilter::default();
    for term in terms(query.unwrap_or_default(), SUPPORTED_OLD)? {
        add_old(&mut filter, term).map_err(broken)?;
    }
    Ok(filter)
}

/// Whether a query of the first version was refused because such queries are not supported.
pub fn is_complex(broken: &Broken) -> bool {
    broken.rule == SUPPORTED_OLD
}

fn add(filter: &mut Filter, term: Term) -> Result<(), String> {
    let Term { field, value } = term;
    let is_first = match field {
        Field::Container => {
            let container = Container::parse(value.expose()).map_err(|rule| rule.to_string())?;
            filter.container.replace(container).is_none()
        }
        Field::Kind => replace(filter, Condition::kind(value.expose())?),
        Field::Fingerprint => replace(filter, Condition::fingerprint(value.expose())?),
        Field::Metadata(key) => replace(filter, Condition::metadata(key, value.into_inner())?),
        Field::Data => replace(filter, Condition::Data(value)),
        Field::Id => false,
    };
    is_first.then_some(()).ok_or_else(|| SUPPORTED.to_owned())
}

/// True when there was no condition before.
fn replace(filter: &mut Filter, condition: Condition) -> bool {
    filter.condition.replace(condition).is_none()
}

fn add_old(filter: &mut OldFilter, term: Term) -> Result<(), String> {
    let Term { field, value } = term;
    let joins_metadata = filter.ids.is_none() && filter.data.is_none();
    let is_first = joins_metadata && filter.metadata.is_empty();
    let is_supported = match field {
        Field::Metadata(key) if joins_metadata => filter.add_metadata(&key, value.expose())?,
        Field::Id if is_first => filter.add_id(value.into_inner()).map(|()| true)?,
        Field::Data if is_first => filter.data.replace(value).is_none(),
        _ => false,
    };
    is_supported
        .then_some(())
        .ok_or_else(|| SUPPORTED_OLD.to_owned())
}

fn broken(rule: impl Into<String>) -> Broken {
    Broken::new("query", rule)
}

struct Term {
    field: Field,
    value: Sensitive<String>,
}

enum Field {
    Container,
    Kind,
    Fingerprint,
    Data,
    Id,
    Metadata(String),
}

fn terms(query: &str, supported: &str) -> Result<Vec<Term>, Broken> {
    if query.chars().count() > CHARS_MAX {
        return Err(broken(format!("must be at most {CHARS_MAX} characters")));
    }
    if query.trim().is_empty() {
        return Ok(Vec::new());
    }
    read_terms(query).ok_or_else(|| broken(supported))
}

/// Spaces around the whole query do not count.
fn read_terms(query: &str) -> Option<Vec<Term>> {
    let mut terms = Vec::new();
    let mut rest = query.trim_start_matches(' ');
    loop {
        let (term, after) = read_term(rest)?;
        terms.push(term);
        if after.is_empty() {
            return Some(terms);
        }
        let next = after.strip_prefix(' ')?.trim_start_matches(' ');
        if next.is_empty() {
            return Some(terms);
        }
        rest = next.strip_prefix("AND ")?.trim_start_matches(' ');
    }
}

fn read_term(text: &str) -> Option<(Term, &str)> {
    let (field, rest) = read_field(text)?;
    let (value, rest) = read_value(rest)?;
    Some((Term { field, value }, rest))
}

/// Reads up to the first unescaped colon, and past it.
fn read_field(text: &str) -> Option<(Field, &str)> {
    if let Some(rest) = text.strip_prefix("metadata.") {
        let (key, rest) = read_until(rest, |c| matches!(c, ':' | ' ' | '"'))?;
        let is_key = !key.expose().is_empty();
        return is_key.then_some((Field::Metadata(key.into_inner()), rest.strip_prefix(':')?));
    }
    let (name, rest) = text.split_once(':')?;
    let field = match name {
        "container" => Field::Container,
        "type" => Field::Kind,
        "fingerprint" => Field::Fingerprint,
        "data" => Field::Data,
        "id" => Field::Id,
        _ => return None,
    };
    Some((field, rest))
}

fn read_value(text: &str) -> Option<(Sensitive<String>, &str)> {
    if let Some(quoted) = text.strip_prefix('"') {
        let (value, rest) = read_until(quoted, |c| c == '"')?;
        return Some((value, rest.strip_prefix('"')?));
    }
    let is_special = |c| " \"()[]{}*?".contains(c);
    read_until(text, is_special).filter(|(value, _)| !value.expose().is_empty())
}

/// Takes the escapes out of everything before an unescaped end, or before the end of the text.
fn read_until(text: &str, is_end: impl Fn(char) -> bool) -> Option<(Sensitive<String>, &str)> {
    let mut read = Sensitive::new(String::with_capacity(text.len()));
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' => read.expose_mut().push(characters.next()?.1),
            end if is_end(end) => return Some((read, &text[at..])),
            other => read.expose_mut().push(other),
        }
    }
    Some((read, ""))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::filter::tests::{container, data, filters, metadata};
    use super::*;
    use crate::token_types::TokenKind;

    fn canonical(filter: &Filter) -> String {
        filter.canonical().expose().clone()
    }

    fn assert_reads(query: &str, container: Option<Container>, condition: Option<Condition>) {
        let expected = Filter {
            container,
            condition,
        };
        let read = parse(Some(query)).unwrap_or_else(|_| panic!("{query} is refused"));
        assert_eq!(canonical(&read), canonical(&expected), "{query}");
    }

    #[test]
    fn every_field_is_a_condition_of_its_own() {
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
    fn escapes_and_quotes_make_any_value_and_key() {
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
    fn a_container_joins_any_one_term_in_either_order() {
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
    fn without_a_query_everything_is_asked_for() {
        for query in [None, Some(""), Some("   "), Some("\t\n")] {
            assert_eq!(canonical(&parse(query).unwrap()), "");
            assert_eq!(told(&parse_old(query).unwrap()), "");
        }
    }

    /// Refused by both versions, because of how they are written.
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
    fn what_is_not_in_the_grammar_is_refused_with_what_is() {
        for query in MALFORMED {
            let new = parse(Some(query)).err();
            assert_eq!(new, Some(broken(SUPPORTED)), "{query}");
            let old = parse_old(Some(query)).err();
            assert_eq!(old, Some(broken(SUPPORTED_OLD)), "{query}");
        }
    }

    #[test]
    fn other_combinations_and_the_fields_of_the_first_version_are_refused() {
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
    fn values_that_cannot_be_are_refused_without_being_repeated() {
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
    fn a_query_has_at_most_two_hundred_characters() {
        let longest = format!("data:{}", "é".repeat(195));
        let too_long = format!("{longest}e");

        assert!(parse(Some(&longest)).is_ok());
        assert!(parse_old(Some(&longest)).is_ok());
        let expected = Some(broken("must be at most 200 characters"));
        assert_eq!(parse(Some(&too_long)).err(), expected);
        assert_eq!(parse_old(Some(&too_long)).err(), expected);
        assert_eq!(parse(Some(&" ".repeat(201))).err(), expected);
    }

    fn told(filter: &OldFilter) -> String {
        let ids = filter.ids.iter().flatten().map(|id| format!("id={id}"));
        let entries = filter.metadata.iter().map(|(k, v)| format!("{k}={v}"));
        let data = filter.data.iter().map(|v| format!("data={}", v.expose()));
        ids.chain(entries).chain(data).collect::<Vec<_>>().join(";")
    }

    #[test]
    fn the_first_version_takes_one_term_or_several_metadata_terms() {
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
                Some(expected) => assert_eq!(told(&read.unwrap()), expected, "{query}"),
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
        fn a_rendered_filter_reads_back(
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
        fn reading_never_panics(
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
}
