//! Files for packages, made from the definition of the command line: shell completions and manual pages.

use std::io::{ErrorKind, Write as _};
use std::path::Path;

use anyhow::Context as _;
use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::Arguments;

pub(crate) fn print_completions(shell: Shell) -> anyhow::Result<()> {
    let mut command = Arguments::command();
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, "cloakroom", &mut script);
    match std::io::stdout().write_all(&script) {
        // The reader has closed the pipe.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => Ok(written?),
    }
}

/// Writes `cloakroom.1`, and one page for each subcommand, such as `cloakroom-tenant-create.1`.
pub(crate) fn write_man_pages(folder: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(Arguments::command(), folder))
        .with_context(|| format!("cannot write manual pages to {}", folder.display()))
}
