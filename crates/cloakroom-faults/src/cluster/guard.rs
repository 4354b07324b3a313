//! Removes namespaces, mounts, processes and files, however the program ends.

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};

/// Prefix of all namespaces and links of a run; the process id follows.
const PREFIX: &str = "crf";
const FOLDER: &str = "cloakroom-faults-";

/// Waits for the end of its input, which is closed however the program ends; then removes the resources of the run.
const CLEAN: &str = r#"read -r _
prefix=$1 folder=$2
spaces() { ip netns list | cut -d' ' -f1 | grep -- "^$prefix-"; }
tries=0
while [ "$tries" -lt 50 ]; do
    left=
    for space in $(spaces); do left="$left $(ip netns pids "$space")"; done
    [ -z "$(echo $left)" ] && break
    kill -s KILL $left 2>/dev/null
    sleep 0.1
    tries=$((tries + 1))
done
for mount in $(grep -F " $folder/" /proc/mounts | cut -d' ' -f2 | sort -r); do
    umount "$mount" 2>/dev/null || umount -l "$mount"
done
for space in $(spaces); do ip netns del "$space"; done
ip link del "$prefix" 2>/dev/null
if [ -z "$3" ]; then rm -rf -- "$folder"; fi"#;

/// Cleans up when dropped, or when this process is killed.
pub(crate) struct CleanupGuard {
    pub(crate) prefix: String,
    pub(crate) folder: PathBuf,
    cleaner: Option<Child>,
}

impl CleanupGuard {
    /// Creates the folder of this run, and removes leftovers of earlier runs.
    pub(crate) fn start(keep_folder: bool) -> Result<Self> {
        clear_leftovers()?;
        let pid = std::process::id();
        let (prefix, folder) = (format!("{PREFIX}{pid}"), folder_of(pid));
        std::fs::create_dir(&folder).with_context(|| folder.display().to_string())?;
        let cleaner = spawn_cleaner(&prefix, &folder, keep_folder, Stdio::piped())?;
        Ok(Self {
            prefix,
            folder,
            cleaner: Some(cleaner),
        })
    }
}

impl Drop for CleanupGuard {
    fn drop(&mut self) {
        if let Some(mut cleaner) = self.cleaner.take() {
            drop(cleaner.stdin.take());
            let _status = cleaner.wait();
        }
    }
}

fn folder_of(pid: u32) -> PathBuf {
    std::env::temp_dir().join(format!("{FOLDER}{pid}"))
}

fn spawn_cleaner(prefix: &str, folder: &Path, keep_folder: bool, input: Stdio) -> Result<Child> {
    let keep = if keep_folder { "keep" } else { "" };
    // Its own process group: only this program handles interrupts of the terminal.
    let child = Command::new("/bin/sh")
        .args(["-c", CLEAN, "clean", prefix])
        .arg(folder)
        .arg(keep)
        .current_dir("/")
        .process_group(0)
        .stdin(input)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    Ok(child)
}

/// Removes resources with our prefix and the id of a process that no longer runs.
fn clear_leftovers() -> Result<()> {
    let mut pids = Vec::new();
    for entry in std::fs::read_dir(std::env::temp_dir())? {
        let name = entry?.file_name();
        pids.extend(number_after(&name.to_string_lossy(), FOLDER));
    }
    for entry in std::fs::read_dir("/run/netns").into_iter().flatten() {
        let name = entry?.file_name();
        let name = name.to_string_lossy();
        let owner = name.split_once('-').map_or("", |(owner, _)| owner);
        pids.extend(number_after(owner, PREFIX));
    }
    pids.sort_unstable();
    pids.dedup();
    for pid in pids.into_iter().filter(|pid| !is_ours(*pid)) {
        let (prefix, folder) = (format!("{PREFIX}{pid}"), folder_of(pid));
        spawn_cleaner(&prefix, &folder, false, Stdio::null())?.wait()?;
    }
    Ok(())
}

fn number_after(name: &str, prefix: &str) -> Option<u32> {
    name.strip_prefix(prefix)?.parse().ok()
}

/// Whether the process is a run of this program: process ids are reused.
fn is_ours(pid: u32) -> bool {
    let program = std::fs::read_link(format!("/proc/{pid}/exe"));
    program.is_ok_and(|program| program.to_string_lossy().contains("cloakroom-faults"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_with_our_prefix_are_leftovers() {
        assert_eq!(number_after("crf123", PREFIX), Some(123));
        assert_eq!(number_after("cloakroom-faults-77", FOLDER), Some(77));
        for other in ["crf", "crfx1", "web", "crf12x"] {
            assert_eq!(number_after(other, PREFIX), None, "{other}");
        }
        assert!(!is_ours(1));
    }
}
