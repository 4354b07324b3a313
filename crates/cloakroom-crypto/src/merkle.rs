//! Merkle tree hashes as defined by RFC 6962, with SHA-256.

use aws_lc_rs::digest::{SHA256, digest};

pub type Hash = [u8; 32];

/// SHA-256 of one message.
pub fn sha256(message: &[u8]) -> Hash {
    let mut hash = [0; 32];
    hash.copy_from_slice(digest(&SHA256, message).as_ref());
    hash
}

/// Prefix of a leaf, part of the message that [`leaf_hash`] hashes.
pub const LEAF_PREFIX: u8 = 0;
const NODE_PREFIX: u8 = 1;

/// The hash of a leaf.
pub fn leaf_hash(data: &[u8]) -> Hash {
    let mut message = Vec::with_capacity(data.len() + 1);
    message.push(LEAF_PREFIX);
    message.extend_from_slice(data);
    sha256(&message)
}

fn node_hash(left: &Hash, right: &Hash) -> Hash {
    let mut message = [NODE_PREFIX; 65];
    message[1..33].copy_from_slice(left);
    message[33..].copy_from_slice(right);
    sha256(&message)
}

/// A growing tree, of which only the roots of complete subtrees are stored.
#[derive(Clone, Debug, Default)]
pub struct MerkleTree {
    leaves: u64,
    /// Roots of complete subtrees, the largest first.
    subtrees: Vec<Hash>,
}

impl MerkleTree {
    /// Appends the hash of a leaf.
    pub fn push(&mut self, leaf: Hash) {
        let mut hash = leaf;
        // Each trailing one bit of the size is a complete subtree that the new leaf completes to a larger one.
        for _ in 0..self.leaves.trailing_ones() {
            if let Some(left) = self.subtrees.pop() {
                hash = node_hash(&left, &hash);
            }
        }
        self.subtrees.push(hash);
        self.leaves += 1;
    }

    pub fn is_empty(&self) -> bool {
        self.leaves == 0
    }

    /// The root. The root of an empty tree is the hash of nothing.
    pub fn root(&self) -> Hash {
        let mut subtrees = self.subtrees.iter().rev();
        let Some(last) = subtrees.next() else {
            return sha256(b"");
        };
        subtrees.fold(*last, |right, left| node_hash(left, &right))
    }

    pub fn clear(&mut self) {
        self.leaves = 0;
        self.subtrees.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition of RFC 6962, section 2.1.
    fn defined(leaves: &[Hash]) -> Hash {
        match leaves {
            [] => sha256(b""),
            [leaf] => *leaf,
            _ => {
                let split = leaves.len().next_power_of_two() / 2;
                node_hash(&defined(&leaves[..split]), &defined(&leaves[split..]))
            }
        }
    }

    #[test]
    fn roots_are_those_of_rfc_6962() {
        let mut tree = MerkleTree::default();
        let mut leaves = Vec::new();
        for number in 0_u32..70 {
            assert_eq!(tree.root(), defined(&leaves), "{number} leaves");
            let leaf = leaf_hash(&number.to_be_bytes());
            tree.push(leaf);
            leaves.push(leaf);
        }
        tree.clear();
        assert_eq!(tree.root(), sha256(b""));
    }

    /// The first test vectors of the reference implementation of Certificate Transparency.
    #[test]
    fn leaves_and_nodes_are_hashed_with_their_prefix() {
        let empty_leaf = "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d";
        assert_eq!(hex::encode(leaf_hash(b"")), empty_leaf);
        let mut tree = MerkleTree::default();
        for leaf in [&b""[..], b"\x00"] {
            tree.push(leaf_hash(leaf));
        }
        let root = "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125";
        assert_eq!(hex::encode(tree.root()), root);
    }
}
