//! Runs the official clients, unmodified, and other test suites against a temporary vault.

mod methods;
mod report;
mod sdk;
mod vault;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use clap::ValueEnum;
use cloakroom_devtools::{packages, process, servers, workspace};
use methods::{Methods, Unsupported};
use report::Report;
use sdk::{Effort, Sdk};
use vault::Vault;

use crate::programs;

/// Exit code of all test runners after a complete run with failures.
const TESTS_FAILED: i32 = 1;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Run this suite only; may be given several times
    #[arg(long, value_enum)]
    sdk: Vec<Sdk>,
    /// Seed of the random requests of Schemathesis
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of nodes; several are behind HAProxy, which distributes requests round robin
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    nodes: u8,
    /// Run this program instead of building one
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// Extended run of Schemathesis, up to an hour
    #[arg(long)]
    long: bool,
}

/// Suites at a time: they wait for browsers, timeouts and limits more than they compute.
const LANES: usize = 3;

/// A completed run of a suite.
struct Run {
    sdk: Sdk,
    report: Report,
    /// Reported by the suites of official clients.
    methods: Option<Methods>,
    took: Duration,
}

/// Vaults beside the one under test.
struct MoreVaults {
    /// For the deletion of its tenant.
    spare: Vault,
    limited: Vault,
}

impl MoreVaults {
    fn start(program: &Path, nodes: u8) -> Result<Self> {
        Ok(Self {
            spare: Vault::start_spare(program)?,
            limited: Vault::start_limited(program, nodes)?,
        })
    }
}

pub(crate) fn run(arguments: Arguments) -> Result<()> {
    let effort = Effort {
        seed: arguments.seed,
        is_long: arguments.long,
    };
    let is_chosen = |sdk: &Sdk| arguments.sdk.is_empty() || arguments.sdk.contains(sdk);
    let sdks: Vec<Sdk> = Sdk::value_variants()
        .iter()
        .copied()
        .filter(is_chosen)
        .collect();
    let folder = folder();
    fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    for sdk in &sdks {
        sdk.install(&folder)?;
    }
    servers::install_missing()?;
    if arguments.nodes > 1 {
        packages::require(&[("haproxy", "haproxy")])?;
    }
    let program = match &arguments.binary {
        Some(program) => std::path::absolute(program)?,
        None => programs::build("cloakroom")?,
    };

    // A failed suite does not stop the others, so that the table is complete.
    let runs = run_beside(&sdks, |sdk| {
        run_and_repeat(|| run_suite(sdk, effort, &program, arguments.nodes, &folder))
    })?;
    let mut failures = summarize(&runs);
    failures.extend(summarize_methods(&runs, &folder)?);
    if !failures.is_empty() {
        for failure in runs.iter().flat_map(|run| run.report.failures()) {
            report_progress(&format!("FAILED {failure}"));
        }
        bail!("{}", failures.join("; "));
    }
    Ok(())
}

/// Runs the suites side by side, each with its vaults and output. Returns the results in the order of the suites.
fn run_beside(sdks: &[Sdk], run: impl Fn(Sdk) -> Result<Run> + Sync) -> Result<Vec<Run>> {
    let next = AtomicUsize::new(0);
    let work = || -> Vec<(usize, Result<Run>)> {
        let mut runs = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            match sdks.get(index) {
                Some(&sdk) => runs.push((index, run(sdk))),
                None => return runs,
            }
        }
    };
    let lanes: Vec<_> = thread::scope(|scope| {
        let lanes: Vec<_> = (0..LANES).map(|_| scope.spawn(work)).collect();
        let joined = lanes.into_iter().map(thread::ScopedJoinHandle::join);
        joined.collect::<Result<_, _>>()
    })
    .map_err(|_| anyhow!("the thread of a suite panicked"))?;
    let mut runs: Vec<_> = lanes.into_iter().flatten().collect();
    runs.sort_by_key(|(index, _)| *index);
    runs.into_iter().map(|(_, run)| run).collect()
}

/// Repeats a suite that failed, once, against a new vault: a busy machine can fail a test that waits for a browser or a
/// limit. What failed the first time is printed, because a defect may be rare.
fn run_and_repeat(run: impl Fn() -> Result<Run>) -> Result<Run> {
    match run() {
        Ok(first) if first.report.failed() == 0 => return Ok(first),
        Ok(first) => {
            for failure in first.report.failures() {
                report_progress(&format!("failed once: {failure}"));
            }
        }
        Err(error) => report_progress(&format!("failed once: {error:#}")),
    }
    run()
}

