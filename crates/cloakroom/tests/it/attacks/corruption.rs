//! Ways to corrupt a valid body.

use cloakroom_testkit::SeededRng;
use http::{HeaderName, HeaderValue, header};
use serde_json::{Value, json};

use super::place::{add_members, places, put, put_at};
use super::text;

/// A request body with its media type and headers.
pub(super) struct RequestBody {
    pub(super) bytes: Vec<u8>,
    /// Replaces the media type of the route.
    pub(super) media: Option<&'static str>,
    pub(super) headers: Vec<(HeaderName, HeaderValue)>,
}

/// A way to corrupt bodies.
pub(super) struct Corruption {
    pub(super) name: &'static str,
    /// Whether routes that read JSON must reject every such body.
    pub(super) is_fatal: bool,
    pub(super) apply: fn(&mut SeededRng, &Value, &str) -> RequestBody,
}

const fn fatal(
    name: &'static str,
    apply: fn(&mut SeededRng, &Value, &str) -> RequestBody,
) -> Corruption {
    Corruption {
        name,
        is_fatal: true,
        apply,
    }
}

const fn tolerated(
    name: &'static str,
    apply: fn(&mut SeededRng, &Value, &str) -> RequestBody,
) -> Corruption {
    Corruption {
        name,
        is_fatal: false,
        apply,
    }
}

