//! Python packages of the tests, installed once into a virtual environment below `target`.

use std::path::{Path, PathBuf};
use std::process::Command;

use cloakroom_devtools::packages;

/// The folder with the programs of the environment. Tests run in parallel processes, so a lock file guards the install.
pub(crate) fn programs() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let environment = target.join("custody-python");
    let requirements =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/providers/requirements.txt");
    let expected = std::fs::read(&requirements).unwrap();
    std::fs::create_dir_all(target).unwrap();
    let lock = std::fs::File::create(target.join("custody-python.lock")).unwrap();
    lock.lock().unwrap();
    let installed = environment.join("installed-requirements.txt");
    if std::fs::read(&installed).is_ok_and(|installed| installed == expected) {
        return environment.join("bin");
    }
    let mut python = Command::new("python3");
    python.args(["-m", "venv", "--clear"]).arg(&environment);
    if !python.status().is_ok_and(|status| status.success()) {
        packages::install(&["python3", "python3-venv"]).unwrap();
        assert!(python.status().unwrap().success());
    }
    let pip = Command::new(environment.join("bin/python"))
        .args(["-m", "pip", "install", "--disable-pip-version-check"])
        .args(["--quiet", "--require-hashes", "--only-binary", ":all:"])
        .arg("--requirement")
        .arg(&requirements)
        .status();
    assert!(pip.unwrap().success());
    std::fs::write(installed, expected).unwrap();
    environment.join("bin")
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
