//! Expressions of tokens: parsed once, and evaluated with the vault's chance, time and hashes.

use std::sync::{Arc, LazyLock};

use cloakroom_crypto::{ClientHash, client_hmac, fill_random};
use cloakroom_expressions::{Context, HmacAlgorithm, Mask, ParseCache, Scope, Sources, Template};
use jiff::Timestamp;
use serde_json::Value;

const REMEMBERED_MAX: usize = 10_000;

/// Masks by their JSON text: a vault has many tokens and few masks.
static MASKS: LazyLock<ParseCache<Mask>> = LazyLock::new(|| ParseCache::new(REMEMBERED_MAX));

/// Templates that are tried on every token of a kind.
static FINGERPRINTS: LazyLock<ParseCache<Template>> =
    LazyLock::new(|| ParseCache::new(REMEMBERED_MAX));
static SEARCH_INDEXES: LazyLock<ParseCache<Template>> =
    LazyLock::new(|| ParseCache::new(REMEMBERED_MAX));

pub(crate) fn parse_template(context: Context, text: &str) -> Result<Arc<Template>, String> {
    let parse = |text: &str| Template::parse(context, text).map_err(|error| error.to_string());
    match context {
        Context::Fingerprint => FINGERPRINTS.find_or_parse(text, parse),
        Context::SearchIndex => SEARCH_INDEXES.find_or_parse(text, parse),
        _ => parse(text).map(Arc::new),
    }
}

/// The result as text; a failure says which rule was broken, and nothing of the data.
pub(crate) fn evaluate_to_text(
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

/// A mask from its JSON text; `None` for text that is no mask.
pub(crate) fn parse_mask(text: &str) -> Option<Arc<Mask>> {
    let parse = |text: &str| {
        let mask: Value = serde_json::from_str(text).map_err(drop)?;
        Mask::parse(&mask).map_err(drop)
    };
    MASKS.find_or_parse(text, parse).ok()
}

/// What expressions may ask of the outside.
pub(crate) fn sources() -> Sources<'static> {
    Sources {
        now: Some(wall_clock()),
        random: Some(&fill_random),
        hmac: Some(&hmac),
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "what an expression prints as the time decides nothing"
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
