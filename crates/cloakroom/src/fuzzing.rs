//! Every parser of what strangers send, as functions of bytes: for fuzz targets, and for the test that
//! replays what they have found.
//!
//! Each function panics when a parser does, and when what it gave back breaks a promise. A new parser is
//! a row of [`TARGETS`], a file in `fuzz/targets` and a folder in `fuzz/corpus`.

use std::net::IpAddr;

use cloakroom_crypto::Sensitive;
use cloakroom_emv3ds::{Message, MessageKind, RangeTable, Version, base64url};
use cloakroom_expressions::{Context, Document, Mask, OUTPUT_BYTES_MAX, Scope, Sources, Template};
use http::{HeaderMap, HeaderName, HeaderValue};
use jiff::Timestamp;
use serde_json::Value;

use crate::access::{Container, KeyParts, LegacyKey, TenantKind};
use crate::api::{ClientAddr, Expiry, Object, Query, merge_patch, network_of, read_json};
use crate::card_numbers::{card_numbers_in, holds_card_number};
use crate::config::Networks;
use crate::token_attributes::{self as attributes, NewId};
use crate::token_queries::{cursor, query};
use crate::token_types::{TokenKind, settle, settle_patched};
use crate::tokens::{NewToken, NewTokenBody};
use crate::{client_encryption, server};

/// A parser by the name of its fuzz target.
type Target = (&'static str, fn(&[u8]));

/// Every parser.
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

/// The first line, and the rest as JSON; null if it is none.
fn line_and_json(bytes: &[u8]) -> Option<(&str, Value)> {
    let text = std::str::from_utf8(bytes).ok()?;
    let (line, rest) = text.split_once('\n').unwrap_or((text, ""));
    Some((line, read_json(rest.as_bytes()).unwrap_or_default()))
}

/// Sources that are always the same, so that a finding can be repeated.
fn sources() -> Sources<'static> {
    Sources {
        now: Some(Timestamp::UNIX_EPOCH),
        random: Some(&|bytes| bytes.fill(7)),
        hmac: Some(&|_, _, message| message.to_vec()),
    }
}

/// A template, and the data that it is evaluated over.
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

/// A mask, and the data that it hides.
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

/// A document with references, and what is filled in for each.
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

/// A message of 3-D Secure, bare or as browsers bring it. What was read and can be written is read again.
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
        assert!(read(written.as_bytes()).is_ok(), "written and not read");
    }
}

/// The body of a new token, and every attribute in it.
pub fn token_bodies(bytes: &[u8]) {
    let Ok(Object(body)) = read_json::<Object<NewTokenBody<'_>>>(bytes) else {
        return;
    };
    let new = NewToken::from(body);
    let kind = new.kind.as_deref().and_then(TokenKind::parse);
    let _ = NewId::parse(new.id.as_deref());
    let _ = new.mask.map(|mask| attributes::mask(&mask));
    let _ = new.metadata.map(attributes::metadata);
    let _ = new.containers.map(|list| attributes::container(&list));
    let _ = new
        .search_indexes
        .map(|list| attributes::search_indexes(&list, kind));
    let _ = new
        .fingerprint_expression
        .map(|text| attributes::fingerprint_expression(text, kind));
    let _ = new.expires_at.map(|text| Expiry::parse(&text));
    let Some((kind, data)) = kind.zip(new.data) else {
        return;
    };
    for tenant in [TenantKind::Test, TenantKind::Production] {
        if let Ok(settled) = settle(kind, data, tenant) {
            let kept = read_json::<Value>(settled.data.expose());
            assert!(kept.is_ok(), "data that is kept can be read");
        }
    }
}

/// A merge patch, and the data that it changes.
pub fn patches(bytes: &[u8]) {
    let Some((patch, mut kept)) = line_and_json(bytes) else {
        return;
    };
    let Ok(patch) = read_json::<Value>(patch.as_bytes()) else {
        return;
    };
    for kind in TokenKind::ALL {
        let _ = settle_patched(kind, kept.clone(), patch.clone(), TenantKind::Test);
    }
    merge_patch(&mut kept, patch.clone());
    let once = kept.clone();
    merge_patch(&mut kept, patch);
    assert_eq!(kept, once, "a patch does nothing the second time");
}

/// The query of a search, and that of an address.
pub fn queries(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let _ = query::parse(Some(text));
    let _ = query::parse_old(Some(text));
    Query::decode(Some(text), &["id", "metadata"]);
}

/// A cursor as it comes in, and as it is opened.
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

/// The lines of `X-Forwarded-For`, one each.
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
    let ClientAddr(believed) = ClientAddr::find(peer, &headers, &Networks::default());
    assert_eq!(believed, peer, "nobody but a trusted proxy is believed");
}

