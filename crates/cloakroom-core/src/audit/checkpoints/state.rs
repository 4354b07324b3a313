//! The heads of chains and the keys that sign them, as a checkpoint commits to them.

use std::collections::BTreeMap;

use cloakroom_crypto::{Hash, LogPublicKey, MerkleTree, leaf_hash};
use uuid::Uuid;

use crate::audit::day::ChainId;
use crate::audit::link::CertifiedKey;

const HEAD: u8 = 1;
const KEY: u8 = 2;

/// The last durable entry of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::audit) struct Head {
    pub seq: i32,
    pub link: Hash,
    /// A closed chain does not grow.
    pub is_closed: bool,
}

/// A key without its certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::audit) struct StatedKey {
    pub node: Uuid,
    pub public_key: LogPublicKey,
}

/// Day and number of a key.
pub(in crate::audit) type KeyId = (i32, i32);

/// Heads and keys of all days that are not closed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::audit) struct ChainState {
    pub heads: BTreeMap<ChainId, Head>,
    pub keys: BTreeMap<KeyId, StatedKey>,
}

impl ChainState {
    pub(in crate::audit) fn add_key(&mut self, key: &CertifiedKey) {
        let stated = StatedKey {
            node: key.node,
            public_key: key.public_key,
        };
        self.keys.insert((key.day, key.number), stated);
    }

    /// Removes days up to and including `day`.
    pub(in crate::audit) fn drop_days_through(&mut self, day: i32) {
        self.heads.retain(|chain, _| chain.day > day);
        self.keys.retain(|(key_day, _), _| *key_day > day);
    }

    /// Adds or replaces the heads and keys of another state.
    pub(in crate::audit) fn merge(&mut self, other: Self) {
        self.heads.extend(other.heads);
        self.keys.extend(other.keys);
    }

    /// The node that owns a chain.
    pub(in crate::audit) fn owner(&self, chain: ChainId) -> Option<Uuid> {
        let key = self.keys.get(&(chain.day, chain.key_number()));
        key.map(|key| key.node)
    }

    /// The Merkle tree hash over all records.
    pub(in crate::audit) fn root(&self) -> Hash {
        let mut tree = MerkleTree::default();
        for record in self.records() {
            tree.push(leaf_hash(&record));
        }
        tree.root()
    }

    pub(in crate::audit) fn encode(&self) -> Vec<u8> {
        self.records().flatten().collect()
    }

    fn records(&self) -> impl Iterator<Item = Vec<u8>> {
        let heads = self.heads.iter().map(|(chain, head)| {
            let mut record = vec![HEAD];
            for number in [chain.day, chain.number, head.seq] {
                record.extend(number.to_be_bytes());
            }
            record.extend(head.link);
            record.push(u8::from(head.is_closed));
            record
        });
        let keys = self.keys.iter().map(|((day, number), key)| {
            let mut record = vec![KEY];
            record.extend(day.to_be_bytes());
            record.extend(number.to_be_bytes());
            record.extend(key.node.as_bytes());
            record.extend(key.public_key);
            record
        });
        heads.chain(keys)
    }

    /// Decodes a state; `None` if the bytes are not exactly an encoded state.
    pub(in crate::audit) fn decode(mut bytes: &[u8]) -> Option<Self> {
        let original = bytes;
        let mut state = Self::default();
        while let Some((kind, rest)) = bytes.split_first() {
            bytes = rest;
            match *kind {
                HEAD => {
                    let (day, number) = (take_number(&mut bytes)?, take_number(&mut bytes)?);
                    let head = Head {
                        seq: take_number(&mut bytes)?,
                        link: take(&mut bytes)?,
                        is_closed: take::<1>(&mut bytes)? == [1],
                    };
                    state.heads.insert(ChainId { day, number }, head);
                }
                KEY => {
                    let id = (take_number(&mut bytes)?, take_number(&mut bytes)?);
                    let key = StatedKey {
                        node: Uuid::from_bytes(take(&mut bytes)?),
                        public_key: take(&mut bytes)?,
                    };
                    state.keys.insert(id, key);
                }
                _ => return None,
            }
        }
        (state.encode() == original).then_some(state)
    }
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*taken)
}

fn take_number(bytes: &mut &[u8]) -> Option<i32> {
    take(bytes).map(i32::from_be_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> ChainState {
        let mut state = ChainState::default();
        for (day, number, is_closed) in [(20_000, 1001, true), (20_001, 1001, false)] {
            let head = Head {
                seq: number,
                link: [7; 32],
                is_closed,
            };
            state.heads.insert(ChainId { day, number }, head);
        }
        let key = StatedKey {
            node: Uuid::from_bytes([3; 16]),
            public_key: [4; 32],
        };
        state.keys.insert((20_001, 1), key);
        state
    }

    #[test]
    fn a_state_survives_a_round_trip() {
        let state = state();
        let encoded = state.encode();
        assert_eq!(ChainState::decode(&encoded), Some(state));
        assert_eq!(ChainState::decode(&[]), Some(ChainState::default()));
    }

    #[test]
    fn malformed_states_are_rejected() {
        let encoded = state().encode();
        for length in 1..encoded.len() {
            let is_whole = ChainState::decode(&encoded[..length])
                .is_some_and(|state| state.encode() == encoded[..length]);
            assert_eq!(ChainState::decode(&encoded[..length]).is_some(), is_whole);
        }
        let twice = [&encoded[..46], &encoded[..46]].concat();
        assert_eq!(ChainState::decode(&twice), None);
        assert_eq!(ChainState::decode(&[9]), None);
        // The byte of a closed chain is 0 or 1.
        let mut other = encoded;
        other[45] = 2;
        assert_eq!(ChainState::decode(&other), None);
    }

    #[test]
    fn the_root_depends_on_every_record() {
        let state = state();
        let mut roots = vec![state.root()];
        for chain in state.heads.keys() {
            let mut changed = state.clone();
            if let Some(head) = changed.heads.get_mut(chain) {
                head.is_closed = !head.is_closed;
            }
            roots.push(changed.root());
        }
        let mut changed = state.clone();
        changed.keys.clear();
        roots.push(changed.root());
        roots.sort_unstable();
        roots.dedup();
        assert_eq!(roots.len(), 4);
    }
}
