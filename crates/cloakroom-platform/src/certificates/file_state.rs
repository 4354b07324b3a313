//! Detects that files have changed, without reading them.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// The state of a certificate file and of its key file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FileStates([Option<FileState>; 2]);

/// Changes with every write, and when a file is replaced by another one, also through a symbolic link.
#[derive(Clone, Debug, PartialEq, Eq)]
struct FileState {
    device: u64,
    inode: u64,
    bytes: u64,
    changed_at: (i64, i64),
}

impl FileStates {
    pub(super) fn read(cert: &Path, key: &Path) -> Self {
        Self([FileState::read(cert), FileState::read(key)])
    }
}

impl FileState {
    /// `None` if there is no file.
    fn read(path: &Path) -> Option<Self> {
        let metadata = std::fs::metadata(path).ok()?;
        Some(Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            bytes: metadata.len(),
            changed_at: (metadata.ctime(), metadata.ctime_nsec()),
        })
    }
}
