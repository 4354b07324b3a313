//! Format of API keys: `key_<env>_<region>_<type>_<random>`.

use cloakroom_crypto::{Sensitive, random_base58, random_bytes, secret_digest};

use super::{ApplicationKind, TenantKind};

/// Leading characters of the random part that logs name; never stored.
const PREFIX_LENGTH: usize = 10;
/// Bytes of the digest of a key that identify its row.
const LOOKUP_BYTES: usize = 16;
/// At least 128 random bits.
const RANDOM_LENGTH: usize = 22;
/// Private and management keys add a dot and this many hexadecimal digits.
const SUFFIX_LENGTH: usize = 32;
const LENGTH_MAX: usize = 100;

/// Type segment of session keys.
const SESSION_SEGMENT: &str = "ses";

const BASE58: &str = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";

/// A new API key. It is shown once and stored only as a digest.
pub struct ApiKey(Sensitive<String>);

/// The segments of an API key, parsed but not yet authenticated.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct KeyParts<'a> {
    pub tenant_kind: TenantKind,
    /// Kind of the key's application; sessions belong to public applications.
    pub application_kind: ApplicationKind,
    pub is_session: bool,
    /// The part of the random characters that logs may name.
    prefix: &'a str,
}

/// An API key in the legacy format, which encodes neither environment nor type. Legacy keys are imported, never issued.
#[derive(Clone, Copy)]
pub struct LegacyKey<'a>(&'a str);

/// Characters after the last underscore, which are random. Keys with fewer could be guessed from their digest.
const LEGACY_RANDOM_MIN: usize = 22;

/// Prefix of the lookup value of legacy keys.
const LEGACY_LOOKUP_PREFIX: &str = "legacy.";

impl<'a> LegacyKey<'a> {
    /// Parses a legacy key. Text with an environment segment is never a legacy key.
    pub fn parse(text: &'a str) -> Option<Self> {
        let is_known = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'.';
        let envs = [TenantKind::Test, TenantKind::Production].map(TenantKind::key_segment);
        let has_env_segment = envs
            .iter()
            .any(|segment| text.contains(&format!("_{segment}_")));
        let random = text.rsplit('_').next().unwrap_or_default();
        let has_length = random.len() >= LEGACY_RANDOM_MIN && text.len() <= LENGTH_MAX;
        (has_length && text.bytes().all(is_known) && !has_env_segment).then_some(Self(text))
    }

    /// The value that identifies the key's row.
    pub fn lookup(self) -> String {
        format!("{LEGACY_LOOKUP_PREFIX}{}", key_lookup(self.0))
    }
}

/// Whether a lookup value belongs to a legacy key. The row MAC covers it, so SQL cannot change it.
pub fn is_legacy_lookup(lookup: &str) -> bool {
    lookup.starts_with(LEGACY_LOOKUP_PREFIX)
}

impl ApiKey {
    pub fn generate(
        tenant_kind: TenantKind,
        region: &str,
        application_kind: ApplicationKind,
    ) -> Self {
        let mut text = key_text(tenant_kind, region, application_kind.key_segment());
        if has_suffix(application_kind) {
            text.push('.');
            text.push_str(&hex::encode(random_bytes::<{ SUFFIX_LENGTH / 2 }>()));
        }
        Self(Sensitive::new(text))
    }

    /// Generates a session key.
    pub fn generate_for_session(tenant_kind: TenantKind, region: &str) -> Self {
        Self(Sensitive::new(key_text(
            tenant_kind,
            region,
            SESSION_SEGMENT,
        )))
    }

    /// The key in plaintext, to be shown once.
    pub fn expose(&self) -> &str {
        self.0.expose()
    }
}

fn key_text(tenant_kind: TenantKind, region: &str, segment: &str) -> String {
    let (env, random) = (tenant_kind.key_segment(), random_base58(RANDOM_LENGTH));
    format!("key_{env}_{region}_{segment}_{random}")
}

impl<'a> KeyParts<'a> {
    /// Parses a key. Malformed keys are rejected without a database lookup.
    pub fn parse(text: &'a str) -> Option<Self> {
        if text.len() > LENGTH_MAX {
            return None;
        }
        let mut segments = text.strip_prefix("key_")?.split('_');
        let (env, region, kind, random) = (
            segments.next()?,
            segments.next()?,
            segments.next()?,
            segments.next()?,
        );
        if segments.next().is_some() {
            return None;
        }
        let tenant_kind = [TenantKind::Test, TenantKind::Production]
            .into_iter()
            .find(|candidate| candidate.key_segment() == env)?;
        let is_session = kind == SESSION_SEGMENT;
        let application_kind = match is_session {
            true => ApplicationKind::Public,
            false => ApplicationKind::ALL
                .into_iter()
                .find(|candidate| candidate.key_segment() == kind)?,
        };
        let region_fits =
            (2..=10).contains(&region.len()) && region.bytes().all(|b| b.is_ascii_lowercase());
        if !region_fits || !is_random_part(random, application_kind) {
            return None;
        }
        Some(Self {
            tenant_kind,
            application_kind,
            is_session,
            prefix: random.get(..PREFIX_LENGTH)?,
        })
    }
}

/// The prefix of a key that logs may name; `None` for legacy and malformed keys.
pub fn key_prefix(text: &str) -> Option<&str> {
    let parts = KeyParts::parse(text)?;
    let random = text.rfind('_')? + 1;
    text.get(..random + parts.prefix.len())
}

fn has_suffix(kind: ApplicationKind) -> bool {
    kind != ApplicationKind::Public
}

fn is_random_part(text: &str, kind: ApplicationKind) -> bool {
    let (random, suffix) = match text.split_once('.') {
        Some((random, suffix)) => (random, Some(suffix)),
        None => (text, None),
    };
    let suffix_fits = match suffix {
        None => !has_suffix(kind),
        Some(suffix) => {
            has_suffix(kind)
                && suffix.len() == SUFFIX_LENGTH
                && suffix
                    .bytes()
                    .all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
        }
    };
    suffix_fits && random.len() == RANDOM_LENGTH && random.chars().all(|c| BASE58.contains(c))
}

/// The digest under which an API key is stored.
pub fn key_digest(text: &str) -> [u8; 32] {
    secret_digest("api-key.v2", &[text.as_bytes()])
}

/// The value that identifies the row of an API key. No part of the key itself is stored: the random characters of public keys
/// and sessions have 128 bits only as a whole.
pub fn key_lookup(text: &str) -> String {
    let digest = secret_digest("api-key-lookup.v1", &[text.as_bytes()]);
    hex::encode(&digest[..LOOKUP_BYTES])
}

#[cfg(test)]
mod tests;
