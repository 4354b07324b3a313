//! All parsers of untrusted input as functions of bytes, for fuzz targets and for the tests that
//! replay their corpus.
//!
//! Each function panics if a parser does, or if its result breaks an invariant. A new parser needs
//! a row of [`TARGETS`], a file in `fuzz/targets` and a folder in `fuzz/corpus`.

use std::net::IpAddr;

use cloakroom_core::access::{Container, KeyParts, LegacyKey, TenantKind, TenantSettings};
use cloakroom_crypto::Sensitive;
use cloakroom_emv3ds::{Message, MessageKind, RangeTable, Version, base64url};
use cloakroom_expressions::{Context, Document, Mask, OUTPUT_BYTES_MAX, Scope, Sources, Template};
use cloakroom_platform::api::{
    ClientAddr, Expiry, Object, Query, merge_patch, network_of, read_json,
};
use cloakroom_platform::card_numbers::{card_numbers_in, contains_card_number};
use cloakroom_platform::config::Networks;
use cloakroom_tokens::attributes::{self as attributes, NewId};
use cloakroom_tokens::client_encryption;
use cloakroom_tokens::queries::{cursor, query};
use cloakroom_tokens::tokens::{NewToken, TokenAttributes};
use cloakroom_tokens::types::{TokenKind, validate_data, validate_patched};
use http::{HeaderMap, HeaderName, HeaderValue};
use jiff::Timestamp;
use serde_json::Value;

use crate::server;

/// A fuzz target by name.
type Target = (&'static str, fn(&[u8]));

/// All parsers.
pub const TARGETS: [Target; 13] = [
    ("expressions", expressions),
    ("masks", masks),
    ("documents", documents),
    ("messages", messages),
    ("token_bodies", token_bodies),
    ("patches", patches),
    ("queries", queries),
    ("cursors", cursors),
    ("names", names),
    ("addresses", addresses),
    ("heads", heads),
    ("card_numbers", card_numbers),
    ("encrypted", encrypted),
];

/// The first line, and the rest as JSON; null if it is not valid.
fn line_and_json(bytes: &[u8]) -> Option<(&str, Value)> {
    let text = std::str::from_utf8(bytes).ok()?;
    let (line, rest) = text.split_once('\n').unwrap_or((text, ""));
    Some((line, read_json(rest.as_bytes()).unwrap_or_default()))
}

/// Deterministic sources, so that a finding can be reproduced.
fn sources() -> Sources<'static> {
    Sources {
        now: Some(Timestamp::UNIX_EPOCH),
        random: Some(&|bytes| bytes.fill(7)),
        hmac: Some(&|_, _, message| message.to_vec()),
    }
}

/// A template and the data that it is evaluated over.
pub fn expressions(bytes: &[u8]) {
    let Some((text, data)) = line_and_json(bytes) else {
        return;
    };
    let scope = Scope {
        variables: &[("data", &data), ("metadata", &data)],
        sources: sources(),
    };
    let contexts = [
        Context::IdAlias,
        Context::Fingerprint,
        Context::SearchIndex,
        Context::Mask,
        Context::Detokenize,
        Context::Proxy,
    ];
    for context in contexts {
        if let Ok(template) = Template::parse(context, text)
            && let Ok(text) = template.evaluate_to_text(&scope)
        {
            assert!(text.len() <= OUTPUT_BYTES_MAX, "the result is too large");
        }
    }
}

/// A mask and the data that it is applied to.
pub fn masks(bytes: &[u8]) {
    let Some((mask, data)) = line_and_json(bytes) else {
        return;
    };
    if let Ok(mask) = read_json::<Value>(mask.as_bytes())
        && let Ok(mask) = Mask::parse(&mask)
    {
        mask.apply_with(&data, &sources());
    }
}

/// A document with references, and the value for each.
pub fn documents(bytes: &[u8]) {
    let Some((document, data)) = line_and_json(bytes) else {
        return;
    };
    let Ok(document) = read_json::<Value>(document.as_bytes()) else {
        return;
    };
    for context in [Context::Detokenize, Context::Proxy] {
        if let Ok(document) = Document::parse(context, &document) {
            let _ = document.fill(|_| Some(&data), &sources());
        }
    }
}

