//! CPU profiles of the node under load.

use std::path::{Path, PathBuf};

use anyhow::Result;
use tokio::process::Command;

use super::command::capture;
use super::load::Operation;
use super::stage::Stage;

/// Samples per second. Not a round number, to avoid sampling in step with periodic work.
const FREQUENCY: &str = "--freq=499";

pub(super) struct Perf<'a> {
    folder: &'a Path,
    call_graph: Option<&'a str>,
}

impl<'a> Perf<'a> {
    pub(super) fn new(folder: &'a Path, call_graph: Option<&'a str>) -> Result<Self> {
        std::fs::create_dir_all(folder)?;
        Ok(Self { folder, call_graph })
    }

    /// Runs one operation on the maximum number of connections and writes its profile.
    pub(super) async fn record(&self, stage: &Stage, operation: Operation) -> Result<()> {
        let (connections, seconds) = (stage.plan.connections_max(), stage.plan.measured_s);
        let samples = stage.folder.path().join("perf.data");
        let mut record = Command::new("perf");
        record
            .args(["record", "--quiet", FREQUENCY])
            .arg(format!("--pid={}", stage.node.pid))
            .arg("--output")
            .arg(&samples)
            .args(self.call_graph.map(|how| format!("--call-graph={how}")))
            .args(["--", "sleep"])
            .arg(seconds.to_string());
        // The load runs slightly longer than the sampling.
        tokio::try_join!(
            capture(record),
            stage.load.run(operation, connections, seconds + 1)
        )?;

        let mut report = Command::new("perf");
        report
            .args(["report", "--stdio", "--no-children", "--percent-limit=0.5"])
            // Resolving inlined callers takes minutes in a program with line tables.
            .arg("--no-inline")
            .arg("--input")
            .arg(&samples);
        let file = self.file(operation);
        std::fs::write(&file, capture(report).await?)?;
        println!("bench: wrote {}", file.display());
        Ok(())
    }

    fn file(&self, operation: Operation) -> PathBuf {
        let name = operation.name().replace(' ', "-");
        self.folder.join(name).with_extension("txt")
    }
}
