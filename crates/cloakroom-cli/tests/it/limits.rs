//! `cloakroom limits show`.

use crate::support::{Deployment, cloakroom, outcome, word_after};

/// The row of a limit, with single spaces between its columns.
fn line(text: &str, name: &str) -> String {
    let is_about = |line: &&str| line.split_whitespace().any(|word| word == name);
    let line = text
        .lines()
        .find(is_about)
        .unwrap_or_else(|| panic!("no {name} in {text}"));
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn show(more: &[&str]) -> String {
    let mut command = cloakroom(&["limits", "show"]);
    command.args(more).env("COLUMNS", "200");
    let shown = outcome(command);
    assert!(shown.success, "{}", shown.stderr);
    shown.stdout
}

#[test]
fn limits_are_explained_without_a_deployment() {
    let usual = show(&[]);
    let test = show(&[
        "--tenant-kind",
        "test",
        "--application",
        "public",
        "--path",
        "/tokens/abc",
        "--method",
        "get",
    ]);
    let legacy = show(&["--legacy"]);
    let no_key = show(&["--without-key"]);

    assert!(
        usual
            .starts_with("POST /tokens with a key of a private application of a production tenant"),
        "{usual}"
    );
    assert!(
        line(&usual, "token-create").starts_with("lowest token-create 200 10s key and ip throttle"),
        "{usual}"
    );
    assert!(line(&usual, "everything").starts_with("applies everything 2000 10s ip block 30s"));
    assert!(line(&usual, "test-tenant").starts_with("another type of tenant"));
    assert!(line(&usual, "token-list").starts_with("not one of its routes"));
    assert!(
        line(&test, "public-application").starts_with("lowest"),
        "{test}"
    );
    assert!(
        line(&test, "token-list").starts_with("not one of its routes"),
        "{test}"
    );
    assert!(
        test.contains(
            "The lowest is public-application: 50 requests in 1m, counted by key and ip."
        ),
        "{test}"
    );
    assert!(
        line(&legacy, "legacy-key").starts_with("lowest"),
        "{legacy}"
    );
    assert!(
        line(&no_key, "everything").starts_with("lowest"),
        "{no_key}"
    );
    assert!(
        line(&no_key, "token-create").starts_with("no key"),
        "{no_key}"
    );
}

#[test]
fn a_tenants_quota_and_a_custom_table_are_shown() {
    let deployment = Deployment::start();
    let table = deployment.path("limits.toml");
    let few = "[[limit]]\nname = \"few\"\ncounter = \"key\"\nrequests = 2\nwindow = \"1m\"\naction = \"throttle\"\n";
    std::fs::write(&table, few).unwrap();
    deployment.configure(&format!("[limits]\nfile = \"{}\"", table.display()));
    deployment.run_ok(&["migrate"]);
    let tenant = deployment.run_ok(&["tenant", "create", "--name", "Shop", "--type", "test"]);
    let tenant = word_after(&tenant, "tenant ");
    deployment.run_ok(&["tenant", "quota", "--tenant", &tenant, "rate_limit=5x"]);

    let by_name = deployment.run_ok(&["limits", "show", "--tenant", "Shop"]);
    let by_id = deployment.run_ok(&["limits", "show", "--tenant", &tenant]);
    let unknown = deployment.run(&["limits", "show", "--tenant", "Unknown"]);
    std::fs::write(&table, few.replace("2\n", "0\n")).unwrap();
    let broken = deployment.run(&["config", "check"]);

    assert!(
        by_name.contains("of a test tenant whose rate limit is 5x"),
        "{by_name}"
    );
    assert!(
        line(&by_name, "few").starts_with("lowest few 10 1m key"),
        "{by_name}"
    );
    assert_eq!(by_name, by_id);
    assert!(
        unknown.stderr.contains("tenant Unknown not found"),
        "{}",
        unknown.stderr
    );
    assert!(
        !broken.success && broken.stdout.contains("requests must be from 1"),
        "{}",
        broken.stdout
    );
}
