//! A card number as it is counted: never the number, only keyed digests.

use cloakroom_crypto::Sensitive;

use crate::access::ApplicationKind;
use crate::api::network_of;
use crate::caller::Caller;
use crate::keys::TenantKeys;

/// Digits that everyone may know of a card: those that name its issuer at least, and the last ones.
///
/// The vault shows eight leading digits of most numbers. Grouping by six puts the thousand candidates
/// behind eight known digits and the hundred thousand behind six into one group.
const FIRST: usize = 6;
const LAST: usize = 4;

/// Something that is counted by itself.
pub(super) type Group = [u8; 16];

/// One of the different things in a group. Half of a digest is enough among a few.
pub(super) type Member = [u8; 8];

/// A card number that an application sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sighting {
    pub(super) group: Group,
    pub(super) member: Member,
}

impl Sighting {
    pub(super) fn of(keys: &TenantKeys, caller: &Caller, number: &str) -> Self {
        let first = number.get(..FIRST).unwrap_or(number);
        let last = number.len().checked_sub(LAST);
        let last = last.and_then(|start| number.get(start..)).unwrap_or(number);
        let known = Sensitive::new(format!("{}{first}{last}", caller.application));
        Self {
            group: digest(keys, "velocity group", known.expose()),
            member: digest(keys, "velocity number", number),
        }
    }
}

/// The beginning of a fingerprint of a kind of its own, so that it can be compared with no token's.
fn digest<const LENGTH: usize>(keys: &TenantKeys, kind: &str, value: &str) -> [u8; LENGTH] {
    let mut digest = [0; LENGTH];
    for (byte, made) in digest
        .iter_mut()
        .zip(keys.fingerprint(kind, value).as_bytes())
    {
        *byte = *made;
    }
    digest
}

/// Whose refused numbers are counted together: a public key, or session, at one address.
///
/// Servers are trusted not to make up numbers, and relay mistakes of all their customers.
pub(super) fn suspect(keys: &TenantKeys, caller: &Caller) -> Option<Group> {
    if caller.application_kind != ApplicationKind::Public {
        return None;
    }
    let address = caller.origin.map_or_else(String::new, network_of);
    let who = format!("{} {address}", caller.key);
    Some(digest(keys, "velocity suspect", &who))
}
