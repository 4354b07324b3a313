//! Files of machines: written for their user, and the templates of deploy/ha filled in.

use std::os::unix::fs::{OpenOptionsExt as _, chown};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use nix::unistd::User;

/// Who runs etcd, Patroni and PostgreSQL, which refuses to run as root.
pub(crate) const DATABASE_USER: &str = "postgres";

pub(crate) fn write_private(path: &Path, text: &str) -> Result<()> {
    let _gone = std::fs::remove_file(path);
    let mut file = std::fs::File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .with_context(|| path.display().to_string())?;
    std::io::Write::write_all(&mut file, text.as_bytes())?;
    Ok(())
}

/// 128 random bits as text that needs no quoting anywhere.
pub(crate) fn secret() -> Result<String> {
    let mut bytes = [0; 16];
    let mut source = std::fs::File::open("/dev/urandom")?;
    std::io::Read::read_exact(&mut source, &mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Gives a folder and the files right in it to the user of the database.
pub(crate) fn give_to_database(folder: &Path) -> Result<()> {
    let user = User::from_name(DATABASE_USER)?
        .context("there is no user postgres; on Debian: apt-get install postgresql-15")?;
    let own = |path: &Path| chown(path, Some(user.uid.as_raw()), Some(user.gid.as_raw()));
    own(folder)?;
    for entry in std::fs::read_dir(folder)? {
        own(&entry?.path())?;
    }
    Ok(())
}

/// The files of the reference deployment, with names in double braces where a machine's own values go.
pub(crate) struct Templates {
    pub(crate) folder: PathBuf,
}

impl Templates {
    pub(crate) fn fill(&self, name: &str, values: &[(&str, String)]) -> Result<String> {
        let path = self.folder.join(name);
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        filled(&text, values).with_context(|| name.to_owned())
    }
}

fn filled(text: &str, values: &[(&str, String)]) -> Result<String> {
    let mut text = text.to_owned();
    for (name, value) in values {
        let mark = format!("{{{{{name}}}}}");
        ensure!(text.contains(&mark), "has no place for {name}");
        text = text.replace(&mark, value);
    }
    match text.split_once("{{") {
        Some((_, rest)) => bail!(
            "nothing is known for {}",
            rest.split("}}").next().unwrap_or_default()
        ),
        None => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_is_filled_and_every_value_has_a_place() {
        let value = |name| (name, "1".to_owned());

        assert_eq!(filled("a={{A}} {{A}}", &[value("A")]).unwrap(), "a=1 1");
        assert!(filled("a={{A}} {{B}}", &[value("A")]).is_err());
        assert!(filled("a={{A}}", &[value("A"), value("B")]).is_err());
    }
}
