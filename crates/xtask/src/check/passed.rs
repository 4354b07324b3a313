//! Which steps have passed, with which files. A step whose files are the same again need not run again.
//!
//! The records are below the target folder: a machine knows what it ran itself, and a new machine runs everything.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use cloakroom_devtools::workspace;
use serde::{Deserialize, Serialize};
use tempfile::TempDir;

use super::steps::Step;

/// A step runs at least every tenth time, whatever has changed: its inputs may be incomplete.
const SKIPS_MAX: u32 = 9;

/// The files of the working copy, including those that are not committed.
pub(super) struct WorkingCopy {
    /// An index of git with all of them. The developer's own index stays as it is.
    index: PathBuf,
    _folder: TempDir,
    commit: String,
    compiler: String,
}

/// That a step passed.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Passed {
    digest: String,
    /// The commit at which it ran last.
    pub commit: String,
    skips: u32,
}

impl WorkingCopy {
    pub(super) fn read() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let index = folder.path().join("index");
        git(&["add", "--all", "."], |git| {
            git.env("GIT_INDEX_FILE", &index);
        })?;
        Ok(Self {
            index,
            _folder: folder,
            commit: git(&["rev-parse", "--short=12", "HEAD"], |_| {})?,
            compiler: output(Command::new("rustc").arg("--version"))?,
        })
    }

    /// Of everything that decides the result of a step.
    fn digest(&self, step: &Step) -> Result<String> {
        let mut words = vec!["ls-files", "--stage", "--"];
        words.extend(step.inputs.iter().copied().flatten());
        let files = git(&words, |git| {
            git.env("GIT_INDEX_FILE", &self.index);
        })?;
        ensure!(
            !files.is_empty(),
            "no file matches the inputs of {}",
            step.name
        );
        let text = format!("{}\n{}\n{files}", self.compiler, step.words.join(" "));
        let file = self.index.with_file_name("text");
        fs::write(&file, text)?;
        git(&["hash-object", "--", &file.display().to_string()], |_| {})
    }

    /// When the step passed with the same files, if it may be skipped now. Counts the skip.
    pub(super) fn skip(&self, step: &Step) -> Result<Option<Passed>> {
        if step.inputs.is_empty() {
            return Ok(None);
        }
        let file = record(step);
        let Some(mut passed) = fs::read(&file)
            .ok()
            .and_then(|text| serde_json::from_slice::<Passed>(&text).ok())
        else {
            return Ok(None);
        };
        if passed.skips >= SKIPS_MAX || passed.digest != self.digest(step)? {
            return Ok(None);
        }
        passed.skips += 1;
        write(step, &passed)?;
        Ok(Some(passed))
    }

    /// Records that a step passed with these files.
    pub(super) fn record(&self, step: &Step) -> Result<()> {
        if step.inputs.is_empty() {
            return Ok(());
        }
        let passed = Passed {
            digest: self.digest(step)?,
            commit: self.commit.clone(),
            skips: 0,
        };
        write(step, &passed)
    }
}

fn record(step: &Step) -> PathBuf {
    let folder = workspace::target_folder().join("passed");
    folder.join(format!("{}.json", step.name))
}

fn write(step: &Step, passed: &Passed) -> Result<()> {
    let file = record(step);
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    }
    let text = serde_json::to_string(passed)?;
    fs::write(&file, text).with_context(|| file.display().to_string())
}

/// The output of git in the workspace.
pub(super) fn git(words: &[&str], change: impl FnOnce(&mut Command)) -> Result<String> {
    let mut command = Command::new("git");
    command.args(words).current_dir(workspace::root());
    change(&mut command);
    output(&mut command)
}

fn output(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("{command:?}"))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?}: {}", errors.trim());
    Ok(String::from_utf8(output.stdout)?.trim_end().to_owned())
}
