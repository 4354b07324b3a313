//! Reads files that contain secrets: only their owner may read them, and the owner is trusted.

use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use cloakroom_crypto::Sensitive;
use nix::unistd::geteuid;

use crate::Failure;

/// Longer files are no secrets of ours. The buffer never grows, so no copy of the secret is left behind.
const BYTES_MAX: usize = 64 * 1024;
/// Permissions of the group and of other users.
const OTHERS: u32 = 0o077;
const ROOT: u32 = 0;

/// Reads a text that only its owner can read. Checks the opened file, which cannot be exchanged afterwards.
pub fn read(path: &Path) -> Result<Sensitive<String>, Failure> {
    read_with_modes(path, |mode| match mode & OTHERS {
        0 => Ok(()),
        _ => Err("other users can read it; run `chmod 400` on it"),
    })
}

/// Reads a text from a file of mode 0400.
pub(crate) fn read_only(path: &Path) -> Result<Sensitive<String>, Failure> {
    read_with_modes(path, |mode| match mode & 0o777 {
        0o400 => Ok(()),
        _ => Err("its mode must be 0400; run `chmod 400` on it"),
    })
}

fn read_with_modes(
    path: &Path,
    check: impl FnOnce(u32) -> Result<(), &'static str>,
) -> Result<Sensitive<String>, Failure> {
    let failed = |what: &str| Failure::Configuration(format!("{}: {what}", path.display()));
    let mut file = File::open(path).map_err(|error| failed(&error.kind().to_string()))?;
    let metadata = file
        .metadata()
        .map_err(|error| failed(&error.kind().to_string()))?;
    check(metadata.mode()).map_err(failed)?;
    if metadata.uid() != geteuid().as_raw() && metadata.uid() != ROOT {
        return Err(failed("it belongs to another user; run `chown` on it"));
    }
    let mut text = Sensitive::new(vec![0; BYTES_MAX]);
    let mut length = 0;
    loop {
        let rest = &mut text.expose_mut()[length..];
        match file.read(rest) {
            Ok(0) => break,
            Ok(count) => length += count,
            Err(error) => return Err(failed(&error.kind().to_string())),
        }
    }
    match std::str::from_utf8(&text.expose()[..length]) {
        Ok(_) if length == BYTES_MAX => Err(failed("it is too long")),
        Ok(text) => Ok(Sensitive::new(text.trim().to_owned())),
        Err(_) => Err(failed("it is not text")),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn secrets_that_others_can_read_are_rejected() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pin");
        std::fs::write(&path, "1234\n").unwrap();
        let set_mode = |mode| {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        for (mode, is_accepted, is_accepted_read_only) in [
            (0o400, true, true),
            (0o600, true, false),
            (0o440, false, false),
            (0o404, false, false),
        ] {
            set_mode(mode);
            assert_eq!(read(&path).is_ok(), is_accepted, "{mode:o}");
            assert_eq!(read_only(&path).is_ok(), is_accepted_read_only, "{mode:o}");
        }
        set_mode(0o400);
        assert_eq!(read(&path).unwrap().expose(), "1234");
    }

    #[test]
    fn a_file_of_another_user_is_rejected() {
        if !geteuid().is_root() {
            // Only root can give a file away; the pipeline runs as root.
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pin");
        std::fs::write(&path, "1234").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o400)).unwrap();
        std::os::unix::fs::chown(&path, Some(12_345), None).unwrap();

        let error = read(&path).err().unwrap().to_string();

        assert!(error.contains("belongs to another user"), "{error}");
    }
}
