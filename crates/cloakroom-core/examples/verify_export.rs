//! Writes an export with any number of synthetic entries, verifies it, and prints the rate and the memory used.
//!
//! `cargo run --release -p cloakroom-core --example verify_export -- 10000000 /tmp/log.jsonl`

use std::fs::File;
use std::io::{BufReader, BufWriter};
use std::time::Instant;

use cloakroom_core::audit::{ALL_DAYS, SyntheticLog, read_records, verify_export, write_synthetic};

const BUFFER_BYTES: usize = 1024 * 1024;
/// Entries in each batch.
const BATCH: u64 = 20;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["verify", file, key] => verify(file, key),
        [entries, file] => write(entries.parse()?, file, BATCH),
        [entries, file, batch] => write(entries.parse()?, file, batch.parse()?),
        _ => Err("usage: verify_export ENTRIES FILE [BATCH]".into()),
    }
}

/// Writes the export, and verifies it in a process of its own, whose memory is measured.
#[expect(clippy::print_stdout, reason = "prints its results")]
fn write(entries: u64, file: &str, batch: u64) -> Result<(), Box<dyn std::error::Error>> {
    let started_at = Instant::now();
    let output = BufWriter::with_capacity(BUFFER_BYTES, File::create(file)?);
    let key = write_synthetic(output, SyntheticLog { entries, batch })?;
    println!(
        "wrote {entries} entries in batches of {batch}, {} MB, in {:.0} s",
        std::fs::metadata(file)?.len() / 1_000_000,
        started_at.elapsed().as_secs_f64()
    );
    let mut verify = std::process::Command::new(std::env::current_exe()?);
    verify.args(["verify", file, &hex::encode(key)]);
    match verify.status()?.success() {
        true => Ok(()),
        false => Err("the export does not verify".into()),
    }
}

#[expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "prints its results"
)]
fn verify(file: &str, key: &str) -> Result<(), Box<dyn std::error::Error>> {
    let key: [u8; 32] = hex::decode(key)?
        .try_into()
        .map_err(|_| "the key must have 32 bytes")?;
    let started_at = Instant::now();
    let input = BufReader::with_capacity(BUFFER_BYTES, File::open(file)?);
    let verified = verify_export(
        read_records(input),
        vec![key.into()],
        ALL_DAYS,
        None,
        |entries| {
            eprint!("\r{entries} entries");
        },
    )?;
    let seconds = started_at.elapsed().as_secs_f64();
    eprintln!();
    println!(
        "verified {} entries and {} checkpoints of {} days in {seconds:.1} s: {:.0} entries per second, {} findings, \
         peak memory {} kB",
        verified.records,
        verified.checkpoints,
        verified.days,
        verified.records as f64 / seconds,
        verified.finding_count,
        peak_memory()?
    );
    Ok(())
}

/// The peak resident set size in kB.
fn peak_memory() -> Result<String, std::io::Error> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak = peak.unwrap_or_default().trim().trim_end_matches(" kB");
    Ok(peak.to_owned())
}
