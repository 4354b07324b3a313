//! An audit entry at its position in a chain: its canonical encoding, its hash and its row.

use std::fmt::Write as _;

use cloakroom_crypto::{Hash, LEAF_PREFIX, sha256};
use cloakroom_platform::storage::quote_field;
use jiff::Timestamp;
use uuid::Uuid;

use crate::audit::day::{ChainId, slot_of};
use crate::audit::entry::Entry;

/// Version of the encoding.
const ENCODING: u8 = 2;

/// An entry at its position in a chain; everything that is signed.
#[derive(Clone, Debug)]
pub struct ChainEntry {
    pub day: i32,
    pub chain: i32,
    pub seq: i32,
    pub created_at: Timestamp,
    pub tenant_number: i32,
    pub actor_kind: i16,
    pub actor: Uuid,
    pub key: Uuid,
    pub entity: i16,
    pub entity_id: String,
    pub operation: i16,
    pub outcome: i16,
    pub origin: Option<String>,
    pub trace_id: String,
}

impl ChainEntry {
    pub(in crate::audit) fn new(
        entry: &Entry,
        chain: ChainId,
        seq: i32,
        created_at: Timestamp,
    ) -> Self {
        Self {
            day: chain.day,
            chain: chain.number,
            seq,
            created_at,
            tenant_number: entry.tenant,
            actor_kind: entry.actor_kind as i16,
            actor: entry.actor,
            key: entry.key,
            entity: entry.entity as i16,
            entity_id: entry.entity_id.clone(),
            operation: entry.operation as i16,
            outcome: entry.outcome as i16,
            origin: entry.origin.map(|origin| origin.to_string()),
            trace_id: entry.trace_id.to_string(),
        }
    }

    pub(in crate::audit) fn chain_id(&self) -> ChainId {
        ChainId {
            day: self.day,
            number: self.chain,
        }
    }

    /// The hash of the entry as a leaf of the Merkle tree of its batch. `buffer` is reused between entries.
    pub fn leaf(&self, buffer: &mut Vec<u8>) -> Hash {
        buffer.clear();
        buffer.extend([LEAF_PREFIX, ENCODING]);
        for number in [self.day, self.chain, self.seq, self.tenant_number] {
            buffer.extend(number.to_be_bytes());
        }
        for number in [self.actor_kind, self.entity, self.operation, self.outcome] {
            buffer.extend(number.to_be_bytes());
        }
        buffer.extend(self.created_at.as_microsecond().to_be_bytes());
        buffer.extend(self.actor.as_bytes());
        buffer.extend(self.key.as_bytes());
        extend_text(buffer, &self.entity_id);
        extend_text(buffer, &self.trace_id);
        // No origin and an empty one differ.
        match &self.origin {
            None => buffer.push(0),
            Some(origin) => {
                buffer.push(1);
                extend_text(buffer, origin);
            }
        }
        sha256(buffer)
    }

    /// A row of `log` as a composite literal of PostgreSQL, without its last field and closing parenthesis.
    pub(in crate::audit) fn open_row(&self) -> String {
        let mut row = String::with_capacity(300);
        let (slot, created_at) = (slot_of(self.day), self.created_at);
        let (actor, key) = (self.actor, self.key);
        let numbers = (self.tenant_number, self.actor_kind, self.entity);
        // Writing to a string cannot fail.
        let _ = write!(
            row,
            "({slot},{created_at},{},{},{actor},{key},{},",
            numbers.0, numbers.1, numbers.2
        );
        quote_field(&mut row, &self.entity_id);
        let _ = write!(row, ",{},{},", self.operation, self.outcome);
        if let Some(origin) = &self.origin {
            quote_field(&mut row, origin);
        }
        row.push(',');
        quote_field(&mut row, &self.trace_id);
        let _ = write!(row, ",{},{},", self.chain, self.seq);
        row
    }
}

fn extend_text(buffer: &mut Vec<u8>, text: &str) {
    let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
    buffer.extend(length.to_be_bytes());
    buffer.extend(text.as_bytes());
}
