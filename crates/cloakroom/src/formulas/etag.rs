//! Entity tags for conditional requests (RFC 9110).

use cloakroom_crypto::content_digest;
use http::header::{IF_NONE_MATCH, InvalidHeaderValue};
use http::{HeaderMap, HeaderValue};

/// A strong entity tag: equal for equal bodies, on every node and in every version.
pub(super) struct EntityTag(pub(super) HeaderValue);

impl EntityTag {
    pub(super) fn of(body: &[u8]) -> Result<Self, InvalidHeaderValue> {
        let digest = hex::encode(content_digest(body));
        HeaderValue::try_from(format!("\"{digest}\"")).map(Self)
    }

    /// Whether `If-None-Match` contains this tag. The comparison is weak, as RFC 9110 requires for this header.
    pub(super) fn matches_any(&self, headers: &HeaderMap) -> bool {
        // Our tags contain no comma, so splitting a foreign tag at a comma cannot produce one of ours.
        let matches = |tag: &[u8]| {
            let tag = tag.trim_ascii();
            tag.strip_prefix(b"W/").unwrap_or(tag) == self.0.as_bytes()
        };
        let mut given = headers.get_all(IF_NONE_MATCH).iter();
        given.any(|value| {
            let value = value.as_bytes().trim_ascii();
            value == b"*" || value.split(|byte| *byte == b',').any(matches)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn if_none_match_accepts_every_form_of_a_tag() {
        let tag = EntityTag::of(b"body").unwrap();
        let ours = tag.0.to_str().unwrap();
        let bare = ours.trim_matches('"');
        let cases = [
            (vec![], false),
            (vec![ours.to_owned()], true),
            (vec![format!("W/{ours}")], true),
            (vec![format!("\"a\" ,W/\"b\",, {ours} ")], true),
            (vec!["\"a\"".to_owned(), ours.to_owned()], true),
            (vec!["*".to_owned()], true),
            (vec![" * ".to_owned()], true),
            (vec!["\"*\"".to_owned()], false),
            (vec![bare.to_owned()], false),
            (vec![format!("w/{ours}")], false),
            (vec![format!("\"a,{bare}\"")], false),
            (vec![ours.to_uppercase()], false),
            (vec!["\"a\"".to_owned()], false),
            (vec![String::new()], false),
        ];
        for (given, expected) in cases {
            let header = |value: &String| (IF_NONE_MATCH, HeaderValue::try_from(value).unwrap());
            let mut headers = HeaderMap::new();
            for (name, value) in given.iter().map(header) {
                headers.append(name, value);
            }
            assert_eq!(tag.matches_any(&headers), expected, "{given:?}");
        }
    }

    #[test]
    fn equal_bodies_have_equal_tags() {
        let tag = |body: &[u8]| EntityTag::of(body).unwrap().0;
        assert_eq!(tag(b"one"), tag(b"one"));
        assert_ne!(tag(b"one"), tag(b"other"));
    }
}
