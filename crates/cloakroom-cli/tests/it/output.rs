//! `--output json`: what scripts read from the commands of an operator.

use serde_json::Value;

use crate::support::{Deployment, word_after};

/// Runs a command and returns its success and its JSON.
fn json(deployment: &Deployment, arguments: &[&str]) -> (bool, Value) {
    let outcome = deployment.run(&[arguments, &["--output", "json"]].concat());
    let parsed = serde_json::from_str(&outcome.stdout);
    let parsed = parsed.unwrap_or_else(|error| {
        panic!(
            "{arguments:?}: {error}: {}{}",
            outcome.stdout, outcome.stderr
        )
    });
    (outcome.success, parsed)
}

#[test]
fn commands_of_an_operator_print_json() {
    let deployment = Deployment::start();
    let path = |name: &str| deployment.path(name).display().to_string();
    let json = |arguments: &[&str]| {
        let (success, object) = json(&deployment, arguments);
        assert!(success, "{arguments:?}: {object}");
        object
    };

    let created = json(&["root-key", "create", &path("other.key")]);
    let checked = json(&["config", "check"]);
    let migrated = json(&["migrate"]);
    let again = json(&["migrate"]);
    let tenant = deployment.run_ok(&["tenant", "create", "--name", "T", "--type", "test"]);
    let tenant = word_after(&tenant, "tenant ");
    let app = [
        "app",
        "create",
        "--tenant",
        &tenant,
        "--name",
        "A",
        "--type",
        "private",
        "--permission",
        "token:read",
    ];
    let app = json(&app)["id"].as_str().unwrap().to_owned();
    let permitted = [
        "app",
        "permit",
        "--tenant",
        &tenant,
        "--app",
        &app,
        "token:create",
    ];
    let permitted = json(&permitted);
    let lines = "{\"type\": \"token\", \"data\": \"secret\"}\n{\"type\": \"unknown\"}\n";
    std::fs::write(deployment.path("tokens.jsonl"), lines).unwrap();
    let import = [
        "import",
        "--tenant",
        &tenant,
        "--app",
        &app,
        "--name",
        "I",
        &path("tokens.jsonl"),
    ];
    // Exit code 2: a line was rejected.
    let (_, imported) = self::json(&deployment, &import);
    let rotated = json(&["key", "rotate", "--purpose", "data", "--tenant", &tenant]);
    let retired = json(&["key", "retire", "--purpose", "index", "--all"]);
    let shown = json(&["bins", "show", "411111"]);
    let status = json(&["bins", "status"]);
    let verified = json(&["audit", "verify"]);
    let exported = json(&["audit", "export", &path("log.jsonl")]);
    let keys = json(&["audit", "public-key"]);
    let key = keys[0].as_str().unwrap();
    let file = path("log.jsonl");
    let of_file = json(&["audit", "verify", "--export", &file, "--public-key", key]);
    let ledger = json(&["erasures", "write", &path("ledger.jsonl")]);
    let applied = json(&["erasures", "apply", &path("ledger.jsonl")]);
    let exports = json(&["export", "list", "--tenant", &tenant]);

    assert_eq!(created["file"], path("other.key"));
    assert!(created["created_by"].is_string(), "{created}");
    assert_eq!(created.as_object().unwrap().len(), 2, "{created}");
    assert_eq!(
        (&checked["valid"], &checked["complete"]),
        (&true.into(), &true.into())
    );
    assert!(migrated["applied"][0]["number"].is_number(), "{migrated}");
    assert_eq!(again["applied"].as_array().unwrap().len(), 0);
    assert_eq!(permitted["added"][0], "token:create");
    assert_eq!(
        (&imported["created"], &imported["rejected"]),
        (&1.into(), &1.into())
    );
    assert_eq!(imported["rejected_lines"][0]["line"], 2);
    assert_eq!(
        (&rotated[0]["purpose"], &rotated[0]["version"]),
        (&"data".into(), &2.into())
    );
    assert!(retired[0]["error"].is_string(), "{retired}");
    assert_eq!(shown["source"], "prefix");
    assert_eq!(shown["details"]["brand"], "visa");
    assert_eq!(status["version"], Value::Null);
    assert_eq!(
        (&verified["intact"], &verified["tokens"]["count"]),
        (&true.into(), &1.into())
    );
    assert_eq!(exported["entries"], of_file["entries"]);
    assert_eq!(of_file["intact"], true);
    assert_eq!(ledger["erasures"], 0);
    assert_eq!(applied["erased"], 0);
    assert_eq!(exports.as_array().unwrap().len(), 0);
}

#[test]
fn a_failed_check_prints_its_findings_as_json() {
    let deployment = Deployment::start();
    deployment.configure("[unknown]\nsetting = 1\n");

    let (success, checked) = json(&deployment, &["config", "check"]);

    assert!(!success);
    assert_eq!(checked["valid"], false);
    assert_eq!(checked["findings"][0]["severity"], "error");
}
