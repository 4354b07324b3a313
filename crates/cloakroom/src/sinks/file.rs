//! Appends checkpoints to a file, one line of JSON each.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;

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
    let mut text = String::new();
    // A crash may have cut off the last line.
    if !ends_with_line(path)? {
        text.push('\n');
    }
    for shipment in page {
        text.push_str(&shipment.line());
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
