//! Appends checkpoints to a file, one line of JSON each.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use cloakroom_core::audit::Shipment;
use serde::Deserialize;

use super::Error;

/// Longer than two lines.
const TAIL_BYTES: u64 = 16 * 1024;

#[derive(Deserialize)]
struct Line {
    number: i64,
}

/// Appends checkpoints and waits until they are on the disk.
pub(super) fn append(path: &Path, page: &[Shipment]) -> Result<(), Error> {
    let lines: Vec<String> = page.iter().map(Shipment::line).collect();
    append_lines(path, &lines)
}

/// Appends lines and waits until they are on the disk.
pub(super) fn append_lines(path: &Path, lines: &[String]) -> Result<(), Error> {
    let mut text = String::new();
    // A crash may have cut off the last line.
    if !ends_with_line(path)? {
        text.push('\n');
    }
    for line in lines {
        text.push_str(line);
        text.push('\n');
    }
    let mut file = OpenOptions::new().create(true).append(true).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_data()?;
    Ok(())
}

/// The number of the last checkpoint in the file, 0 if there is none.
pub fn last_number(path: &Path) -> io::Result<i64> {
    let numbers = tail(path)?
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .map(|line: Line| line.number)
        .next_back();
    Ok(numbers.unwrap_or_default())
}

/// The position of a stream in the file beside its own, 0 if there is none.
pub(super) fn read_position(path: &Path) -> Result<i64, Error> {
    match std::fs::read_to_string(position_path(path)) {
        Ok(text) => text.trim().parse().map_err(|_| Error::Position),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(error.into()),
    }
}

/// The file with the position of a sink: the number of the last checkpoint of the sink, which may be in a file that was rotated.
fn position_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".position");
    PathBuf::from(name)
}

/// Replaces the position as a whole.
pub(super) fn write_position(path: &Path, checkpoint: i64) -> Result<(), Error> {
    let path = position_path(path);
    let mut new = path.clone();
    new.set_extension("position.new");
    let mut file = File::create(&new)?;
    writeln!(file, "{checkpoint}")?;
    file.sync_data()?;
    std::fs::rename(&new, &path)?;
    Ok(())
}

fn ends_with_line(path: &Path) -> io::Result<bool> {
    let tail = tail(path)?;
    Ok(tail.is_empty() || tail.ends_with('\n'))
}

/// The end of the file; nothing if it does not exist.
fn tail(path: &Path) -> io::Result<String> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(String::new()),
        Err(error) => return Err(error),
    };
    let length = file.seek(SeekFrom::End(0))?;
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shipment(number: i64) -> Shipment {
        Shipment {
            number,
            note: format!("note {number}\n"),
        }
    }

    #[test]
    fn a_file_continues_after_its_last_complete_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("checkpoints.jsonl");
        assert_eq!(last_number(&path).unwrap(), 0);

        append(&path, &[shipment(1), shipment(2)]).unwrap();
        assert_eq!(last_number(&path).unwrap(), 2);

        // A crash while line 3 was written.
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(b"{\"number\":3,\"no").unwrap();
        assert_eq!(last_number(&path).unwrap(), 2);
        append(&path, &[shipment(3)]).unwrap();
        assert_eq!(last_number(&path).unwrap(), 3);
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().count(), 4);
    }
}
