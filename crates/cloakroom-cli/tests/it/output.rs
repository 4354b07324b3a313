//! `--output json`: what scripts read from the commands of an operator.

use serde_json::Value;

use crate::support::{Deployment, word_after};

/// Runs a command and returns its success and its JSON.
fn run(deployment: &Deployment, words: &str) -> (bool, Value) {
    let words: Vec<&str> = words.split(' ').chain(["--output", "json"]).collect();
    let outcome = deployment.run(&words);
    let parsed = serde_json::from_str(&outcome.stdout);
    let parsed = parsed
        .unwrap_or_else(|error| panic!("{words:?}: {error}: {}{}", outcome.stdout, outcome.stderr));
    (outcome.success, parsed)
}

/// The JSON of a command that must succeed.
fn json(deployment: &Deployment, words: &str) -> Value {
    let (success, object) = run(deployment, words);
    assert!(success, "{words}: {object}");
    object
}

/// A migrated deployment with a tenant, and the tenant's id.
fn with_tenant() -> (Deployment, String) {
    let deployment = Deployment::start();
    deployment.run_ok(&["migrate"]);
    let tenant = deployment.run_ok(&["tenant", "create", "--name", "T", "--type", "test"]);
    let tenant = word_after(&tenant, "tenant ");
    (deployment, tenant)
}

#[test]
fn commands_that_set_up_a_vault_print_json() {
    let deployment = Deployment::start();
    let other = deployment.path("other.key").display().to_string();

    let created = json(&deployment, &format!("root-key create {other}"));
    let checked = json(&deployment, "config check");
    let migrated = json(&deployment, "migrate");
    let again = json(&deployment, "migrate");

    assert_eq!(created["file"], other);
    assert!(created["created_by"].is_string(), "{created}");
    assert_eq!(created.as_object().unwrap().len(), 2, "{created}");
    assert_eq!(checked["valid"], true);
    assert_eq!(checked["complete"], true);
    assert!(migrated["applied"][0]["number"].is_number(), "{migrated}");
    assert_eq!(again["applied"].as_array().unwrap().len(), 0);
}

#[test]
fn commands_of_a_tenant_print_json() {
    let (deployment, tenant) = with_tenant();
    let json = |words: &str| json(&deployment, words);
    let create = "app create --name A --type private --permission token:read";
    let app = json(&format!("{create} --tenant {tenant}"))["id"].clone();
    let app = app.as_str().unwrap();
    let file = deployment.path("tokens.jsonl");
    let lines = "{\"type\": \"token\", \"data\": \"secret\"}\n{\"type\": \"unknown\"}\n";
    std::fs::write(&file, lines).unwrap();

    let permit = format!("app permit --tenant {tenant} --app {app} token:create");
    let permitted = json(&permit);
    let import = format!(
        "import --tenant {tenant} --app {app} --name I {}",
        file.display()
    );
    let (is_complete, imported) = run(&deployment, &import);
    let rotated = json(&format!("key rotate --purpose data --tenant {tenant}"));
    let retired = json("key retire --purpose index --all");
    let exports = json(&format!("export list --tenant {tenant}"));

    assert_eq!(permitted["added"][0], "token:create");
    assert!(!is_complete, "a line was rejected");
    assert_eq!(imported["created"], 1);
    assert_eq!(imported["rejected"], 1);
    assert_eq!(imported["rejected_lines"][0]["line"], 2);
    assert_eq!(rotated[0]["purpose"], "data");
    assert_eq!(rotated[0]["version"], 2);
    assert!(retired[0]["error"].is_string(), "{retired}");
    assert_eq!(exports.as_array().unwrap().len(), 0);
}

#[test]
fn commands_of_the_audit_log_and_the_bin_table_print_json() {
    let (deployment, _) = with_tenant();
    let json = |words: &str| json(&deployment, words);
    let log = deployment.path("log.jsonl").display().to_string();
    let ledger = deployment.path("ledger.jsonl").display().to_string();

    let shown = json("bins show 411111");
    let status = json("bins status");
    let verified = json("audit verify");
    let exported = json(&format!("audit export {log}"));
    let keys = json("audit public-key");
    let key = keys[0].as_str().unwrap();
    let of_file = json(&format!("audit verify --export {log} --public-key {key}"));
    let written = json(&format!("erasures write {ledger}"));
    let applied = json(&format!("erasures apply {ledger}"));

    assert_eq!(shown["source"], "prefix");
    assert_eq!(shown["details"]["brand"], "visa");
    assert_eq!(status["version"], Value::Null);
    assert_eq!(verified["intact"], true);
    assert_eq!(verified["tokens"]["count"], 0);
    assert_eq!(exported["entries"], of_file["entries"]);
    assert_eq!(of_file["intact"], true);
    assert_eq!(written["erasures"], 0);
    assert_eq!(applied["erased"], 0);
}

#[test]
fn a_failed_check_prints_its_findings_as_json() {
    let deployment = Deployment::start();
    deployment.configure("[unknown]\nsetting = 1\n");

    let (success, checked) = run(&deployment, "config check");

    assert!(!success);
    assert_eq!(checked["valid"], false);
    assert_eq!(checked["findings"][0]["severity"], "error");
}
