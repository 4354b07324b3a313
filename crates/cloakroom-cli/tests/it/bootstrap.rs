//! Setting up a vault by command: each command prints the next step.

use crate::support::{Deployment, outcome, word_after};

#[test]
fn each_command_prints_the_next_step() {
    let deployment = Deployment::start();

    let too_early = deployment.run(&["tenant", "create", "--name", "Shop", "--type", "test"]);
    let migrated = deployment.run_ok(&["migrate"]);
    let again = deployment.run_ok(&["migrate"]);
    let tenant = deployment.run_ok(&["tenant", "create", "--name", "Shop", "--type", "test"]);
    let tenant_id = word_after(&tenant, "tenant ");
    let app = deployment.run_ok(&[
        "app",
        "create",
        "--tenant",
        &tenant_id,
        "--name",
        "Server",
        "--type",
        "private",
        "--rule",
        "/ reveal token:create,token:read",
    ]);
    let app_id = word_after(&app, "application ");
    let key = deployment.run_ok(&["key", "create", "--tenant", &tenant_id, "--app", &app_id]);
    let tenants = deployment.run_ok(&["tenant", "list"]);

    assert!(!too_early.success);
    assert!(
        too_early.stderr.contains("run `cloakroom migrate`"),
        "{}",
        too_early.stderr
    );
    assert!(migrated.contains("applied 0001 foundation"), "{migrated}");
    assert!(
        migrated.contains("next: `cloakroom tenant create"),
        "{migrated}"
    );
    assert!(again.contains("nothing to do"), "{again}");
    assert!(tenant.contains(&format!("next: `cloakroom app create --tenant {tenant_id}")));
    assert!(app.contains(&format!(
        "next: `cloakroom key create --tenant {tenant_id} --app {app_id}`"
    )));
    assert!(key.starts_with("key_test_us_pvt_"), "{key}");
    assert!(key.contains("this key is shown only once"), "{key}");
    assert!(
        tenants.contains(&tenant_id) && tenants.contains("Shop"),
        "{tenants}"
    );
}

#[test]
fn applications_and_keys_are_listed_and_deleted_by_command() {
    let (deployment, keys) = Deployment::with_keys(&["/ mask token:create", "/ mask token:read"]);
    let tenants = deployment.run_ok(&["tenant", "list"]);
    let tenant = tenants.split_whitespace().next().unwrap();
    let run = |words: &[&str]| {
        let (command, rest) = words.split_at(2);
        deployment.run_ok(&[command, &["--tenant", tenant], rest].concat())
    };

    let listed = run(&["app", "list"]);
    let newest = listed.split_whitespace().next().unwrap().to_owned();
    run(&["key", "create", "--app", &newest]);
    let two = run(&["key", "list", "--app", &newest]);
    let first = two.split_whitespace().next().unwrap();
    let deleted = run(&["key", "delete", "--app", &newest, "--key", first]);
    let one = run(&["key", "list", "--app", &newest]);
    let app_deleted = run(&["app", "delete", "--app", &newest]);
    let left = run(&["app", "list"]);
    let arguments = ["app", "delete", "--tenant", tenant, "--app", &newest];
    let again = deployment.run(&arguments);
    let healthy = deployment.run(&["doctor"]);

    assert_eq!(listed.lines().count(), 2);
    assert!(listed.contains("  private     1 key  A"), "{listed}");
    assert_eq!(two.lines().count(), 2);
    assert!(two.contains("  created 2"), "{two}");
    let rejected = "rejected by every node within five seconds";
    let expected = format!("deleted key {first}; it is {rejected}");
    assert!(deleted.contains(&expected), "{deleted}");
    assert!(one.lines().count() == 1 && !one.contains(first), "{one}");
    let expected = format!("deleted application {newest}; its keys are {rejected}");
    assert!(app_deleted.contains(&expected), "{app_deleted}");
    assert!(
        left.lines().count() == 1 && !left.contains(&newest),
        "{left}"
    );
    assert!(!again.success && again.stderr.contains("`cloakroom app list --tenant"));
    assert!(healthy.success, "{}", healthy.stdout);
    for key in keys {
        assert!(!format!("{listed}{two}{deleted}{one}{app_deleted}").contains(&key));
    }
}

