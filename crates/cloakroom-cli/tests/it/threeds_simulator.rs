//! `cloakroom threeds-simulator`, used interactively and by scripts.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::support::{cloakroom, first_line, outcome};

const LOCAL: [&str; 4] = ["--listen", "127.0.0.1:0", "--acs-listen", "127.0.0.1:0"];

#[test]
fn json_output_describes_a_working_simulator_that_stops_cleanly() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = cloakroom(&["threeds-simulator", "--json", "--folder"]);
    command.arg(folder.path()).args(LOCAL);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let ready: Value = serde_json::from_str(&first_line(&mut child)).unwrap();
    let field = |name: &str| ready[name].as_str().unwrap().to_owned();
    assert_eq!(ready["directory_urls"].as_array().unwrap().len(), 7);
    for file in ["ca_file", "certificate_file", "key_file"] {
        assert!(Path::new(&field(file)).is_file(), "{file}");
    }
    let url = ready["directory_urls"][0]["url"].as_str().unwrap();
    let post = |more: &[&str]| {
        let mut curl = Command::new("curl");
        curl.args([
            "-s",
            "--noproxy",
            "*",
            "--cacert",
            &field("ca_file"),
            "-d",
            "{}",
            url,
        ]);
        let output = curl.args(more).output().unwrap();
        (
            output.status.success(),
            String::from_utf8(output.stdout).unwrap(),
        )
    };
    let (certificate, key) = (field("certificate_file"), field("key_file"));
    let (_, response) = post(&["--cert", &certificate, "--key", &key]);
    assert!(response.contains("\"errorCode\":\"101\""), "{response}");
    assert!(!post(&[]).0, "a client without a certificate was accepted");

    let mut kill = Command::new("kill");
    assert!(kill.arg(child.id().to_string()).status().unwrap().success());
    assert!(child.wait().unwrap().success());
}

#[test]
fn only_loopback_addresses_are_accepted() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = cloakroom(&["threeds-simulator", "--listen", "0.0.0.0:0", "--folder"]);
    command.arg(folder.path());
    let rejected = outcome(command);
    assert!(!rejected.success);
    assert!(rejected.stderr.contains("loopback"), "{}", rejected.stderr);
}