/// All corruptions; each may insert the canary.
pub(super) const CORRUPTIONS: &[Corruption] = &[
    fatal("truncated", |chance, body, _| {
        let text = body.to_string();
        // Never empty: some routes accept an empty body as an empty object.
        let end = 1 + chance.below(text.len() - 1);
        RequestBody {
            bytes: text.as_bytes()[..end].to_vec(),
            ..with_text(String::new())
        }
    }),
    fatal("two documents", |_, body, canary| {
        with_text(format!("{body}{{\"a\":\"{canary}\"}}"))
    }),
    tolerated("another type", |chance, body, canary| {
        let quoted = format!("\"{canary}\"");
        let listed = format!("[{canary},\"{canary}\"]");
        let inside = format!("{{\"a\":{{\"b\":\"{canary}\"}}}}");
        let others = [
            "null", "true", "0", canary, &quoted, &listed, &inside, "[]", "{}", "[[[]]]",
        ];
        let other = (*chance.pick(&others)).to_owned();
        with_text(put(chance, body, &other))
    }),
    fatal("nested too deep", |chance, body, _| {
        let levels = 33 + chance.below(40_000);
        let deep = match chance.below(3) {
            0 => format!("{}{}", "[".repeat(levels), "]".repeat(levels)),
            1 => format!("{}1{}", "{\"a\":".repeat(levels), "}".repeat(levels)),
            _ => "[".repeat(levels),
        };
        with_text(put(chance, body, &deep))
    }),
    fatal("a number too long", |chance, body, canary| {
        let zeros = "0".repeat(65 + chance.below(100_000));
        let number = match chance.below(3) {
            0 => format!("{canary}{zeros}"),
            1 => format!("1e{zeros}9"),
            _ => format!("0.{zeros}1"),
        };
        with_text(put(chance, body, &number))
    }),
    tolerated("a number too large", |chance, body, _| {
        let numbers = [
            "1e308",
            "-1e400",
            "1e-999999999",
            "18446744073709551616",
            "-9223372036854775809",
            "1.7976931348623159e308",
            "-0",
            "1e2147483648",
            "2147483648",
            "0.1e1",
        ];
        let number = *chance.pick(&numbers);
        with_text(put(chance, body, number))
    }),
    fatal("duplicate member", |chance, body, canary| {
        with_text(add_members(
            chance,
            body,
            &format!("\"a\":\"{canary}\",\"\\u0061\":1"),
        ))
    }),
    fatal("invalid UTF-8", |chance, body, canary| {
        let endings: [&[u8]; 7] = [
            b"\xff",
            b"\xc0\xaf",
            b"\xed\xa0\x80",
            b"\xf4\x90\x80\x80",
            b"\xe2\x82",
            b"\x80",
            b"\xf8\x88\x80\x80\x80",
        ];
        let ending = *chance.pick(&endings);
        let text = put(chance, body, &format!("\"{canary}@\""));
        let at = text.find('@').unwrap();
        let bytes = [&text.as_bytes()[..at], ending, &text.as_bytes()[at + 1..]].concat();
        RequestBody {
            bytes,
            ..with_text(String::new())
        }
    }),
    fatal("lone surrogate", |chance, body, canary| {
        let halves = [
            "\\ud800",
            "\\udfff",
            "\\ud800\\ud800",
            "\\udc00\\ud800",
            "\\uD83D x",
        ];
        let half = *chance.pick(&halves);
        with_text(put(chance, body, &format!("\"{canary}{half}\"")))
    }),
    tolerated("NUL", |chance, body, canary| {
        with_text(put(chance, body, &format!("\"{canary}\\u0000\"")))
    }),
    fatal("a bare control character", |chance, body, canary| {
        let control = *chance.pick(&['\0', '\n', '\u{1f}', '\t']);
        with_text(put(chance, body, &format!("\"{canary}{control}\"")))
    }),
    tolerated("a huge text", |chance, body, canary| {
        let length = 1 << (10 + chance.below(11));
        with_text(put(
            chance,
            body,
            &format!("\"{canary}{}\"", "x".repeat(length)),
        ))
    }),
    fatal("many members", |chance, body, canary| {
        let count = 1_001 + chance.below(20_000);
        let members: Vec<String> = (0..count).map(|n| format!("\"{canary}{n}\":{n}")).collect();
        with_text(add_members(chance, body, &members.join(",")))
    }),
    fatal("many values", |chance, body, canary| {
        let count = 10_001 + chance.below(100_000);
        let values = format!("[{canary}{}]", ",1".repeat(count));
        with_text(put(chance, body, &values))
    }),
    tolerated("an array of all members", |_, body, _| {
        let members = body
            .as_object()
            .map(|it| it.values().cloned().collect::<Vec<_>>());
        with_text(json!(members.unwrap_or_else(|| vec![body.clone()])).to_string())
    }),
    tolerated("unknown enum value", |chance, body, _| {
        let oddity = json!(text::oddity(chance)).to_string();
        with_text(put(chance, body, &oddity))
    }),
    tolerated("an unknown member", |chance, body, canary| {
        let members = format!("\"{canary}\":{{\"{canary}\":[\"{canary}\"]}}");
        with_text(add_members(chance, body, &members))
    }),
    tolerated("a template bomb", |chance, body, _| {
        let bomb = text::template_bomb(chance);
        with_text(insert_expression(chance, body, &bomb))
    }),
    tolerated("a pattern bomb", |chance, body, _| {
        let bomb = text::pattern_bomb(chance);
        with_text(insert_expression(chance, body, &bomb))
    }),
    tolerated("invalid JWE", |chance, body, _| {
        let jwe = json!(text::jwe(chance)).to_string();
        match chance.below(2) {
            0 => with_text(put(chance, body, &jwe)),
            _ => with_text(add_members(chance, body, &format!("\"encrypted\":{jwe}"))),
        }
    }),
    fatal("private parser markers", |chance, body, canary| {
        let marks = [
            "$serde_json::private::RawValue",
            "$serde_json::private::Number",
        ];
        let mark = *chance.pick(&marks);
        with_text(put(chance, body, &format!("{{\"{mark}\":\"{canary}\"}}")))
    }),
    tolerated("flipped bits", |chance, body, _| {
        let mut bytes = body.to_string().into_bytes();
        for _ in 0..=chance.below(4) {
            let at = chance.below(bytes.len());
            bytes[at] ^= 1 << chance.below(8);
        }
        RequestBody {
            bytes,
            ..with_text(String::new())
        }
    }),
    fatal("another media type", |chance, body, _| {
        let media = [
            "text/plain",
            "application/xml",
            "multipart/form-data; boundary=x",
            "a/b/c",
            "json",
            ";",
            "application/json-seq",
            "application/vnd.api; charset=json",
            "*/*",
        ];
        RequestBody {
            media: Some(*chance.pick(&media)),
            ..with_text(body.to_string())
        }
    }),
    fatal("compressed", |chance, body, _| {
        let codings = [
            "gzip",
            "br",
            "deflate, gzip",
            "zstd",
            "x-unknown",
            "identity, gzip",
        ];
        let coding = *chance.pick(&codings);
        let coding = HeaderValue::from_static(coding);
        let mut malformed = with_text(body.to_string());
        // A gzip header, so that a decompressor would not reject the body immediately.
        malformed
            .bytes
            .splice(0..0, *b"\x1f\x8b\x08\0\0\0\0\0\0\x03");
        malformed.headers.push((header::CONTENT_ENCODING, coding));
        malformed
    }),
    tolerated("odd headers", |chance, body, canary| {
        let mut malformed = with_text(body.to_string());
        for _ in 0..=chance.below(3) {
            malformed.headers.push(odd_header(chance, canary));
        }
        malformed
    }),
];

