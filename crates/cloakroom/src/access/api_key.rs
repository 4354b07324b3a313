//! The text of an API key: `key_<env>_<region>_<type>_<random>`.

use cloakroom_crypto::{Sensitive, random_base58, random_bytes};

use super::{ApplicationKind, TenantKind};
use crate::keys::ControlKey;

/// Characters of the random part that find the key's row; the others are the secret.
const LOOKUP_LENGTH: usize = 10;
const RANDOM_LENGTH: usize = 22;
/// Private and management keys add a dot and this many hexadecimal digits.
const TAIL_LENGTH: usize = 32;
const LENGTH_MAX: usize = 100;

/// How keys of sessions are marked.
const SESSION_MARK: &str = "ses";

const BASE58: &str = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";

/// A new key. It is shown once and kept only as a keyed digest.
pub struct ApiKey(Sensitive<String>);

/// What the text of a key says, before anyone knows whether it is a real one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct KeyParts<'a> {
    pub tenant_kind: TenantKind,
    /// That of its application; sessions belong to public ones.
    pub application_kind: ApplicationKind,
    pub is_session: bool,
    pub lookup: &'a str,
}

/// The text of an older key, which says nothing of what it is for. Such keys are imported, never made.
#[derive(Clone, Copy)]
pub struct LegacyKey<'a>(&'a str);

/// Shorter ones could be guessed.
const LEGACY_LENGTH_MIN: usize = 20;

/// How the look-up part of an older key is told from that of any other.
const LEGACY_LOOKUP: &str = "legacy.";

impl<'a> LegacyKey<'a> {
    /// Reads a key's text. What has the mark of an environment is a key of today, or none at all.
    pub fn parse(text: &'a str) -> Option<Self> {
        let is_known = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'.';
        let marks = [TenantKind::Test, TenantKind::Production].map(TenantKind::key_mark);
        let is_marked = marks.iter().any(|mark| text.contains(&format!("_{mark}_")));
        let has_length = (LEGACY_LENGTH_MIN..=LENGTH_MAX).contains(&text.len());
        (has_length && text.bytes().all(is_known) && !is_marked).then_some(Self(text))
    }

    /// What may find the key's row, the first one that of a row which is written now.
    ///
    /// Nobody knows which part of such a text is random, so none of it may stand in the table. A keyed
    /// digest of all of it takes the place of the look-up part: it tells nothing of the text, nobody
    /// without the control key can make the one of a key, and the secret is compared as for every key.
    pub fn lookups(self, control: &ControlKey) -> Vec<String> {
        control
            .authenticate_all(LEGACY_LOOKUP, &[self.0.as_bytes()])
            .map(|digest| format!("{LEGACY_LOOKUP}{}", hex::encode(digest)))
            .collect()
    }
}

/// Whether a look-up part belongs to an older key. It is in the row's digest, so SQL cannot change it.
pub(crate) fn is_legacy_lookup(lookup: &str) -> bool {
    lookup.starts_with(LEGACY_LOOKUP)
}

impl ApiKey {
    pub fn generate(
        tenant_kind: TenantKind,
        region: &str,
        application_kind: ApplicationKind,
    ) -> Self {
        let mut text = start(tenant_kind, region, application_kind.key_mark());
        if has_tail(application_kind) {
            text.push('.');
            text.push_str(&hex::encode(random_bytes::<{ TAIL_LENGTH / 2 }>()));
        }
        Self(Sensitive::new(text))
    }

    /// The key of a session.
    pub fn generate_for_session(tenant_kind: TenantKind, region: &str) -> Self {
        Self(Sensitive::new(start(tenant_kind, region, SESSION_MARK)))
    }

    /// The text, for the one time that it is shown.
    pub fn expose(&self) -> &str {
        self.0.expose()
    }
}

fn start(tenant_kind: TenantKind, region: &str, mark: &str) -> String {
    let (env, random) = (tenant_kind.key_mark(), random_base58(RANDOM_LENGTH));
    format!("key_{env}_{region}_{mark}_{random}")
}

