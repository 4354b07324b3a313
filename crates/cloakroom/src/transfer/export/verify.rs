//! Verifies an export: the signature of its manifest, the digests of its chunks and, with the receiver's key, its tokens.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;

use cloakroom_crypto::{LogPublicKey, MerkleTree, leaf_hash, sha256};
use serde::Deserialize;

use super::manifest::is_signed;
use super::{Error, MANIFEST_FILE, Manifest, SIGNATURE_FILE, TOKENS_FILE};
use crate::transfer::{PrivateKey, jwe};

/// An export that matches its manifest.
pub struct Verified {
    pub manifest: Manifest,
    /// Whether the tokens were decrypted and counted as well.
    pub is_decrypted: bool,
}

#[derive(Deserialize)]
struct Id {
    id: String,
}

/// Verifies the export in a folder against the public keys of the audit authority of its vault.
pub fn verify(
    folder: &Path,
    authority: &[LogPublicKey],
    key: Option<&PrivateKey>,
) -> Result<Verified, Error> {
    let invalid = |name: &str, reason: String| Error::Invalid {
        path: folder.join(name).display().to_string(),
        reason,
    };
    let read = |name: &str| {
        let text = std::fs::read_to_string(folder.join(name));
        text.map_err(|error| invalid(name, error.kind().to_string()))
    };
    let (text, signature) = (read(MANIFEST_FILE)?, read(SIGNATURE_FILE)?);
    if !is_signed(authority, &text, &signature) {
        let reason = "it was changed, or another vault signed it".to_owned();
        return Err(invalid(MANIFEST_FILE, reason));
    }
    let manifest: Manifest = serde_json::from_str(&text)
        .map_err(|_| invalid(MANIFEST_FILE, "it is not a manifest".to_owned()))?;
    let file = File::open(folder.join(TOKENS_FILE));
    let file = file.map_err(|error| invalid(TOKENS_FILE, error.kind().to_string()))?;
    let (mut lines, mut ids) = (BufReader::new(file).lines(), MerkleTree::default());
    for (index, chunk) in manifest.chunks.iter().enumerate() {
        let wrong = |what: &str| invalid(TOKENS_FILE, format!("chunk {}: {what}", index + 1));
        let line = lines.next().and_then(Result::ok);
        let line = line.ok_or_else(|| wrong("it is missing"))?;
        if hex::encode(sha256(line.as_bytes())) != chunk.sha256 {
            return Err(wrong("it differs from the manifest"));
        }
        if let Some(key) = key {
            let found = read_ids(key, &line);
            let found = found.ok_or_else(|| wrong("it is not encrypted to this key"))?;
            if found.len() as u64 != chunk.tokens {
                return Err(wrong("it has another number of tokens than the manifest"));
            }
            found
                .iter()
                .for_each(|id| ids.push(leaf_hash(id.as_bytes())));
        }
    }
    if lines.next().is_some() {
        let reason = "it has more chunks than the manifest".to_owned();
        return Err(invalid(TOKENS_FILE, reason));
    }
    let counted: u64 = manifest.chunks.iter().map(|chunk| chunk.tokens).sum();
    let has_all_ids = key.is_none() || hex::encode(ids.root()) == manifest.ids_root;
    if counted != manifest.tokens || !has_all_ids {
        let reason = "the tokens are not those of the manifest".to_owned();
        return Err(invalid(TOKENS_FILE, reason));
    }
    Ok(Verified {
        manifest,
        is_decrypted: key.is_some(),
    })
}

/// The ids of a chunk.
fn read_ids(key: &PrivateKey, line: &str) -> Option<Vec<String>> {
    let clear = jwe::decrypt(key, line)?;
    let text = std::str::from_utf8(clear.expose()).ok()?;
    let ids = text.lines().map(serde_json::from_str::<Id>);
    let ids: Result<Vec<Id>, _> = ids.collect();
    Some(ids.ok()?.into_iter().map(|it| it.id).collect())
}
