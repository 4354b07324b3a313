//! Python packages of the tests, installed once into a virtual environment below `target`.

use std::path::{Path, PathBuf};
use std::process::Command;

use cloakroom_devtools::python;

/// The folder with the programs of the environment.
pub(crate) fn programs() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let requirements =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/providers/requirements.txt");
    python::environment(target, "custody-python", &requirements).unwrap()
}

/// Runs a program, which must succeed.
pub(crate) async fn run(program: String) {
    let output = tokio::task::spawn_blocking(move || {
        Command::new(programs().join("python"))
            .args(["-c", &program])
            .output()
    });
    let output = output.await.unwrap().unwrap();
    assert!(output.status.success(), "{output:?}");
}