/// The audit log records commands with the user, the host and the name given with `--as`.
#[test]
fn commands_are_logged_with_their_operator() {
    let deployment = Deployment::start();
    deployment.run_ok(&["migrate"]);
    let tenant = deployment.run_ok(&["tenant", "create", "--name", "Shop", "--type", "test"]);
    let tenant = word_after(&tenant, "tenant ");
    let app = [
        "app",
        "create",
        "--tenant",
        &tenant,
        "--name",
        "A",
        "--type",
        "management",
        "--permission",
        "log:read",
    ];
    let app = deployment.run_ok(&[&app[..], &["--as", "Grace Hopper"]].concat());
    let app = word_after(&app, "application ");
    let key = deployment.run_ok(&["key", "create", "--tenant", &tenant, "--app", &app]);
    let key = key.lines().next().unwrap();
    let rejected = deployment.run(&["tenant", "list", "--as", "4242424242424242"]);
    let verified = deployment.run(&["audit", "verify"]);

    let node = deployment.serve();
    let mut curl = std::process::Command::new("curl");
    curl.args(["-s", "-H", &format!("bt-api-key: {key}")]);
    let logs = curl
        .arg(format!("{}/logs", node.base_url))
        .output()
        .unwrap();
    let logs: serde_json::Value = serde_json::from_slice(&logs.stdout).unwrap();
    let origin_of = |kind: &str| {
        let logs = logs["data"].as_array().unwrap().iter();
        let mut of_kind = logs.filter(|log| log["entity_type"] == kind);
        let log = of_kind.next().unwrap();
        assert_eq!(log["actor_type"], "system", "{log}");
        log["origin"].as_str().unwrap().to_owned()
    };

    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let own = origin_of("tenant");
    assert!(own.ends_with(&format!("@{}", host.trim())), "{own}");
    assert_eq!(origin_of("application_key"), own);
    assert_eq!(origin_of("application"), format!("Grace Hopper, {own}"));
    assert!(!rejected.success && rejected.stderr.contains("--as must be"));
    assert!(verified.success, "{}", verified.stdout);
}

#[test]
fn invalid_arguments_are_explained() {
    let deployment = Deployment::start();
    deployment.run_ok(&["migrate"]);
    let tenant = deployment.run_ok(&["tenant", "create", "--name", "Shop", "--type", "test"]);
    let tenant = word_after(&tenant, "tenant ");
    let unknown = "c06d0789-0a38-40be-b7cc-c28a718f76f1";
    let app = |kind: &'static str, flag: &'static str, value: &'static str| {
        deployment.run(&[
            "app", "create", "--tenant", &tenant, "--name", "A", "--type", kind, flag, value,
        ])
    };

    let cases = [
        (
            deployment.run(&["tenant", "create", "--name", "", "--type", "test"]),
            "name must be one line",
        ),
        (
            deployment.run(&["tenant", "create", "--name", "P", "--type", "production"]),
            "test tenants only",
        ),
        (
            deployment.run(&["key", "create", "--tenant", unknown, "--app", unknown]),
            "not found; `cloakroom tenant list` lists all tenants",
        ),
        (
            deployment.run(&["key", "create", "--tenant", &tenant, "--app", unknown]),
            "no such application; `cloakroom app list --tenant",
        ),
        (
            app("private", "--permission", "token:rea"),
            "unknown permission `token:rea`",
        ),
        (
            app("public", "--permission", "token:read"),
            "must not hold token:read for a public",
        ),
        (
            app("private", "--rule", "/ reveal"),
            "a rule has three parts",
        ),
        (
            app("private", "--rule", "pci reveal token:read"),
            "must start and end with `/`",
        ),
        (
            app("private", "--rule", "/ show token:read"),
            "`redact`, `mask` or `reveal`",
        ),
        (
            app("management", "--rule", "/ mask token:read"),
            "must be empty for a management",
        ),
    ];
    for (outcome, expected) in cases {
        assert!(!outcome.success, "{expected}");
        assert!(
            outcome.stderr.contains(expected),
            "{expected}: {}",
            outcome.stderr
        );
        assert!(
            !outcome.stderr.contains("postgres://"),
            "{}",
            outcome.stderr
        );
    }
}

#[test]
fn a_key_of_the_older_format_is_imported_from_standard_input() {
    let (deployment, _) = Deployment::with_keys(&["/ mask token:create"]);
    let tenants = deployment.run_ok(&["tenant", "list"]);
    let tenant = tenants.split_whitespace().next().unwrap();
    let apps = deployment.run_ok(&["app", "list", "--tenant", tenant]);
    let app = apps.split_whitespace().next().unwrap();
    let import = |text: &str| {
        let file = deployment.path("old.key");
        std::fs::write(&file, text).unwrap();
        let mut command = deployment.command(&["key", "import", "--tenant", tenant, "--app", app]);
        command.stdin(std::fs::File::open(&file).unwrap());
        outcome(command)
    };

    let imported = import("key_N88mVGsp3sCXkykyN2EFED\n");
    let again = import("key_N88mVGsp3sCXkykyN2EFED");
    let short = import("key_1\n");
    let empty = import("\n");
    let listed = deployment.run_ok(&["key", "list", "--tenant", tenant, "--app", app]);

    assert!(imported.success, "{}", imported.stderr);
    let id = word_after(&imported.stdout, "key ");
    assert!(listed.contains(&id), "{listed}");
    assert!(!imported.stdout.contains("N88m"), "{}", imported.stdout);
    for (outcome, expected) in [
        (again, "is in the vault already"),
        (short, "must be of the older format"),
        (empty, "standard input is empty"),
    ] {
        assert!(!outcome.success, "{expected}");
        assert!(outcome.stderr.contains(expected), "{}", outcome.stderr);
    }
}
