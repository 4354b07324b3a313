//! The operator of this command: the operating system user, also behind `sudo`, and the name given with `--as`.

use std::path::Path;
use std::sync::OnceLock;

use anyhow::bail;
use cloakroom::audit::Operator;
use nix::unistd::{Uid, User, geteuid, getuid};

/// The kernel's login uid of a process that was not started from a login session.
const NO_LOGIN: u32 = u32::MAX;

/// The configuration file of the packages, which only root can write.
const PACKAGED: &str = "/etc/cloakroom/cloakroom.toml";

static NAME: OnceLock<String> = OnceLock::new();

/// Stores the name given with `--as` for the lifetime of the process.
pub(crate) fn set_name(name: Option<String>) {
    if let Some(name) = name {
        // Set only once, after the arguments are parsed.
        let _ = NAME.set(name);
    }
}

/// Rejects a configuration file of a person who runs this command with the rights of the service, as with `sudo -u`. The file
/// names libraries to load and keys to read: whoever writes it has these rights for everything.
pub(crate) fn check_configuration(path: Option<&Path>) -> anyhow::Result<()> {
    let Some(path) = path.filter(|path| *path != Path::new(PACKAGED)) else {
        return Ok(());
    };
    let (own, name) = (geteuid(), |uid| {
        account(uid).unwrap_or_else(|| format!("user {uid}"))
    });
    match other_person(own, [login_user(), sudo_variable()]) {
        None => Ok(()),
        Some(person) => bail!(
            "{} runs this command with the rights of {}, so it reads no other configuration file than {PACKAGED}, and {} is \
             another one; use `--config {PACKAGED}`, or log in as {}",
            name(person),
            name(own),
            path.display(),
            name(own),
        ),
    }
}

/// The person who runs a command of another user. Whatever root reads must be root's, whoever runs the command.
fn other_person(own: Uid, persons: [Option<Uid>; 2]) -> Option<Uid> {
    let mut persons = persons.into_iter().flatten();
    persons.find(|person| !own.is_root() && *person != own)
}

/// The operator as named in the audit log.
pub(crate) fn operator() -> anyhow::Result<Operator> {
    let (uid, _) = user();
    let user = account(uid).unwrap_or_else(|| format!("uid {uid}"));
    name(&user, &host())
}

/// The operator who requests or approves an export: an account, and whether a login session proves it. Without one, root
/// chooses the user.
pub(crate) fn person() -> anyhow::Result<Operator> {
    let (uid, has_login) = user();
    let Some(user) = account(uid) else {
        bail!(
            "user {uid} has no account on this host; exports are requested and approved by persons with accounts"
        );
    };
    match has_login {
        true => name(&user, &host()),
        false => name(&user, &format!("{} (no login session)", host())),
    }
}

fn name(user: &str, host: &str) -> anyhow::Result<Operator> {
    let name = NAME.get().map(String::as_str);
    Operator::new(name, user, host).map_err(|rule| anyhow::anyhow!("--as {rule}"))
}

fn host() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    host.trim().to_owned()
}

fn account(uid: Uid) -> Option<String> {
    User::from_uid(uid).ok().flatten().map(|user| user.name)
}

/// The login user, which `sudo` does not change; without a login session, the user who ran `sudo`, or that of the
/// process. Also returns whether there is a login session.
fn user() -> (Uid, bool) {
    match login_user() {
        Some(uid) => (uid, true),
        None => (sudo_user().unwrap_or_else(getuid), false),
    }
}

/// The user of the login session, if there is one.
fn login_user() -> Option<Uid> {
    let login = std::fs::read_to_string("/proc/self/loginuid").ok()?;
    let uid = login.trim().parse().ok().filter(|uid| *uid != NO_LOGIN);
    uid.map(Uid::from_raw)
}

/// The user who ran `sudo`. Only root is believed: every other user can set the variable.
fn sudo_user() -> Option<Uid> {
    sudo_variable().filter(|_| getuid().is_root())
}

#[expect(
    clippy::disallowed_methods,
    reason = "the variable of sudo is no setting"
)]
fn sudo_variable() -> Option<Uid> {
    let uid = std::env::var("SUDO_UID").ok()?;
    uid.parse().ok().map(Uid::from_raw)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_with_the_rights_of_the_service_is_recognized() {
        let (service, ada, root) = (Uid::from_raw(990), Uid::from_raw(1000), Uid::from_raw(0));
        for (own, persons, expected) in [
            (service, [Some(ada), None], Some(ada)),
            (service, [None, Some(ada)], Some(ada)),
            (service, [Some(service), Some(ada)], Some(ada)),
            (service, [Some(service), None], None),
            (service, [None, None], None),
            (root, [Some(ada), Some(ada)], None),
        ] {
            assert_eq!(other_person(own, persons), expected, "{own} {persons:?}");
        }
    }
}