/// Runs one suite against a vault of its own, independent of data that other suites leave behind.
fn run_suite(sdk: Sdk, effort: Effort, program: &Path, nodes: u8, folder: &Path) -> Result<Run> {
    let file = folder.join(format!("{sdk}-report.jsonl"));
    fs::write(&file, "").with_context(|| file.display().to_string())?;
    let methods = methods_file(sdk, folder);
    fs::write(&methods, "").with_context(|| methods.display().to_string())?;
    let started_at = Instant::now();
    let vault = match sdk {
        Sdk::Elements | Sdk::Shop => Vault::start_with_shop(program, nodes, &sdk::demo_shop())?,
        _ => Vault::start(program, nodes)?,
    };
    let more = match sdk.needs_more_vaults() {
        true => Some(MoreVaults::start(program, nodes)?),
        false => None,
    };
    report_progress(&format!(
        "running the suite of {} against {} ({nodes} nodes)",
        sdk.package(),
        vault.base_url()
    ));
    let mut suite = sdk.suite(folder, effort);
    suite
        .envs(vault.variables())
        .env("CONFORMANCE_REPORT", &file)
        .env("CONFORMANCE_METHODS", &methods);
    if let Some(MoreVaults { spare, limited }) = &more {
        suite.envs(spare.spare_variables());
        suite.envs(limited.limited_variables());
    }
    let log = folder.join(format!("{sdk}.log"));
    let output = fs::File::create(&log).with_context(|| log.display().to_string())?;
    suite.stdout(output.try_clone()?).stderr(output);
    let status = process::run(suite)?;
    print!("{}", String::from_utf8_lossy(&fs::read(&log)?));
    vault.stop()?;
    if let Some(MoreVaults { spare, limited }) = more {
        spare.stop()?;
        limited.stop()?;
    }

    let report = Report::read(&file)?;
    let is_explained = status.code() == Some(TESTS_FAILED) && report.failed() > 0;
    if !status.success() && !is_explained {
        bail!("the {sdk} suite did not finish: {status}");
    }
    let took = started_at.elapsed();
    let methods = if sdk.reports_methods() {
        Some(Methods::read(&methods, &Unsupported::read()?)?)
    } else {
        None
    };
    Ok(Run {
        sdk,
        report,
        methods,
        took,
    })
}

/// Prints the results and returns the failures.
fn summarize(runs: &[Run]) -> Vec<String> {
    let table = report::table(runs.iter().map(|run| &run.report));
    println!("\n{table}\n");
    let mut failures = Vec::new();
    for run in runs {
        let Run {
            sdk, report, took, ..
        } = run;
        let (count, failed) = (report.count(), report.failed());
        let waiting = report.waiting();
        let (passed, seconds) = (count - failed - waiting, took.as_secs_f64());
        let not_yet = match waiting {
            0 => String::new(),
            some => format!(", {some} not yet"),
        };
        report_progress(&format!(
            "{sdk}: {passed} of {count} ok{not_yet} in {seconds:.1} s"
        ));
        if count == 0 {
            failures.push(format!("the {sdk} suite ran no test"));
        } else if failed > 0 {
            failures.push(format!("{failed} of {count} failed with {sdk}"));
        }
    }
    failures
}

/// Prints every method of the clients and returns the failures.
fn summarize_methods(runs: &[Run], folder: &Path) -> Result<Vec<String>> {
    let clients: Vec<&Methods> = runs.iter().filter_map(|run| run.methods.as_ref()).collect();
    if clients.is_empty() {
        return Ok(Vec::new());
    }
    println!("\n{}\n", methods::table(&clients));
    let mut failures: Vec<String> = clients.iter().flat_map(|one| one.failures()).collect();
    let all = Sdk::value_variants().iter();
    let is_complete = clients.len() == all.filter(|sdk| sdk.reports_methods()).count();
    if is_complete {
        for entry in Unsupported::read()?.idle(&clients) {
            failures.push(format!(
                "conformance/unsupported.json: no method matches {entry}"
            ));
        }
        let page = methods::page(&clients);
        let written = folder.join("sdk-methods.md");
        fs::write(&written, &page).with_context(|| written.display().to_string())?;
        let committed = fs::read_to_string(workspace::root().join("docs/api/sdk-methods.md"));
        if failures.is_empty() && committed.ok() != Some(page) {
            let written = written.display();
            failures.push(format!(
                "docs/api/sdk-methods.md is outdated: copy {written} to it"
            ));
        }
    }
    Ok(failures)
}

fn methods_file(sdk: Sdk, folder: &Path) -> PathBuf {
    folder.join(format!("{sdk}-methods.jsonl"))
}

/// The folder of installed suites and their results.
fn folder() -> PathBuf {
    workspace::target_folder().join("conformance")
}

fn report_progress(message: &str) {
    println!("conformance: {message}");
}
