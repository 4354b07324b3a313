//! Keysets: which keys a tenant has and in which states, authenticated as a whole.

use cloakroom_platform::ids::TenantId;
use jiff::Timestamp;
use uuid::Uuid;

use super::ControlKey;
use super::store::KeyRow;

/// The vault in the place of a tenant: the owner of its own keys.
pub const VAULT: TenantId = TenantId {
    number: 0,
    uuid: Uuid::nil(),
};

/// The keys of one tenant, or of the vault, as one statement read them. Not verified yet.
pub struct StoredKeyset {
    /// `None` if the tenant has no state.
    pub state: Option<KeysetState>,
    /// The encoding of each key, as its state covers it.
    pub members: Vec<Vec<u8>>,
}

/// What authenticates a keyset: a generation, and a MAC over it and the digest of all keys.
pub struct KeysetState {
    pub generation: i64,
    pub digest: Vec<u8>,
    pub row_mac: Vec<u8>,
}

/// What a transaction changed in a keyset, for its state.
#[derive(Default)]
#[must_use = "the state of the keyset must cover the change"]
pub struct KeysetChange {
    /// Members before and after.
    pub replaced: Vec<(Vec<u8>, Vec<u8>)>,
    pub inserted: Vec<Vec<u8>>,
}

/// Why a keyset is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeysetMismatch {
    /// A key was inserted, deleted, restored or changed by SQL.
    Inconsistent,
    /// A newer keyset is known. A concurrent change can cause it as well: read again.
    Older,
}

/// Verifies keysets. Implemented by access states, whose module is above this one.
pub trait KeysetAuthority: Send + Sync {
    /// Verifies that the keys are the current ones, and remembers their generation.
    fn verify_keyset(
        &self,
        control: &ControlKey,
        tenant: i32,
        stored: &StoredKeyset,
    ) -> Result<(), KeysetMismatch>;

    /// The first state of a keyset.
    fn first_state(&self, control: &ControlKey, tenant: i32, members: &[Vec<u8>]) -> KeysetState;
}

impl KeyRow {
    /// What the state of a keyset covers: everything but the wrapped bytes, which name their parent and change when it is
    /// replaced. `key_member!` is the same in SQL.
    pub(super) fn member(&self) -> Vec<u8> {
        let micros = |at: Timestamp| at.as_microsecond().to_be_bytes();
        let length = u32::try_from(self.check_value.len()).unwrap_or(u32::MAX);
        let mut member = b"key.v1".to_vec();
        member.extend(self.purpose.to_be_bytes());
        member.extend(self.version.to_be_bytes());
        member.extend(self.state.to_be_bytes());
        member.extend(length.to_be_bytes());
        member.extend(&self.check_value);
        member.extend(micros(self.created_at));
        member.extend(self.activated_at.map_or([0; 8], micros));
        member
    }
}

/// SQL for the member of a keyset, in a table of keys.
#[macro_export]
macro_rules! key_member {
    () => {
        "'key.v1'::bytea || int2send(purpose) || int4send(version) || int2send(state)
                   || int4send(length(check_value)) || check_value
                   || int8send((extract(epoch from created_at) * 1000000)::bigint)
                   || int8send(coalesce((extract(epoch from activated_at) * 1000000)::bigint, 0))"
    };
}
