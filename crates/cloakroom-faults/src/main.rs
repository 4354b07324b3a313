//! Injects faults into a real cluster under load and checks that no acknowledged write is lost.
#![expect(clippy::print_stdout, reason = "the program reports its progress")]
#![expect(clippy::print_stderr, reason = "the program reports errors")]

mod arguments;
mod checker;
mod clients;
mod cluster;
mod faults;
mod history;
mod machine_failure;
mod mutation;
mod receiver;
mod report;
mod run;
mod soak;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail, ensure};
use clap::Parser;
use tokio::signal::unix::{SignalKind, signal};

use self::arguments::{Arguments, choose, options, plan};
use self::faults::{FAULTS, Fault};
use self::machine_failure::MachineFailure;
use self::mutation::MUTATIONS;
use self::report::Row;
use self::run::Run;
use self::soak::Soak;

fn main() -> ExitCode {
    match start(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            exit_code(&error)
        }
    }
}

fn exit_code(error: &anyhow::Error) -> ExitCode {
    match error.downcast_ref() {
        Some(MachineFailure) => ExitCode::from(machine_failure::EXIT_CODE),
        None => ExitCode::FAILURE,
    }
}

fn start(arguments: &Arguments) -> Result<()> {
    if arguments.list {
        for fault in FAULTS {
            println!("{:22} {}", fault.name, fault.what);
        }
        println!("\nwith --mutation:");
        for row in MUTATIONS {
            println!("{:22} {} ({})", row.name, row.what, row.fault);
        }
        return Ok(());
    }
    ensure!(
        nix::unistd::Uid::effective().is_root(),
        "faults needs root: it creates network namespaces and mounts disks, and removes them at the end"
    );
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        // Dropping the other future removes the cluster.
        tokio::select! {
            result = run_chosen(arguments) => result,
            _ = interrupt.recv() => bail!("interrupted"),
            _ = terminate.recv() => bail!("terminated"),
        }
    })
}

async fn run_chosen(arguments: &Arguments) -> Result<()> {
    let mutations: Vec<&mutation::MutationTest> = match arguments.mutation.as_deref() {
        None if arguments.short && arguments.names.is_empty() => vec![&MUTATIONS[0]],
        None => Vec::new(),
        Some("all") => MUTATIONS.iter().collect(),
        Some(name) => {
            vec![mutation::find(name).context("there is no such mutation; --list shows all")?]
        }
    };
    let chosen = match arguments.mutation {
        None => choose(arguments)?,
        Some(_) => Vec::new(),
    };
    let old_binary = arguments.old_binary.as_ref();
    let old_binary = old_binary.map(std::path::absolute).transpose()?;
    let plan = plan(arguments, chosen.len());
    let mut run = Run::start(options(arguments)?, plan, old_binary).await?;
    if let Some(minutes) = arguments.soak {
        let soak = Soak {
            minutes,
            json: arguments.json.clone(),
            svg: arguments.svg.clone(),
        };
        return soak.run(&mut run).await;
    }
    if !chosen.is_empty() {
        inject_all(arguments, &mut run, chosen).await?;
    }
    test_mutations(&mut run, &mutations).await
}

/// Runs mutation tests: the checker must report a violation of the expected invariant.
async fn test_mutations(run: &mut Run, rows: &[&mutation::MutationTest]) -> Result<()> {
    let mut results = Vec::new();
    let mut undetected = Vec::new();
    for row in rows {
        println!("faults: mutation {}: {}", row.name, row.what);
        let fault = faults::find(row.fault).context("a mutation of an unknown fault")?;
        let result = match run.inject_with(fault, Some(row.mutation)).await {
            Ok(result) => result,
            // The undetected mutations outrank it.
            Err(error) if !undetected.is_empty() => {
                eprintln!("error: {error:#}");
                break;
            }
            Err(error) => return Err(error),
        };
        let is_detected = result.violates(row.invariant);
        if !is_detected {
            undetected.push(row.name);
        }
        println!("faults: mutation {}: {}", row.name, verdict(is_detected));
        results.push([
            row.name,
            row.fault,
            row.invariant.name(),
            verdict(is_detected),
        ]);
    }
    if !results.is_empty() {
        println!("\n{}\n", report::mutations(&results));
    }
    ensure!(
        undetected.is_empty(),
        "the checker did not detect {}",
        undetected.join(", ")
    );
    Ok(())
}

fn verdict(is_detected: bool) -> &'static str {
    if is_detected {
        "detected"
    } else {
        "NOT DETECTED"
    }
}

async fn inject_all(
    arguments: &Arguments,
    run: &mut Run,
    chosen: Vec<&'static Fault>,
) -> Result<()> {
    let mut rows = Vec::new();
    let injected = inject_each(run, chosen, &mut rows, arguments.json.as_deref()).await;
    // Report the results of an aborted run too.
    println!("\n{}\n", report::table(&rows));
    let acknowledged: u64 = rows.iter().map(|row| row.acknowledged).sum();
    println!(
        "faults: {acknowledged} acknowledged writes in {:.0} s",
        run.seconds()
    );
    let failed: Vec<&str> = rows
        .iter()
        .filter(|row| !row.is_ok())
        .map(|row| row.fault.as_str())
        .collect();
    ensure!(
        failed.is_empty(),
        "invariants were violated at {}",
        failed.join(", ")
    );
    // A violation outranks a failure of the machine, which would be retried.
    run.require_no_violations()?;
    injected
}

async fn inject_each(
    run: &mut Run,
    chosen: Vec<&'static Fault>,
    rows: &mut Vec<Row>,
    json: Option<&Path>,
) -> Result<()> {
    let mut add = |row: Row| {
        print_row(&row);
        rows.push(row);
        match json {
            Some(file) => std::fs::write(file, serde_json::to_string_pretty(rows)?)
                .with_context(|| file.display().to_string()),
            None => Ok(()),
        }
    };
    for fault in chosen {
        add(run.inject(fault).await?)?;
    }
    add(run.check_all().await?)
}

fn print_row(row: &Row) {
    let verdict = if row.is_ok() { "ok" } else { "FAILED" };
    println!(
        "faults: {}: {verdict}, {} acknowledged, {} tokens, writes unavailable for {:.1} s, {:.0} s in total",
        row.fault, row.acknowledged, row.tokens, row.writes_away_s, row.seconds
    );
    for violation in &row.violations {
        println!("  {violation}");
    }
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    #[test]
    fn only_failures_of_the_machine_can_be_retried() {
        let violated = anyhow!("invariants were violated at power-cut");
        let busy = anyhow!("umount: target is busy").context(MachineFailure);

        assert_eq!(exit_code(&violated), ExitCode::FAILURE);
        assert_eq!(exit_code(&busy.context("power-cut")), ExitCode::from(75));
    }
}
