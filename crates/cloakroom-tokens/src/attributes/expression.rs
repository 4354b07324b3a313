//! Parses token expressions with a cache, and evaluates them with the vault's random, time and hash sources.

use std::sync::{Arc, LazyLock};

use cloakroom_crypto::{ClientHash, client_hmac, fill_random};
use cloakroom_expressions::{Context, HmacAlgorithm, Mask, ParseCache, Scope, Sources, Template};
use jiff::Timestamp;
use serde_json::Value;

const CACHED_MAX: usize = 10_000;

/// Parsed masks by their JSON text. A vault has many tokens and few distinct masks.
static MASKS: LazyLock<ParseCache<Mask>> = LazyLock::new(|| ParseCache::new(CACHED_MAX));

/// Parsed templates, which are evaluated for many tokens.
static FINGERPRINTS: LazyLock<ParseCache<Template>> = LazyLock::new(|| ParseCache::new(CACHED_MAX));
static SEARCH_INDEXES: LazyLock<ParseCache<Template>> =
    LazyLock::new(|| ParseCache::new(CACHED_MAX));

pub fn parse_template(context: Context, text: &str) -> Result<Arc<Template>, String> {
    let parse = |text: &str| Template::parse(context, text).map_err(|error| error.to_string());
    match context {
        Context::Fingerprint => FINGERPRINTS.find_or_parse(text, parse),
        Context::SearchIndex => SEARCH_INDEXES.find_or_parse(text, parse),
        _ => parse(text).map(Arc::new),
    }
}

/// Evaluates a template to text. Errors name the violated rule and never contain data.
pub fn evaluate_to_text(
    template: &Template,
    variables: &[(&str, &Value)],
) -> Result<String, String> {
    let scope = Scope {
        variables,
        sources: sources(),
    };
    template
        .evaluate_to_text(&scope)
        .map_err(|error| error.to_string())
}

/// Parses a mask from its JSON text; `None` if it is invalid.
pub fn parse_mask(text: &str) -> Option<Arc<Mask>> {
    let parse = |text: &str| {
        let mask: Value = serde_json::from_str(text).map_err(drop)?;
        Mask::parse(&mask).map_err(drop)
    };
    MASKS.find_or_parse(text, parse).ok()
}

/// The random, time and hash sources of expressions.
pub fn sources() -> Sources<'static> {
    Sources {
        now: Some(wall_clock()),
        random: Some(&fill_random),
        hmac: Some(&hmac),
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the time in an expression is only printed"
)]
fn wall_clock() -> Timestamp {
    Timestamp::now()
}

fn hmac(algorithm: HmacAlgorithm, key: &[u8], message: &[u8]) -> Vec<u8> {
    let hash = match algorithm {
        HmacAlgorithm::Sha1 => ClientHash::Sha1,
        HmacAlgorithm::Sha256 => ClientHash::Sha256,
        HmacAlgorithm::Sha512 => ClientHash::Sha512,
    };
    client_hmac(hash, key, message)
}
