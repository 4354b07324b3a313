//! Measures load time, lookup time and memory of a large BIN table:
//! `cargo run --release -p cloakroom --example bin_table [ROWS [FILE.csv]]`.
//!
//! With a file name, the generated rows are written to that file, for `cloakroom bins import`.

use std::error::Error;
use std::hint::black_box;
use std::io::{BufWriter, Write, stdout};
use std::path::{Path, PathBuf};
use std::time::Instant;

use cloakroom::access::TenantKind;
use cloakroom::bins::{self, BinFile, Bins, CardDetails, Format, Table};

const ROWS: u64 = 3_000_000;
const NUMBERS: usize = 1 << 20;
const BATCH: usize = 512;

const STRETCH: u64 = 100_000;
const SPARSE_STEP: u64 = 5_000;
const CROWDED_STEP: u64 = 500;

/// Maximum duration of a lookup.
const LIMIT_NS: u128 = 1_000;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let rows = arguments.next().map_or(Ok(ROWS), |text| text.parse())?;
    let folder = tempfile::tempdir()?;
    let kept = arguments.next().map(PathBuf::from);
    let path = kept.unwrap_or_else(|| folder.path().join("bins.csv"));
    write_rows(&path, rows)?;

    let started = Instant::now();
    let table = read(path)?;
    let seconds = started.elapsed().as_secs_f64();
    let mut out = stdout();
    writeln!(out, "{:<24}{rows:>12}", "rows")?;
    writeln!(out, "{:<24}{:>12}", "different records", table.records())?;
    writeln!(out, "{:<24}{seconds:>12.1} s", "read, checked, compiled")?;
    let per_row = table.bytes() as f64 / rows as f64;
    writeln!(
        out,
        "{:<24}{:>12} KiB",
        "table in memory",
        table.bytes() / 1024
    )?;
    writeln!(out, "{:<24}{per_row:>12.1} bytes", "per row")?;
    writeln!(out, "{:<24}{:>12} KiB", "peak of this process", peak_kib())?;

    let numbers = numbers(rows);
    measure("look-up", &numbers, |number| table.holds(number))?;
    let bins = Bins::holding(table);
    measure("card details", &numbers, |number| {
        CardDetails::of(&bins, TenantKind::Production, number).is_some()
    })?;
    Ok(())
}

/// The first ten digits of a row. Two of three sections are dense, as in real tables.
fn low_of(row: u64) -> u64 {
    let sparse = row / (3 * STRETCH) * STRETCH + (row % (3 * STRETCH)).min(STRETCH);
    2_000_000_000 + row * CROWDED_STEP + sparse * (SPARSE_STEP - CROWDED_STEP)
}

fn step_of(row: u64) -> u64 {
    match row / STRETCH % 3 {
        0 => SPARSE_STEP,
        _ => CROWDED_STEP,
    }
}

/// Writes rows: prefixes of ten digits with gaps after half of them, and one full card number in ten. Many rows share
/// issuer and product.
fn write_rows(path: &Path, rows: u64) -> std::io::Result<()> {
    let mut out = BufWriter::new(std::fs::File::create(path)?);
    writeln!(
        out,
        "low,high,bin_length,brand,funding,segment,issuer_name,issuer_country,product_code,\
         authentication,additional"
    )?;
    let funding = ["credit", "debit", "prepaid"];
    let segment = ["Consumer", "Business", "Commercial", "Government"];
    let country = ["US", "FR", "DE", "BM", "BR", "JP", "GB", "TR"];
    for row in 0..rows {
        let issuer = row.wrapping_mul(2_654_435_761) % 20_000;
        let low = low_of(row);
        let high = low + step_of(row) / (1 + row % 2) - 1;
        let (low, high) = match row % 10 {
            9 => (format!("{low}000000"), format!("{high}999999")),
            _ => (low.to_string(), high.to_string()),
        };
        writeln!(
            out,
            "{low},{high},8,,{},{},Bank number {issuer},{},P{},{},",
            funding[(issuer % 3) as usize],
            segment[(row / 7 % 4) as usize],
            country[(issuer % 8) as usize],
            issuer % 50,
            if issuer.is_multiple_of(5) { "true" } else { "" },
        )?;
    }
    out.flush()
}

fn read(path: PathBuf) -> Result<Table, bins::Error> {
    let file = BinFile {
        path,
        format: Format::Csv,
        is_padded: false,
    };
    bins::read(&file, &mut |_| {})
}

/// Card numbers of random rows and of the gaps after them, in an order that the CPU cannot prefetch.
fn numbers(rows: u64) -> Vec<String> {
    let mut state = 0x2545_F491_4F6C_DD1D_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut number = || {
        let row = next() % rows;
        (low_of(row) * 1_000_000 + next() % (step_of(row) * 1_000_000)).to_string()
    };
    (0..NUMBERS).map(|_| number()).collect()
}

/// Prints the median over many batches. A batch is short, so that other processes rarely preempt it, and looks up
/// numbers that no earlier batch did, as requests do.
fn measure(name: &str, numbers: &[String], ask: impl Fn(&str) -> bool) -> std::io::Result<()> {
    let mut found = 0;
    let batch = |batch: &[String]| {
        let start = Instant::now();
        found += batch.iter().filter(|number| ask(black_box(number))).count();
        start.elapsed().as_nanos() / batch.len() as u128
    };
    let mut batches: Vec<u128> = numbers.chunks(BATCH).map(batch).collect();
    batches.sort_unstable();
    let nanoseconds = batches.get(batches.len() / 2).copied().unwrap_or_default();
    let cells = usize::try_from(nanoseconds * 40 / LIMIT_NS)
        .unwrap_or(40)
        .min(40);
    let bar = format!("{:#<cells$}{:.<2$}", "", "", 40 - cells);
    let share = found * 100 / numbers.len();
    writeln!(
        stdout(),
        "{name:<24}{nanoseconds:>12} ns  [{bar}] of {LIMIT_NS} ns, {share}% found"
    )
}

/// Peak resident set size of this process.
fn peak_kib() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let words = line.and_then(|line| line.split_whitespace().nth(1));
    words.unwrap_or("?").to_owned()
}
