//! Archives days of the audit log as files that are verified by themselves, before retention removes them.

use std::fs::File;
use std::io::{BufReader, BufWriter, Error as IoError};
use std::path::{Path, PathBuf};

use super::chains::day::{day_of, start_of_day};
use super::verify::export::{Error as ExportError, export, read_records};
use super::verify::verify_export;
use super::{Audit, Finding, store};

/// A day is closed ten minutes after its end; the archive waits until the next one has ended too, so that nodes with a wrong
/// clock or a long outage are included.
const DAYS_OPEN: i32 = 2;
const BUFFER_BYTES: usize = 1024 * 1024;

/// A day that was written to a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchivedDay {
    /// Such as `2030-02-05`.
    pub date: String,
    pub file: PathBuf,
    pub entries: u64,
}

#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    #[error(transparent)]
    Export(#[from] ExportError),
    #[error("{path} cannot be written: {source}")]
    File { path: PathBuf, source: IoError },
    /// The day is not archived: the file would not verify.
    #[error("the audit log of {date} was tampered with: {finding}")]
    Altered { date: String, finding: Finding },
}

/// Writes each complete day that the folder does not have yet, the oldest first, and verifies it. Interrupted, it leaves no
/// file that looks complete.
pub async fn archive(audit: &Audit, folder: &Path) -> Result<Vec<ArchivedDay>, ArchiveError> {
    let now = audit.writers.clock.synchronize().await;
    let last = day_of(now.map_err(ExportError::from)?) - DAYS_OPEN;
    let first = store::first_day(&audit.writers.db).await;
    let Some(first) = first.map_err(ExportError::from)? else {
        return Ok(Vec::new());
    };
    let mut archived = Vec::new();
    for day in first..=last {
        let date = start_of_day(day).strftime("%Y-%m-%d").to_string();
        let file = folder.join(format!("{date}.jsonl"));
        if file.exists() {
            continue;
        }
        if let Some(entries) = archive_day(audit, day, &date, &file).await? {
            archived.push(ArchivedDay {
                date,
                file,
                entries,
            });
        }
    }
    Ok(archived)
}

/// Archives one day; `None` if it has no entries.
async fn archive_day(
    audit: &Audit,
    day: i32,
    date: &str,
    file: &Path,
) -> Result<Option<u64>, ArchiveError> {
    let unwritable = |source| ArchiveError::File {
        path: file.to_owned(),
        source,
    };
    let partial = file.with_extension("partial");
    let output = File::create(&partial).map_err(unwritable)?;
    let writer = BufWriter::with_capacity(BUFFER_BYTES, &output);
    let entries = export(audit, day..=day, writer, |_| {}).await?;
    if entries == 0 {
        std::fs::remove_file(&partial).map_err(unwritable)?;
        return Ok(None);
    }
    output.sync_all().map_err(unwritable)?;
    let input = File::open(&partial).map_err(unwritable)?;
    let records = read_records(BufReader::with_capacity(BUFFER_BYTES, input));
    let mut verified = verify_export(records, audit.authorities(), day..=day, None, |_| {})?;
    if !verified.findings.is_empty() {
        std::fs::remove_file(&partial).map_err(unwritable)?;
        return Err(ArchiveError::Altered {
            date: date.to_owned(),
            finding: verified.findings.swap_remove(0),
        });
    }
    std::fs::rename(&partial, file).map_err(unwritable)?;
    Ok(Some(entries))
}
