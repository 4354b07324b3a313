//! The kind of a request body, which decides how values are inserted into it.

use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ContentKind {
    /// Values keep their JSON types.
    Json,
    /// Values are percent-encoded.
    Form,
    /// Values are escaped.
    Xml,
    /// Values are inserted as they are, and must not contain line breaks.
    Multipart,
    /// Values are inserted as they are.
    Text,
    /// No content type: JSON if the body is JSON, otherwise text.
    Undeclared,
    /// Compressed or binary; sent as it is.
    Binary,
}

impl ContentKind {
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let is_identity = |coding: &[u8]| coding.eq_ignore_ascii_case(b"identity");
        let codings = headers.get_all(CONTENT_ENCODING).iter();
        if codings.map(|it| it.as_bytes()).any(|it| !is_identity(it)) {
            return Self::Binary;
        }
        let Some(value) = headers.get(CONTENT_TYPE) else {
            return Self::Undeclared;
        };
        let value = value.to_str().unwrap_or_default();
        let media = value.split(';').next().unwrap_or_default();
        Self::of_media_type(&media.trim().to_ascii_lowercase())
    }

    fn of_media_type(media: &str) -> Self {
        let (kind, subtype) = media.split_once('/').unwrap_or((media, ""));
        match (kind, subtype) {
            (_, "json") => Self::Json,
            ("application", "x-www-form-urlencoded") => Self::Form,
            ("application" | "text", "xml") => Self::Xml,
            (_, subtype) if subtype.ends_with("+json") => Self::Json,
            (_, subtype) if subtype.ends_with("+xml") => Self::Xml,
            ("multipart", _) => Self::Multipart,
            ("image" | "audio" | "video" | "font" | "model", _) => Self::Binary,
            (
                "application",
                "octet-stream" | "pdf" | "zip" | "gzip" | "x-gzip" | "x-tar" | "wasm"
                | "vnd.ms-excel",
            ) => Self::Binary,
            ("application", subtype) if subtype.starts_with("vnd.openxmlformats") => Self::Binary,
            _ => Self::Text,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ContentKind::*;
    use super::*;

    #[test]
    fn the_content_type_decides_the_kind() {
        for (media, expected) in [
            ("application/json", Json),
            ("Application/JSON; charset=utf-8", Json),
            ("application/vnd.api+json", Json),
            ("text/json", Json),
            ("application/x-www-form-urlencoded", Form),
            ("application/xml", Xml),
            ("text/xml; charset=utf-8", Xml),
            ("application/soap+xml", Xml),
            ("image/svg+xml", Xml),
            ("multipart/form-data; boundary=x", Multipart),
            ("text/plain", Text),
            ("application/graphql", Text),
            ("image/png", Binary),
            ("application/octet-stream", Binary),
            ("", Text),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_TYPE, media.parse().unwrap());
            assert_eq!(ContentKind::of(&headers), expected, "{media}");
            headers.insert(CONTENT_ENCODING, "gzip".parse().unwrap());
            assert_eq!(ContentKind::of(&headers), Binary, "{media}");
            headers.insert(CONTENT_ENCODING, "Identity".parse().unwrap());
            assert_eq!(ContentKind::of(&headers), expected, "{media}");
        }
        assert_eq!(ContentKind::of(&HeaderMap::new()), Undeclared);
    }
}
