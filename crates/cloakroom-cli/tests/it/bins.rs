//! BIN tables by command: what operators type, and what a running node then shows.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Deployment, outcome};

/// The example of the documentation, so that it keeps working.
fn documented_example() -> String {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/operate/bins.md");
    let text = std::fs::read_to_string(page).unwrap();
    let (_, rest) = text.split_once("```csv\n").unwrap();
    rest.split_once("```").unwrap().0.to_owned()
}

#[test]
fn the_documented_example_changes_what_a_running_node_shows() {
    let rule = "/ reveal token:create,token:read";
    let (deployment, keys) = Deployment::with_keys(&[rule]);
    let file = deployment.path("bins.csv");
    std::fs::write(&file, documented_example()).unwrap();
    let file = file.display().to_string();
    let node = deployment.serve();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let client = reqwest::Client::new();
    let ask = || -> Value {
        let request = client
            .post(format!("{}/tokens", node.base_url))
            .header("bt-api-key", &keys[0])
            .json(&json!({"type": "card", "data": {"number": "4970101111111112"}}));
        let answer = async { request.send().await.unwrap().json::<Value>().await.unwrap() };
        runtime.block_on(answer)["card"].clone()
    };

    let nothing = deployment.must(&["bins", "status"]);
    let before = ask();
    let imported = deployment.must(&["bins", "import", &file]);
    let since = Instant::now();
    while ask()["funding"] != "debit" {
        assert!(since.elapsed() < Duration::from_secs(10), "{}", ask());
        std::thread::sleep(Duration::from_millis(100));
    }
    let status = deployment.must(&["bins", "status"]);
    let show = |arguments: &[&str]| deployment.must(&[&["bins", "show"], arguments].concat());

    assert!(nothing.contains("no table was imported"), "{nothing}");
    assert_eq!(before["funding"], Value::Null);
    assert!(
        imported.contains("rows of bins.csv as version 1"),
        "{imported}"
    );
    assert_eq!(ask()["additional"][0]["brand"], "cartes-bancaires");
    for line in [
        "version      1\n",
        "rows         4\n",
        "source       bins.csv\n",
    ] {
        assert!(status.contains(line), "{status}");
    }
    let cases: [(&[&str], &str); 4] = [
        (&["497010"], "source: the imported table, version 1"),
        (&["411111"], "source: the first digits alone"),
        (&["4242424242424242"], "source: the first digits alone"),
        (
            &["4242424242424242", "--tenant-type", "test"],
            "source: the published test numbers",
        ),
    ];
    for (arguments, expected) in cases {
        let shown = show(arguments);
        assert!(shown.starts_with(expected), "{shown}");
        assert!(!shown.contains("4242424242424242"), "{shown}");
    }
}

#[test]
fn a_refused_file_is_explained_and_changes_nothing() {
    let (deployment, _) = Deployment::with_keys(&[]);
    let import = |name: &str, text: &str, more: &[&str]| {
        let file = deployment.path(name);
        std::fs::write(&file, text).unwrap();
        let file = file.display().to_string();
        outcome(deployment.command(&[&["bins", "import", &file], more].concat()))
    };
    let good = import("good.txt", "low\n400000\n", &["--format", "csv"]);
    assert!(good.success, "{}", good.stderr);

    let cases = [
        (
            import("bad.csv", "low,funding\n400000,debit\n400001,wealth\n", &[]),
            "bad.csv: row 2, column funding: must be credit, debit or prepaid",
        ),
        (
            import("bad.csv", "low,high\n400000,400005\n400003,400009\n", &[]),
            "neither lies inside the other (row 1)",
        ),
        (
            import("bad.txt", "low\n", &[]),
            "say --format csv, json or parquet",
        ),
        (import("bad.parquet", "low\n", &[]), "it is not Parquet"),
        (
            deployment.run(&["bins", "import", "absent.csv"]),
            "cannot be read: entity not found",
        ),
        (deployment.run(&["bins", "show", "41111"]), "a BIN 6 to 11"),
    ];
    for (outcome, expected) in cases {
        assert!(!outcome.success, "{expected}");
        assert!(outcome.stderr.contains(expected), "{}", outcome.stderr);
        assert!(!outcome.stderr.contains("wealth"), "{}", outcome.stderr);
    }
    let status = deployment.must(&["bins", "status"]);
    assert!(status.contains("good.txt"), "{status}");
}