/// A 3-D Secure message, plain or base64url-encoded as browsers post it. A message that can be
/// serialized again must parse.
pub fn messages(bytes: &[u8]) {
    let read = |bytes: &[u8]| cloakroom_emv3ds::read(bytes, &MessageKind::ALL, &Version::ALL);
    let carried = std::str::from_utf8(bytes).ok().map(base64url::decode);
    if let Some(Ok(carried)) = carried {
        let _ = read(&carried);
    }
    let Ok(message) = read(bytes) else {
        return;
    };
    if let Message::PRes(ranges) = &message {
        let mut table = RangeTable::default();
        if table.apply(ranges, true).is_ok() {
            table.find("4242424242424242");
        }
    }
    if let Ok(written) = cloakroom_emv3ds::write(&message) {
        assert!(
            read(written.as_bytes()).is_ok(),
            "a serialized message must parse"
        );
    }
}

/// The body of a new token, and every attribute in it.
pub fn token_bodies(bytes: &[u8]) {
    let Ok(Object(mut new)) = read_json::<Object<NewToken<'_>>>(bytes) else {
        return;
    };
    let kind = new.kind.as_deref().and_then(TokenKind::parse);
    let _ = NewId::parse(new.id.as_deref());
    let _ = new.containers.as_deref().map(attributes::container);
    let settings = TenantSettings::default();
    let _ = TokenAttributes::validate(&mut new, kind, &settings, &mut Vec::new());
    let Some((kind, data)) = kind.zip(new.data) else {
        return;
    };
    for tenant in [TenantKind::Test, TenantKind::Production] {
        if let Ok(validated) = validate_data(kind, data, tenant) {
            let stored = read_json::<Value>(validated.data.expose());
            assert!(stored.is_ok(), "stored data must parse");
        }
    }
}

/// A merge patch and the data that it changes.
pub fn patches(bytes: &[u8]) {
    let Some((patch, mut data)) = line_and_json(bytes) else {
        return;
    };
    let Ok(patch) = read_json::<Value>(patch.as_bytes()) else {
        return;
    };
    for kind in TokenKind::ALL {
        let _ = validate_patched(kind, data.clone(), patch.clone(), TenantKind::Test);
    }
    merge_patch(&mut data, patch.clone());
    let once = data.clone();
    merge_patch(&mut data, patch);
    assert_eq!(data, once, "a patch must be idempotent");
}

/// A search query and a query string.
pub fn queries(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let _ = query::parse(Some(text));
    let _ = query::parse_old(Some(text));
    Query::decode(Some(text), &["id", "metadata"]);
}

/// A cursor, encoded and decrypted.
pub fn cursors(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        cursor::decode(text);
    }
    let _ = cursor::position(Ok(Sensitive::new(bytes.to_vec())));
}

/// Keys, ids, containers and times.
pub fn names(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    KeyParts::parse(text);
    LegacyKey::parse(text);
    let _ = NewId::parse(Some(text));
    Expiry::parse(text);
    if let Ok(container) = Container::parse(text) {
        assert!(container.holds(&container), "a container holds itself");
    }
}

/// Values of `X-Forwarded-For`, one per line.
pub fn addresses(bytes: &[u8]) {
    let mut headers = HeaderMap::new();
    for line in bytes.split(|byte| *byte == b'\n') {
        if let Ok(line) = HeaderValue::from_bytes(line) {
            headers.append(HeaderName::from_static("x-forwarded-for"), line);
        }
    }
    let peer = IpAddr::from([10, 0, 0, 1]);
    let Ok(trusted) = "10.0.0.0/8".parse::<Networks>() else {
        return;
    };
    let ClientAddr(found) = ClientAddr::find(peer, &headers, &trusted);
    network_of(found);
    let ClientAddr(untrusted) = ClientAddr::find(peer, &headers, &Networks::default());
    assert_eq!(untrusted, peer, "only trusted proxies may set the address");
}

/// Heads of requests. Chunking must make no difference.
pub fn heads(bytes: &[u8]) {
    let whole = server::rejected_from(bytes, bytes.len().max(1)).is_some();
    for piece in [1, 7] {
        let in_pieces = server::rejected_from(bytes, piece).is_some();
        assert_eq!(in_pieces, whole, "chunks of {piece} give another result");
    }
}

/// Text that may contain card numbers.
pub fn card_numbers(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        let found = card_numbers_in(text);
        assert!(
            !contains_card_number(text) || !found.is_empty(),
            "every rejected card number must be found"
        );
    }
}

/// A value that a client encrypted.
pub fn encrypted(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        client_encryption::is_supported_jwe(text);
    }
}

#[cfg(test)]
mod tests;
