//! Keyed digests that represent numbers in velocity counters, which never hold a number.

use cloakroom_crypto::{Fingerprinting, Sensitive};
use cloakroom_platform::api::network_of;

use super::number::CandidateNumber;
use crate::access::ApplicationKind;
use crate::caller::Caller;
use crate::keys::{DigestKey, TenantKeys};

/// Leading digits of a card number that are public: six are known to everyone, and the vault shows
/// eight of most numbers.
const BIN_DIGITS: usize = 6;
const LONG_BIN_DIGITS: usize = 8;

/// Identifies a counter.
pub(super) type Group = [u8; 16];

/// Identifies a member of a group. Half of a digest is enough among a few.
pub(super) type Member = [u8; 8];

/// Digests of a number that an application sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NumberDigests {
    /// Numbers with the same first six and last four digits, or of one type with the same last four
    /// digits.
    pub(super) group: Group,
    pub(super) member: GroupMember,
    /// All numbers of the application with these first six digits, or of this type.
    pub(super) volume: Group,
    /// The same for the first eight digits; equal to `volume` for identifiers.
    pub(super) part_volume: Group,
}

/// A number within its group, and its part of the group: the numbers with the same first eight
/// digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GroupMember {
    pub(super) part: Member,
    pub(super) digest: Member,
}

impl NumberDigests {
    /// The digests of a number under every version of the key. While the key is replaced, the number counts under each,
    /// so that nodes that know different versions share counters, and none starts at zero.
    pub(super) fn all(
        keys: &TenantKeys,
        caller: &Caller,
        number: &CandidateNumber,
    ) -> impl Iterator<Item = Self> {
        let versions = keys.fingerprint_versions();
        versions.map(move |key| Self::of(key, caller, number))
    }

    fn of(key: &DigestKey<Fingerprinting>, caller: &Caller, number: &CandidateNumber) -> Self {
        let digits = number.digits();
        let first = |count| digits.get(..count).unwrap_or(digits);
        let (wide, narrow) = match number {
            CandidateNumber::Card(_) => (first(BIN_DIGITS), first(LONG_BIN_DIGITS)),
            CandidateNumber::Identifier { kind, .. } => (*kind, *kind),
        };
        let application = caller.application;
        let digest_of = |what: &str, known: &str| {
            let known = Sensitive::new(format!("{application}{known}"));
            digest(key, what, known.expose())
        };
        let volume: Group = digest_of("velocity volume", wide);
        let part_volume: Group = match narrow == wide {
            true => volume,
            false => digest_of("velocity volume", narrow),
        };
        let [a, b, c, d, e, f, g, h, ..] = part_volume;
        let group = Sensitive::new(format!("{application}{wide}{}", number.last()));
        Self {
            group: digest(key, "velocity group", group.expose()),
            member: GroupMember {
                part: [a, b, c, d, e, f, g, h],
                digest: digest(key, "velocity number", digits),
            },
            volume,
            part_volume,
        }
    }
}

/// Truncated fingerprint of a kind of its own, which cannot be compared with any token's.
fn digest<const LENGTH: usize>(
    key: &DigestKey<Fingerprinting>,
    kind: &str,
    value: &str,
) -> [u8; LENGTH] {
    let mut digest = [0; LENGTH];
    for (byte, fingerprint_byte) in digest
        .iter_mut()
        .zip(key.fingerprint(kind, value).as_bytes())
    {
        *byte = *fingerprint_byte;
    }
    digest
}

/// The counters of invalid numbers: a public key, or session, at one address. One for each version of the key, the oldest
/// first: all of them are counted, and the first one decides. Servers have none.
///
/// Servers are trusted not to generate numbers, and relay the mistakes of all their customers.
pub(super) fn client_groups(keys: &TenantKeys, caller: &Caller) -> impl Iterator<Item = Group> {
    let is_public = caller.application_kind == ApplicationKind::Public;
    let client = is_public.then(|| {
        let address = caller.origin.map_or_else(String::new, network_of);
        format!("{} {address}", caller.key)
    });
    let versions = keys.fingerprint_versions();
    versions.filter_map(move |key| Some(digest(key, "velocity suspect", client.as_ref()?)))
}
