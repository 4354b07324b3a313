//! The keysets of tenants as access states: bucket 256.

use super::{AccessStates, Bucket, Stale, StateRow, StoredBucket, StoredState, digest};
use crate::access::AuthenticatedRow as _;
use crate::keys::{ControlKey, KeysetAuthority, KeysetMismatch, KeysetState, StoredKeyset};

impl KeysetAuthority for AccessStates {
    fn verify_keyset(
        &self,
        control: &ControlKey,
        tenant: i32,
        stored: &StoredKeyset,
    ) -> Result<(), KeysetMismatch> {
        let state = stored.state.as_ref();
        let bucket = StoredBucket {
            state: state.map(|state| StoredState {
                generation: state.generation,
                digest: state.digest.clone(),
                row_mac: state.row_mac.clone(),
            }),
            macs: stored.members.clone(),
        };
        let verified = self.verify(control, tenant, Bucket::KEYS, &bucket);
        verified.map_err(|stale| match stale {
            Stale::Older => KeysetMismatch::Older,
            Stale::Inconsistent => KeysetMismatch::Inconsistent,
        })
    }

    fn first_state(&self, control: &ControlKey, tenant: i32, members: &[Vec<u8>]) -> KeysetState {
        let row = StateRow {
            tenant_number: tenant,
            bucket: Bucket::KEYS,
            generation: 1,
            digest: digest(members).to_vec(),
        };
        KeysetState {
            generation: row.generation,
            row_mac: row.row_mac(control).to_vec(),
            digest: row.digest,
        }
    }
}
