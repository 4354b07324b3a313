//! `cloakroom threeds-simulator`, for people and for programs.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::support::{cloakroom, first_line, outcome};

const LOCAL: [&str; 4] = ["--listen", "127.0.0.1:0", "--acs-listen", "127.0.0.1:0"];

#[test]
fn programs_get_one_json_line_working_certificates_and_a_clean_end() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = cloakroom(&["threeds-simulator", "--json", "--folder"]);
    command.arg(folder.path()).args(LOCAL);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let ready: Value = serde_json::from_str(&first_line(&mut child)).unwrap();
    let said = |name: &str| ready[name].as_str().unwrap().to_owned();
    assert_eq!(ready["directory_urls"].as_array().unwrap().len(), 7);
    for file in ["ca_file", "certificate_file", "key_file"] {
        assert!(Path::new(&said(file)).is_file(), "{file}");
    }
    let url = ready["directory_urls"][0]["url"].as_str().unwrap();
    let ask = |more: &[&str]| {
        let mut curl = Command::new("curl");
        curl.args([
            "-s",
            "--noproxy",
            "*",
            "--cacert",
            &said("ca_file"),
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
    let (certificate, key) = (said("certificate_file"), said("key_file"));
    let (_, answer) = ask(&["--cert", &certificate, "--key", &key]);
    assert!(answer.contains("\"errorCode\":\"101\""), "{answer}");
    assert!(!ask(&[]).0, "nobody gets in without a certificate");

    let mut kill = Command::new("kill");
    assert!(kill.arg(child.id().to_string()).status().unwrap().success());
    assert!(child.wait().unwrap().success());
}

#[test]
fn other_machines_cannot_reach_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = cloakroom(&["threeds-simulator", "--listen", "0.0.0.0:0", "--folder"]);
    command.arg(folder.path());
    let refused = outcome(command);
    assert!(!refused.success);
    assert!(refused.stderr.contains("loopback"), "{}", refused.stderr);
}
