//! Files of machines, and the templates of deploy/ha.

use std::os::unix::fs::{OpenOptionsExt as _, chown};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use nix::unistd::User;

/// The user of etcd, Patroni and PostgreSQL, which does not run as root.
pub(crate) const DATABASE_USER: &str = "postgres";

pub(crate) fn write_private(path: &Path, text: &str) -> Result<()> {
    let _removed = std::fs::remove_file(path);
    let mut file = std::fs::File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .with_context(|| path.display().to_string())?;
    std::io::Write::write_all(&mut file, text.as_bytes())?;
    Ok(())
}

/// 128 random bits as hexadecimal text.
pub(crate) fn secret() -> Result<String> {
    let mut bytes = [0; 16];
    let mut source = std::fs::File::open("/dev/urandom")?;
    std::io::Read::read_exact(&mut source, &mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Makes the database user the owner of a folder and the files in it.
pub(crate) fn chown_to_database_user(folder: &Path) -> Result<()> {
    let user = User::from_name(DATABASE_USER)?
        .context("the user postgres does not exist; on Debian: apt-get install postgresql-15")?;
    let own = |path: &Path| chown(path, Some(user.uid.as_raw()), Some(user.gid.as_raw()));
    own(folder)?;
    for entry in std::fs::read_dir(folder)? {
        own(&entry?.path())?;
    }
    Ok(())
}

/// Configuration templates of the reference deployment with `{{NAME}}` placeholders.
pub(crate) struct Templates {
    pub(crate) folder: PathBuf,
}

impl Templates {
    pub(crate) fn fill(&self, name: &str, values: &[(&str, String)]) -> Result<String> {
        let path = self.folder.join(name);
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        fill_template(&text, values).with_context(|| name.to_owned())
    }
}

fn fill_template(text: &str, values: &[(&str, String)]) -> Result<String> {
    let mut text = text.to_owned();
    for (name, value) in values {
        let placeholder = format!("{{{{{name}}}}}");
        ensure!(text.contains(&placeholder), "has no placeholder {name}");
        text = text.replace(&placeholder, value);
    }
    match text.split_once("{{") {
        Some((_, rest)) => bail!(
            "placeholder {} has no value",
            rest.split("}}").next().unwrap_or_default()
        ),
        None => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_and_values_must_match() {
        let value = |name| (name, "1".to_owned());

        assert_eq!(
            fill_template("a={{A}} {{A}}", &[value("A")]).unwrap(),
            "a=1 1"
        );
        assert!(fill_template("a={{A}} {{B}}", &[value("A")]).is_err());
        assert!(fill_template("a={{A}}", &[value("A"), value("B")]).is_err());
    }
}
