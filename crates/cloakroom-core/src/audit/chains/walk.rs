//! Walks along a chain and verifies each of its batches.

use cloakroom_crypto::{Hash, MerkleTree};

use crate::audit::chain_entry::ChainEntry;
use crate::audit::day::ChainId;
use crate::audit::link::{Batch, CertifiedKey, Commit};

/// A chain under verification.
pub(in crate::audit) struct ChainWalk {
    pub(in crate::audit) id: ChainId,
    key: CertifiedKey,
    /// The last verified batch: its last sequence number and its link.
    pub(in crate::audit) head: (i32, Hash),
    /// Sequence number of the last entry.
    pub(in crate::audit) seq: i32,
    /// Leaves of the batch that is not complete yet.
    tree: MerkleTree,
    batch_first: i32,
    /// After an error the link is unknown, until a checkpoint states it.
    is_broken: bool,
    buffer: Vec<u8>,
}

/// Why an entry does not continue its chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::audit) enum WalkError {
    /// The entries of a range of sequence numbers do not exist.
    Missing { from: i32, to: i32 },
    /// A second entry with this sequence number.
    Forked { seq: i32 },
    /// The batch of these entries is not the one that was signed.
    Altered { from: i32, to: i32 },
}

impl ChainWalk {
    pub(in crate::audit) fn new(id: ChainId, key: &CertifiedKey) -> Self {
        Self {
            id,
            head: (0, key.first_link(id)),
            key: key.clone(),
            seq: 0,
            tree: MerkleTree::default(),
            batch_first: 1,
            is_broken: false,
            buffer: Vec::with_capacity(300),
        }
    }

    /// Adds the next entry. Returns whether it completes a batch; the batch is verified unless the chain is broken.
    pub(in crate::audit) fn push(
        &mut self,
        entry: &ChainEntry,
        commit: Option<&[u8]>,
        stated: Option<Hash>,
    ) -> Result<bool, WalkError> {
        let seq = entry.seq;
        if seq <= self.seq {
            return Err(WalkError::Forked { seq });
        }
        let (from, to) = (self.seq + 1, seq - 1);
        self.seq = seq;
        if from <= to {
            self.is_broken = true;
            self.complete(seq, commit, stated);
            return Err(WalkError::Missing { from, to });
        }
        let leaf = entry.leaf(&mut self.buffer);
        self.tree.push(leaf);
        let Some(commit) = commit else {
            return Ok(false);
        };
        let (first, root) = (self.batch_first, self.tree.root());
        let parsed = Commit::parse(commit).filter(|commit| commit.first == first);
        let batch = Batch {
            chain: self.id,
            first,
            last: seq,
            root,
        };
        let link = batch.link(&self.head.1);
        let is_genuine = parsed.is_some_and(|it| it.verifies(&self.key.public_key, &link));
        let was_broken = self.is_broken;
        if is_genuine && !was_broken {
            self.head = (seq, link);
            self.start_batch(seq);
            return Ok(true);
        }
        self.is_broken = true;
        self.complete(seq, Some(commit), stated);
        match was_broken {
            true => Ok(true),
            false => Err(WalkError::Altered {
                from: first,
                to: seq,
            }),
        }
    }

    /// Ends a batch of a broken chain. A checkpoint that states its link mends the chain, if the batch was signed for that link.
    fn complete(&mut self, seq: i32, commit: Option<&[u8]>, stated: Option<Hash>) {
        let Some(commit) = commit else {
            return;
        };
        self.start_batch(seq);
        let parsed = Commit::parse(commit);
        if let (Some(link), Some(parsed)) = (stated, parsed)
            && parsed.verifies(&self.key.public_key, &link)
        {
            self.head = (seq, link);
            self.is_broken = false;
        }
    }

    fn start_batch(&mut self, last: i32) {
        self.tree.clear();
        self.batch_first = last + 1;
    }

    pub(in crate::audit) fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// Whether the last entries are not followed by the commit of their batch.
    pub(in crate::audit) fn is_incomplete(&self) -> bool {
        !self.tree.is_empty() && self.batch_first <= self.seq
    }
}
