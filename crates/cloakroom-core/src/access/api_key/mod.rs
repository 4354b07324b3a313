//! Format of API keys: `key_<env>_<region>_<type>_<random>`.

use cloakroom_crypto::{Sensitive, random_base58, random_bytes};

use super::{ApplicationKind, TenantKind};
use crate::keys::ControlKey;

/// Leading characters of the random part that identify the key's row; the rest is the secret.
const LOOKUP_LENGTH: usize = 10;
const RANDOM_LENGTH: usize = 22;
/// Private and management keys add a dot and this many hexadecimal digits.
const SUFFIX_LENGTH: usize = 32;
const LENGTH_MAX: usize = 100;

/// Type segment of session keys.
const SESSION_SEGMENT: &str = "ses";

const BASE58: &str = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";

/// A new API key. It is shown once and stored only as a keyed digest.
pub struct ApiKey(Sensitive<String>);

/// The segments of an API key, parsed but not yet authenticated.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct KeyParts<'a> {
    pub tenant_kind: TenantKind,
    /// Kind of the key's application; sessions belong to public applications.
    pub application_kind: ApplicationKind,
    pub is_session: bool,
    pub lookup: &'a str,
}

/// An API key in the legacy format, which encodes neither environment nor type. Legacy keys are imported, never issued.
#[derive(Clone, Copy)]
pub struct LegacyKey<'a>(&'a str);

/// Shorter keys could be guessed.
const LEGACY_LENGTH_MIN: usize = 20;

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
        let has_length = (LEGACY_LENGTH_MIN..=LENGTH_MAX).contains(&text.len());
        (has_length && text.bytes().all(is_known) && !has_env_segment).then_some(Self(text))
    }

    /// Lookup values that may identify the key's row; the first is the one that new rows get.
    ///
    /// Which part of a legacy key is random is unknown, so no part of it may be stored. The lookup value is a keyed
    /// digest of the whole key: it reveals nothing about the key and cannot be computed without the control key. The
    /// secret is compared as for every other key.
    pub fn lookups(self, control: &ControlKey) -> Vec<String> {
        control
            .authenticate_all(LEGACY_LOOKUP_PREFIX, &[self.0.as_bytes()])
            .map(|digest| format!("{LEGACY_LOOKUP_PREFIX}{}", hex::encode(digest)))
            .collect()
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
            lookup: random.get(..LOOKUP_LENGTH)?,
        })
    }
}

/// The non-secret prefix of a key, up to and including the lookup part; `None` for legacy and malformed keys.
pub fn key_prefix(text: &str) -> Option<&str> {
    let parts = KeyParts::parse(text)?;
    let random = text.rfind('_')? + 1;
    text.get(..random + parts.lookup.len())
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

/// Domain of the keyed digest of an API key.
pub const KEY_MAC_DOMAIN: &str = "api-key.v1";

/// The keyed digest under which an API key is stored.
pub fn secret_mac(control: &ControlKey, text: &str) -> [u8; 32] {
    control.authenticate(KEY_MAC_DOMAIN, &[text.as_bytes()])
}

#[cfg(test)]
mod tests;
