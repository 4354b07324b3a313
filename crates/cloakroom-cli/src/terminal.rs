//! Reads secrets from the terminal without echo, or from standard input.

use std::io::{BufRead as _, IsTerminal as _, Write as _, stdin};

use anyhow::bail;
use cloakroom_crypto::Sensitive;
use nix::sys::termios::{LocalFlags, SetArg, Termios, tcgetattr, tcsetattr};

/// Longer than any secret that is typed. The buffer never grows, so no copy is left behind.
const LINE_BYTES_MAX: usize = 1024;

/// Shows `prompt` on a terminal and reads a line that is not echoed; otherwise reads a line from standard input.
pub(crate) fn read_secret(prompt: &str) -> anyhow::Result<Sensitive<String>> {
    let silent = match stdin().is_terminal() {
        true => Some(SilentTerminal::start(prompt)?),
        false => None,
    };
    let mut line = Sensitive::new(String::with_capacity(LINE_BYTES_MAX));
    let length = stdin().lock().read_line(line.expose_mut())?;
    drop(silent);
    match length {
        0 => bail!("nothing was entered"),
        LINE_BYTES_MAX.. => bail!("the line is too long"),
        _ => Ok(line),
    }
}

/// A terminal without echo; restored when this is dropped.
struct SilentTerminal(Termios);

impl SilentTerminal {
    fn start(prompt: &str) -> anyhow::Result<Self> {
        print(&format!("{prompt}: "));
        let before = tcgetattr(stdin())?;
        let mut silent = before.clone();
        silent.local_flags.remove(LocalFlags::ECHO);
        tcsetattr(stdin(), SetArg::TCSAFLUSH, &silent)?;
        Ok(Self(before))
    }
}

impl Drop for SilentTerminal {
    fn drop(&mut self) {
        // The terminal is gone if this fails.
        let _ = tcsetattr(stdin(), SetArg::TCSAFLUSH, &self.0);
        print("\n");
    }
}

/// Standard output may be redirected, so prompts go to standard error.
fn print(text: &str) {
    let mut stderr = std::io::stderr();
    let _ = stderr.write_all(text.as_bytes());
    let _ = stderr.flush();
}
