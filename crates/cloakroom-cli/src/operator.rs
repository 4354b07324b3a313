//! The operator of this command: the operating system user, also behind `sudo`, and the name given with `--as`.

use std::sync::OnceLock;

use cloakroom::audit::Operator;
use nix::unistd::{Uid, User, getuid};

/// The kernel's login uid of a process that was not started from a login session.
const NO_LOGIN: u32 = u32::MAX;

static NAME: OnceLock<String> = OnceLock::new();

/// Stores the name given with `--as` for the lifetime of the process.
pub(crate) fn set_name(name: Option<String>) {
    if let Some(name) = name {
        // Set only once, after the arguments are parsed.
        let _ = NAME.set(name);
    }
}

/// The operator as named in the audit log.
pub(crate) fn operator() -> anyhow::Result<Operator> {
    let name = NAME.get().map(String::as_str);
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    Operator::new(name, &user(), host.trim()).map_err(|rule| anyhow::anyhow!("--as {rule}"))
}

/// The login user, which `sudo` does not change; without a login session, the user who ran `sudo`, or that of the
/// process.
fn user() -> String {
    let login = std::fs::read_to_string("/proc/self/loginuid");
    let login = login.ok().and_then(|text| text.trim().parse().ok());
    let login = login.filter(|uid| *uid != NO_LOGIN).map(Uid::from_raw);
    let uid = login.or_else(sudo_user).unwrap_or_else(getuid);
    match User::from_uid(uid) {
        Ok(Some(user)) => user.name,
        Ok(None) | Err(_) => format!("uid {uid}"),
    }
}

/// The user who ran `sudo`. Only root is believed: every other user can set the variable.
#[expect(
    clippy::disallowed_methods,
    reason = "the variable of sudo is no setting"
)]
fn sudo_user() -> Option<Uid> {
    let uid = std::env::var("SUDO_UID").ok()?;
    let uid = uid.parse().ok().map(Uid::from_raw);
    uid.filter(|_| getuid().is_root())
}
