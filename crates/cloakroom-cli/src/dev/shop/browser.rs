//! A Chromium that finds the shop and the vault under their names, and accepts their certificate.
//!
//! The profile is temporary, and the certificate is accepted by its key: neither the trust store nor the hosts file of
//! the machine changes.

use std::path::Path;
use std::process::Stdio;

use tokio::process::{Child, Command};

use super::{ShopReady, find_program};

const PROGRAMS: [&str; 4] = [
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
];

/// Opens the shop in a browser, if one is installed and there is a display.
pub(crate) fn open(ready: &ShopReady, profile: &Path) -> Option<Child> {
    let has_display = ["DISPLAY", "WAYLAND_DISPLAY"]
        .iter()
        .any(|name| std::env::var_os(name).is_some());
    let program = PROGRAMS.iter().copied().find_map(find_program)?;
    if !has_display {
        return None;
    }
    let mut command = Command::new(program);
    command.args(arguments(ready, profile));
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.kill_on_drop(true).spawn().ok()
}

/// The command for a shell.
pub(crate) fn command_line(ready: &ShopReady, profile: &Path) -> String {
    let quoted = arguments(ready, profile).map(|argument| format!("'{argument}'"));
    format!("chromium {}", quoted.join(" \\\n    "))
}

fn arguments(ready: &ShopReady, profile: &Path) -> [String; 5] {
    let ShopReady {
        url,
        front,
        hosts,
        public_key_sha256,
        ..
    } = ready;
    let rules = hosts.map(|host| format!("MAP {host}:443 {front}"));
    [
        format!("--user-data-dir={}", profile.display()),
        format!("--host-resolver-rules={}", rules.join(", ")),
        format!("--ignore-certificate-errors-spki-list={public_key_sha256}"),
        "--no-first-run".to_owned(),
        url.clone(),
    ]
}