/// Heads of requests. In how many pieces they come makes no difference.
pub fn heads(bytes: &[u8]) {
    let whole = server::refused_from(bytes, bytes.len().max(1)).is_some();
    for piece in [1, 7] {
        let in_pieces = server::refused_from(bytes, piece).is_some();
        assert_eq!(in_pieces, whole, "pieces of {piece} are read otherwise");
    }
}

/// Text that may hold card numbers.
pub fn card_numbers(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        let found = card_numbers_in(text);
        assert_eq!(holds_card_number(text), !found.is_empty());
    }
}

/// A value that a client encrypted.
pub fn encrypted(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        client_encryption::is_understood(text);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::PathBuf;

    use super::*;

    fn folder(name: &str) -> PathBuf {
        PathBuf::from(env!("CARGO_MANIFEST_DIR"))
            .join("../../fuzz")
            .join(name)
    }

    fn files(folder: PathBuf) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect()
    }

    #[test]
    fn whatever_was_found_is_read_without_panic() {
        for (name, parse) in TARGETS {
            let corpus = files(folder("corpus").join(name));
            assert!(!corpus.is_empty(), "{name}");
            for file in corpus {
                let bytes = std::fs::read(&file).unwrap();
                // What is found is small, and so is what is cut off from it.
                for end in 0..=bytes.len().min(1_000) {
                    parse(&bytes[..end]);
                }
                parse(&bytes);
            }
        }
    }

    /// A short run of what the fuzz targets do for long, with any compiler. `CLOAKROOM_TEST_MUTATIONS` says
    /// how many there are of each target, and `CLOAKROOM_TEST_SEED` repeats them.
    #[test]
    fn mutations_of_the_corpus_are_read_without_panic() {
        let seed = number("CLOAKROOM_TEST_SEED")
            .unwrap_or_else(|| u64::from_le_bytes(cloakroom_crypto::random_bytes()));
        let count = number("CLOAKROOM_TEST_MUTATIONS").unwrap_or(300);
        for (name, parse) in TARGETS {
            let corpus: Vec<Vec<u8>> = files(folder("corpus").join(name))
                .into_iter()
                .map(|file| std::fs::read(file).unwrap())
                .collect();
            for index in 0..count {
                let mut chance = Chance(seed.wrapping_add(index));
                let mutated = chance.mutate(&corpus);
                let outcome = std::panic::catch_unwind(|| parse(&mutated));
                let shown = String::from_utf8_lossy(&mutated);
                assert!(
                    outcome.is_ok(),
                    "{name}, seed {seed}, number {index}: {shown:?}"
                );
            }
        }
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "tests are told their size by the environment"
    )]
    fn number(name: &str) -> Option<u64> {
        Some(std::env::var(name).ok()?.parse().unwrap())
    }

    /// SplitMix64: small, and good enough for choices.
    struct Chance(u64);

    impl Chance {
        fn below(&mut self, end: usize) -> usize {
            self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mut mixed = self.0;
            mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            usize::try_from((mixed ^ (mixed >> 31)) % end.max(1) as u64).unwrap()
        }

        /// One of the corpus with up to eight changes.
        fn mutate(&mut self, corpus: &[Vec<u8>]) -> Vec<u8> {
            let mut bytes = corpus[self.below(corpus.len())].clone();
            for _ in 0..=self.below(8) {
                let at = self.below(bytes.len() + 1);
                let end = at + self.below(bytes.len() - at + 1).min(40);
                let part = bytes[at..end].to_vec();
                let other = &corpus[self.below(corpus.len())];
                let from = self.below(other.len());
                let to = from + self.below(other.len() - from).min(40);
                match self.below(6) {
                    0 if at < bytes.len() => bytes[at] ^= 1 << self.below(8),
                    1 => drop(bytes.drain(at..end)),
                    2 => drop(bytes.splice(at..at, part.repeat(1 + self.below(20)))),
                    3 => drop(bytes.splice(at..end, other[from..to].to_vec())),
                    4 => {
                        let odd = b"\0\xff\r\n{}[]()|:'\"\\%-.0989999999999999999999";
                        let place = self.below(odd.len());
                        let some = odd[place..].iter().take(1 + self.below(3));
                        drop(bytes.splice(at..at, some.copied().collect::<Vec<_>>()));
                    }
                    _ => bytes.truncate(at.max(bytes.len() / 2)),
                }
            }
            bytes
        }
    }

    #[test]
    fn every_parser_has_its_target_and_its_corpus() {
        let listed: BTreeSet<String> = TARGETS.iter().map(|(name, _)| (*name).into()).collect();
        let named = |folder: PathBuf| -> BTreeSet<String> {
            let stem = |file: PathBuf| file.file_stem().unwrap().to_str().unwrap().to_owned();
            files(folder).into_iter().map(stem).collect()
        };
        assert_eq!(named(folder("targets")), listed);
        assert_eq!(named(folder("corpus")), listed);
    }
}