fn with_text(text: String) -> RequestBody {
    RequestBody {
        bytes: text.into_bytes(),
        media: None,
        headers: Vec::new(),
    }
}

/// Inserts an expression: into an attribute of a token, or at a random place of other bodies.
fn insert_expression(chance: &mut SeededRng, body: &Value, expression: &str) -> String {
    let mut body = body.clone();
    let expression = match chance.below(3) {
        0 => json!(expression),
        1 => json!([expression, expression, { "a": expression }]),
        _ => json!({ "number": expression, "name": { "name": expression } }),
    };
    if body.get("type").is_some() {
        let names = [
            "mask",
            "search_indexes",
            "fingerprint_expression",
            "id",
            "containers",
            "metadata",
        ];
        body[*chance.pick(&names)] = expression;
        return body.to_string();
    }
    let places = places(&body);
    let place: &String = chance.pick(&places);
    put_at(&body, place, &expression.to_string())
}

fn odd_header(chance: &mut SeededRng, canary: &str) -> (HeaderName, HeaderValue) {
    let long = "x".repeat(1 + chance.below(9_000));
    let headers = [
        ("bt-idempotency-key", canary.to_owned()),
        ("bt-idempotency-key", long.clone()),
        ("bt-trace-id", canary.to_owned()),
        ("bt-trace-id", long.clone()),
        ("accept", "text/html;q=0.000001, */*;q=nan".to_owned()),
        ("accept-encoding", "gzip, br, zstd".to_owned()),
        ("content-type", "application/xml".to_owned()),
        ("content-language", long.clone()),
        (
            "x-forwarded-for",
            "1.2.3.4, ::1, unknown, _x, 999.1.1.1".to_owned(),
        ),
        ("forwarded", "for=\"[::1\";;;by=".to_owned()),
        (
            "traceparent",
            "00-ffffffffffffffffffffffffffffffff-ffffffffffffffff-zz".to_owned(),
        ),
        ("if-match", canary.to_owned()),
        ("range", "bytes=0-,-1,999999999999-".to_owned()),
        ("authorization", format!("Basic {long}")),
        ("cookie", format!("a={long}; a=; ;;=")),
        ("origin", "null".to_owned()),
        ("x-http-method-override", "DELETE".to_owned()),
    ];
    let (name, value) = chance.pick(&headers).clone();
    let mut bytes = value.into_bytes();
    if chance.one_in(4) {
        bytes.extend(b"\xff\x80");
    }
    (
        HeaderName::from_static(name),
        HeaderValue::from_bytes(&bytes).unwrap(),
    )
}
