//! Reads files that contain secrets, which no other user may read.
//!
//! The rule is that of PostgreSQL for its TLS key: a file of this user has no permission for its group or for others. A file of
//! root may also be readable for the group of this process, as a service has it that must not change its own secrets, and
//! as Kubernetes mounts a Secret.

use std::fs::{File, Metadata};
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use cloakroom_crypto::Sensitive;
use nix::unistd::{getegid, geteuid};

use crate::Failure;

/// Longer files are no secrets of ours. The buffer never grows, so no copy of the secret is left behind.
const BYTES_MAX: usize = 64 * 1024;
const ROOT: u32 = 0;

/// Which files are accepted.
#[derive(Clone, Copy)]
enum Rule {
    /// Other users cannot read the file.
    Private,
    /// The file cannot be written, either.
    ReadOnly,
}

/// Reads a text that no other user can read. Checks the opened file, which cannot be exchanged afterwards.
pub fn read(path: &Path) -> Result<Sensitive<String>, Failure> {
    read_by(path, Rule::Private)
}

/// Reads a text from a file of mode 0400, or 0440 if it belongs to root.
pub(crate) fn read_only(path: &Path) -> Result<Sensitive<String>, Failure> {
    read_by(path, Rule::ReadOnly)
}

fn read_by(path: &Path, rule: Rule) -> Result<Sensitive<String>, Failure> {
    let failed = |what: &str| Failure::Configuration(format!("{}: {what}", path.display()));
    let mut file = File::open(path).map_err(|error| failed(&error.kind().to_string()))?;
    let metadata = file
        .metadata()
        .map_err(|error| failed(&error.kind().to_string()))?;
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    check(&metadata.into(), user, group, rule).map_err(failed)?;
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

/// Who can read and write a file.
struct Access {
    user: u32,
    group: u32,
    mode: u32,
}

impl From<Metadata> for Access {
    fn from(metadata: Metadata) -> Self {
        Self {
            user: metadata.uid(),
            group: metadata.gid(),
            mode: metadata.mode() & 0o777,
        }
    }
}

/// Checks a file that a process of `user` and `group` has opened.
fn check(file: &Access, user: u32, group: u32, rule: Rule) -> Result<(), &'static str> {
    if file.user != user && file.user != ROOT {
        return Err("it belongs to another user; run `chown` on it");
    }
    // A process of root owns the file: then the group would be other users.
    let is_for_service = file.user == ROOT && user != ROOT && file.group == group;
    let allowed = match (rule, is_for_service) {
        (Rule::Private, false) => 0o600,
        (Rule::Private, true) => 0o640,
        (Rule::ReadOnly, false) => 0o400,
        (Rule::ReadOnly, true) => 0o440,
    };
    match (file.mode & !allowed, rule) {
        (0, _) => Ok(()),
        (_, Rule::Private) => Err("other users can read it; run `chmod 400` on it"),
        (_, Rule::ReadOnly) => Err("its mode must be 0400; run `chmod 400` on it"),
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
    fn the_group_of_the_service_may_read_files_of_root() {
        const SERVICE: u32 = 65_532;
        for (user, group, mode, private, read_only) in [
            (ROOT, SERVICE, 0o400, true, true),
            (ROOT, SERVICE, 0o440, true, true),
            (ROOT, SERVICE, 0o640, true, false),
            (ROOT, SERVICE, 0o444, false, false),
            (ROOT, SERVICE, 0o460, false, false),
            (ROOT, SERVICE, 0o450, false, false),
            (ROOT, 100, 0o440, false, false),
            (SERVICE, SERVICE, 0o440, false, false),
            (SERVICE, SERVICE, 0o600, true, false),
            (1_000, SERVICE, 0o440, false, false),
        ] {
            let file = Access { user, group, mode };
            let is_accepted = |rule| check(&file, SERVICE, SERVICE, rule).is_ok();
            let what = format!("{user}:{group} {mode:o}");
            assert_eq!(is_accepted(Rule::Private), private, "{what}");
            assert_eq!(is_accepted(Rule::ReadOnly), read_only, "{what}");
        }
        let file = Access {
            user: ROOT,
            group: ROOT,
            mode: 0o440,
        };
        assert!(check(&file, ROOT, ROOT, Rule::Private).is_err());
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
