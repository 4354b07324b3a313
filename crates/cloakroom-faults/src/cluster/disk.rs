//! The disk of a machine: an ext4 file system of its own, which can be full, or lose power.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::command::run;

/// Tells ext4 to stop at once and forget what it has not written: what a power cut does.
/// The number is `EXT4_IOC_SHUTDOWN`, and 2 means without flushing the log.
const SHUTDOWN: &str = "import fcntl, os, sys\n\
    fd = os.open(sys.argv[1], os.O_RDONLY)\n\
    fcntl.ioctl(fd, 0x8004587D, (2).to_bytes(4, 'little'))";

pub(crate) struct Disk {
    image: PathBuf,
    mount: PathBuf,
}

impl Disk {
    pub(crate) async fn create(folder: &Path, size_mb: u64) -> Result<Self> {
        let disk = Self {
            image: folder.join("disk.img"),
            mount: folder.join("disk"),
        };
        std::fs::File::create(&disk.image)?.set_len(size_mb * 1024 * 1024)?;
        std::fs::create_dir(&disk.mount)?;
        let image = disk.image.display().to_string();
        run("mkfs.ext4", &["-q", "-m", "0", &image]).await?;
        disk.mount().await?;
        Ok(disk)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.mount
    }

    /// From here on nothing reaches the disk, and what was not flushed is gone.
    pub(crate) async fn cut_power(&self) -> Result<()> {
        let mount = self.mount.display().to_string();
        run("/usr/bin/python3", &["-c", SHUTDOWN, &mount]).await?;
        Ok(())
    }

    /// Mounts it anew, as a machine does that starts again.
    pub(crate) async fn start_again(&self) -> Result<()> {
        run("umount", &[&self.mount.display().to_string()]).await?;
        self.mount().await
    }

    async fn mount(&self) -> Result<()> {
        let (image, mount) = (
            self.image.display().to_string(),
            self.mount.display().to_string(),
        );
        run("mount", &["-o", "loop", &image, &mount])
            .await
            .context("this machine does not permit loop mounts: run it as root")?;
        Ok(())
    }

    /// Fills it until only this much is left.
    pub(crate) async fn fill(&self, left_mb: u64) -> Result<()> {
        let stat = run(
            "df",
            &["--output=avail", "-m", &self.mount.display().to_string()],
        )
        .await?;
        let free: u64 = stat
            .lines()
            .last()
            .and_then(|line| line.trim().parse().ok())
            .context("df tells no number")?;
        let size = format!("{}M", free.saturating_sub(left_mb));
        run("fallocate", &["-l", &size, &self.ballast()]).await?;
        Ok(())
    }

    pub(crate) fn make_room(&self) -> Result<()> {
        std::fs::remove_file(self.ballast())?;
        Ok(())
    }

    fn ballast(&self) -> String {
        self.mount.join("ballast").display().to_string()
    }
}
