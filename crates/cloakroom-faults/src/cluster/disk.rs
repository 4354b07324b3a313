//! The disk of a machine: an ext4 file system that can be filled or lose power.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::time::Instant;

use super::command::run;

const UNMOUNT_TIMEOUT: Duration = Duration::from_secs(30);

/// Shuts down ext4 and discards unwritten data, like a power cut.
/// The number is `EXT4_IOC_SHUTDOWN`; 2 means without flushing the journal.
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

    /// Stops all writes to the disk and discards unflushed data.
    pub(crate) async fn cut_power(&self) -> Result<()> {
        let mount = self.mount.display().to_string();
        run("/usr/bin/python3", &["-c", SHUTDOWN, &mount]).await?;
        Ok(())
    }

    /// Mounts the disk again, as after a reboot.
    pub(crate) async fn remount(&self) -> Result<()> {
        self.unmount().await?;
        self.mount().await
    }

    /// Retries while the disk is busy: the kernel closes the files of a killed process after
    /// the process has left the namespace, so that the disk can be busy without a process.
    async fn unmount(&self) -> Result<()> {
        let mount = self.mount.display().to_string();
        let deadline = Instant::now() + UNMOUNT_TIMEOUT;
        loop {
            match run("umount", &[&mount]).await {
                Ok(_) => return Ok(()),
                Err(error) if Instant::now() >= deadline => return Err(error),
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            }
        }
    }

    async fn mount(&self) -> Result<()> {
        let (image, mount) = (
            self.image.display().to_string(),
            self.mount.display().to_string(),
        );
        run("mount", &["-o", "loop", &image, &mount])
            .await
            .context("loop mounts are not permitted on this machine: run as root")?;
        Ok(())
    }

    /// Fills the disk until `left_mb` megabytes are free.
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
            .context("df printed no number")?;
        let size = format!("{}M", free.saturating_sub(left_mb));
        run("fallocate", &["-l", &size, &self.filler_file()]).await?;
        Ok(())
    }

    pub(crate) fn free_space(&self) -> Result<()> {
        std::fs::remove_file(self.filler_file())?;
        Ok(())
    }

    fn filler_file(&self) -> String {
        self.mount.join("ballast").display().to_string()
    }
}