impl<'a> KeyParts<'a> {
    /// Reads a key's text; malformed text costs no look-up.
    pub fn parse(text: &'a str) -> Option<Self> {
        if text.len() > LENGTH_MAX {
            return None;
        }
        let mut words = text.strip_prefix("key_")?.split('_');
        let (env, region, kind, random) =
            (words.next()?, words.next()?, words.next()?, words.next()?);
        if words.next().is_some() {
            return None;
        }
        let tenant_kind = [TenantKind::Test, TenantKind::Production]
            .into_iter()
            .find(|candidate| candidate.key_mark() == env)?;
        let is_session = kind == SESSION_MARK;
        let application_kind = match is_session {
            true => ApplicationKind::Public,
            false => ApplicationKind::ALL
                .into_iter()
                .find(|candidate| candidate.key_mark() == kind)?,
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

fn has_tail(kind: ApplicationKind) -> bool {
    kind != ApplicationKind::Public
}

fn is_random_part(text: &str, kind: ApplicationKind) -> bool {
    let (random, tail) = match text.split_once('.') {
        Some((random, tail)) => (random, Some(tail)),
        None => (text, None),
    };
    let tail_fits = match tail {
        None => !has_tail(kind),
        Some(tail) => {
            has_tail(kind)
                && tail.len() == TAIL_LENGTH
                && tail.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
        }
    };
    tail_fits && random.len() == RANDOM_LENGTH && random.chars().all(|c| BASE58.contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_key_says_what_it_is_for() {
        for tenant_kind in [TenantKind::Test, TenantKind::Production] {
            for application_kind in ApplicationKind::ALL {
                let key = ApiKey::generate(tenant_kind, "eu", application_kind);
                let text = key.expose();

                let parts = KeyParts::parse(text).unwrap();

                assert!(parts.tenant_kind == tenant_kind, "{text}");
                assert!(parts.application_kind == application_kind, "{text}");
                assert_eq!(parts.lookup.len(), LOOKUP_LENGTH);
                assert!(text.len() <= LENGTH_MAX);
                assert!(
                    text.bytes()
                        .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'.')
                );
            }
        }
    }

    #[test]
    fn malformed_keys_are_not_looked_up() {
        let random = "1111111111111111111111";
        let tail = "0".repeat(32);
        let cases = [
            (format!("key_test_us_pub_{random}"), true),
            (format!("key_prod_us_pvt_{random}.{tail}"), true),
            (format!("key_test_us_pub_{random}.{tail}"), false),
            (format!("key_test_us_pvt_{random}"), false),
            (
                format!("key_test_us_pvt_{random}.{}", "g".repeat(32)),
                false,
            ),
            (format!("key_test_US_pub_{random}"), false),
            (format!("key_live_us_pub_{random}"), false),
            (format!("key_test_us_ses_{random}"), true),
            (format!("key_test_us_ses_{random}.{tail}"), false),
            (format!("key_test_us_sex_{random}"), false),
            (format!("key_test_us_pub_{random}1"), false),
            (format!("key_test_us_pub_{}", "0".repeat(22)), false),
            (format!("key_test_us_pub_{random}_x"), false),
            (format!("kez_test_us_pub_{random}"), false),
            ("é".repeat(30), false),
            (String::new(), false),
        ];
        for (text, expected) in cases {
            assert_eq!(KeyParts::parse(&text).is_some(), expected, "{text}");
        }
    }

    #[test]
    fn older_keys_have_no_mark_and_are_long_enough() {
        let cases = [
            ("key_1111111111111111111111".to_owned(), true),
            ("key_us_pvt_1111111111.0000".to_owned(), true),
            ("key_live_us_pub_1111111111".to_owned(), true),
            ("1".repeat(20), true),
            ("1".repeat(19), false),
            ("a".repeat(100), true),
            ("a".repeat(101), false),
            ("key_test_us_pub_1111111111111111111111".to_owned(), false),
            ("key_prod_us_pub_1".to_owned(), false),
            ("1111111111_prod_1111111111".to_owned(), false),
            ("key-1111111111111111111111".to_owned(), false),
            ("key_111111111111111111111 ".to_owned(), false),
            ("\u{e9}".repeat(20), false),
            (String::new(), false),
        ];
        for (text, expected) in cases {
            assert_eq!(LegacyKey::parse(&text).is_some(), expected, "{text}");
            assert!(!expected || KeyParts::parse(&text).is_none(), "{text}");
        }
    }
}
