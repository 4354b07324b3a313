//! The provider `shares`: a root key split between custodians (Shamir, k of n).
//!
//! The key is in no file. A node starts sealed and combines it in memory from the shares that custodians submit, each by
//! its own, through a Unix socket.

mod collector;
mod share_line;
mod socket;

use std::path::{Path, PathBuf};

use cloakroom_crypto::{Key, RootKek, split_into_shares};

pub use self::collector::{Collector, Progress, Rejection};
pub use self::share_line::ShareLine;
pub use self::socket::{Ceremony, Restored, Submission, submit};
use crate::{Failure, file};

/// The files of a new set of shares.
pub struct SplitKey {
    pub files: Vec<PathBuf>,
    /// Key check value of the root key: public, equal on every share.
    pub check_value: String,
}

/// Splits a root key into shares, one file per custodian, each readable by its owner only.
///
/// Splits the key in `from`, or a new one that exists in no other form. Never overwrites a file.
pub fn split(
    from: Option<&Path>,
    (threshold, count): (u8, u8),
    folder: &Path,
) -> Result<SplitKey, Failure> {
    let root = match from {
        Some(path) => file::read(path)?,
        None => Key::<RootKek>::generate(),
    };
    let shares = split_into_shares(&root, threshold, count)
        .map_err(|error| Failure::Configuration(error.to_string()))?;
    let check_value = root.check_value();
    let path = |number| folder.join(format!("share-{number}.txt"));
    // Checked first, so that no incomplete set is written next to an older one.
    if let Some(existing) = (1..=count).map(path).find(|path| path.exists()) {
        let existing = existing.display();
        return Err(Failure::Configuration(format!("{existing} exists already")));
    }
    let mut files = vec![];
    for share in shares {
        let path = path(share.number());
        let line = ShareLine::new(check_value, threshold, share).to_text();
        file::write_new(&path, line.expose())?;
        files.push(path);
    }
    Ok(SplitKey {
        files,
        check_value: hex::encode(check_value.as_bytes()),
    })
}
