//! Locates the server programs: in `PATH`, then in Debian's directories.

use std::path::{Path, PathBuf};

use crate::Error;

const DEBIAN_VERSIONS: &str = "/usr/lib/postgresql";
const PREFERRED_VERSION: u32 = 15;
const POSTGRES_PROGRAMS: [&str; 3] = ["initdb", "postgres", "psql"];

/// The directory of PostgreSQL's server programs.
pub(crate) fn postgres_folder() -> Result<PathBuf, Error> {
    search_path()
        .into_iter()
        .filter_map(|folder| real_folder_of(&folder.join("postgres")))
        .chain(debian_folders(Path::new(DEBIAN_VERSIONS)))
        .find(|folder| {
            POSTGRES_PROGRAMS
                .iter()
                .all(|program| folder.join(program).is_file())
        })
        .ok_or(Error::PostgresMissing)
}

pub(crate) fn redis_server() -> Result<PathBuf, Error> {
    search_path()
        .into_iter()
        // Debian installs servers outside of the `PATH` of some users.
        .chain([
            "/usr/bin".into(),
            "/usr/sbin".into(),
            "/usr/local/bin".into(),
        ])
        .map(|folder| folder.join("redis-server"))
        .find(|program| program.is_file())
        .ok_or(Error::RedisMissing)
}

fn search_path() -> Vec<PathBuf> {
    std::env::var_os("PATH")
        .map(|path| std::env::split_paths(&path).collect())
        .unwrap_or_default()
}

/// Resolves a symbolic link to one program, to find the directory of the others.
fn real_folder_of(program: &Path) -> Option<PathBuf> {
    let real = program.canonicalize().ok()?;
    real.parent().map(Path::to_owned)
}

/// The preferred version, then the others, newest first.
fn debian_folders(versions: &Path) -> Vec<PathBuf> {
    let mut numbers: Vec<u32> = std::fs::read_dir(versions)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect();
    numbers.sort_by_key(|&number| (number != PREFERRED_VERSION, std::cmp::Reverse(number)));
    numbers
        .into_iter()
        .map(|number| versions.join(number.to_string()).join("bin"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_15_is_preferred_then_the_newest() {
        let versions = tempfile::tempdir().unwrap();
        for name in ["9", "13", "17", "15", "lost+found"] {
            std::fs::create_dir(versions.path().join(name)).unwrap();
        }

        let found = debian_folders(versions.path());

        let names: Vec<_> = found
            .iter()
            .map(|folder| {
                folder
                    .strip_prefix(versions.path())
                    .unwrap()
                    .to_str()
                    .unwrap()
            })
            .collect();
        assert_eq!(names, ["15/bin", "17/bin", "13/bin", "9/bin"]);
    }
}
