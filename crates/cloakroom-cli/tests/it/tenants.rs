//! Managing a tenant by command: settings, quotas and members.

use serde_json::Value;

use crate::support::{Deployment, runtime, word_after};

fn start() -> (Deployment, String) {
    let deployment = Deployment::start();
    deployment.run_ok(&["migrate"]);
    let tenant = deployment.run_ok(&["tenant", "create", "--name", "Shop", "--type", "test"]);
    let tenant = word_after(&tenant, "tenant ");
    (deployment, tenant)
}

/// The words of the line that starts with `name`.
fn line<'a>(output: &'a str, name: &str) -> Vec<&'a str> {
    let line = output.lines().find(|line| line.starts_with(name));
    let line = line.unwrap_or_else(|| panic!("no {name} in {output}"));
    line.split_whitespace().collect()
}

#[test]
fn commands_print_json_and_find_tenants_by_name() {
    let (deployment, tenant) = start();
    let json = |arguments: &[&str]| -> Value {
        let output = deployment.run_ok(&[arguments, &["--output", "json"]].concat());
        serde_json::from_str(&output).unwrap_or_else(|_| panic!("{arguments:?}: {output}"))
    };

    let tenants = json(&["tenant", "list"]);
    let new = [
        "app",
        "create",
        "--tenant",
        "Shop",
        "--name",
        "A",
        "--type",
        "private",
        "--permission",
        "token:create",
    ];
    let app = json(&new)["id"].as_str().unwrap().to_owned();
    let key = json(&["key", "create", "--tenant", "Shop", "--app", &app]);
    let apps = json(&["app", "list", "--tenant", "Shop"]);
    let keys = json(&["key", "list", "--tenant", "Shop", "--app", &app]);
    let quotas = json(&["tenant", "quota", "--tenant", "Shop"]);
    let settings = json(&["tenant", "setting", "--tenant", &tenant]);
    let limits = json(&["limits", "show", "--tenant", "Shop"]);
    let findings = deployment.run(&["doctor", "--json"]);

    assert_eq!(tenants[0]["id"], *tenant);
    assert_eq!(tenants[0]["name"], "Shop");
    assert_eq!(apps[0]["id"], *app);
    assert_eq!(keys[0]["id"], key["id"]);
    assert_eq!(quotas["tokenize_limit"]["source"], "deployment default");
    assert!(settings.is_object() && limits[0]["limit"].is_string());
    let findings: Value = serde_json::from_str(&findings.stdout).unwrap();
    assert!(findings[0]["severity"].is_string(), "{findings}");
    let unknown = deployment.run(&["app", "list", "--tenant", "Stall"]);
    assert!(
        unknown.stderr.contains("tenant Stall not found"),
        "{}",
        unknown.stderr
    );
}

#[test]
fn completions_and_manual_pages_cover_every_command() {
    let (deployment, _) = start();
    let folder = deployment.path("man").display().to_string();

    let bash = deployment.run_ok(&["completions", "bash"]);
    deployment.run_ok(&["man-pages", &folder]);

    assert!(bash.contains("--tenant"));
    let page = std::fs::read_to_string(format!("{folder}/cloakroom-tenant-create.1")).unwrap();
    assert!(page.contains("Create a tenant and its keys"), "{page}");
}

#[test]
fn a_tenant_is_created_with_settings() {
    let (deployment, _) = start();
    let new = "tenant create --name Orders --type test --setting card_numbers_in_metadata=true";
    deployment.run_ok(&new.split(' ').collect::<Vec<_>>());

    let settings = deployment.run_ok(&["tenant", "setting", "--tenant", "Orders"]);

    assert_eq!(line(&settings, "card_numbers_in_metadata")[1], "true");
}

#[test]
fn quotas_and_settings_are_shown_and_changed() {
    let (deployment, tenant) = start();
    let quota = |changes: &[&str]| {
        deployment.run(&[&["tenant", "quota", "--tenant", &tenant], changes].concat())
    };
    let setting = |changes: &[&str]| {
        deployment.run(&[&["tenant", "setting", "--tenant", &tenant], changes].concat())
    };

    let before = quota(&[]).stdout;
    let changed = quota(&[
        "tokenize_limit=20",
        "cvc_retention=90m",
        "rate_limit=unlimited",
    ])
    .stdout;
    let back = quota(&["cvc_retention=default"]).stdout;
    let settings = setting(&["deduplicate_tokens=true"]).stdout;
    let unchanged = setting(&[]).stdout;

    let default = ["deployment", "default"];
    assert_eq!(
        line(&before, "rate_limit")[1..],
        [&["default"], &default[..]].concat()
    );
    assert_eq!(line(&before, "log_retention")[1], "24h");
    assert_eq!(line(&before, "tokenize_limit")[1], "5");
    assert_eq!(line(&before, "detokenize_limit")[1], "5");
    assert_eq!(line(&before, "cvc_retention")[1], "1h");
    assert_eq!(line(&before, "token_intent_retention")[1], "24h");
    assert_eq!(line(&before, "card_velocity_limit")[1], "10");
    assert!(!before.contains("within five seconds"), "{before}");
    let by_command = ["set", "by", "command"];
    assert_eq!(
        line(&changed, "tokenize_limit")[1..],
        [&["20"], &by_command[..]].concat()
    );
    assert_eq!(line(&before, "threeds")[1], "false");
    assert_eq!(line(&changed, "cvc_retention")[1], "1h30m");
    assert_eq!(line(&changed, "rate_limit")[1], "unlimited");
    assert!(changed.contains("within five seconds"), "{changed}");
    assert_eq!(
        line(&back, "cvc_retention")[1..],
        [&["1h"], &default[..]].concat()
    );
    assert_eq!(line(&back, "tokenize_limit")[1], "20");
    assert_eq!(line(&settings, "deduplicate_tokens")[1], "true");
    assert_eq!(line(&unchanged, "deduplicate_tokens")[1], "true");
    assert_eq!(
        line(&unchanged, "token_deduplication_behavior")[1],
        "read_existing"
    );
    for (outcome, expected) in [
        (quota(&["tokenize_limit"]), "expected NAME=VALUE"),
        (
            quota(&["tokenize=5"]),
            "tokenize is no quota; there are rate_limit, log_retention,",
        ),
        (quota(&["tokenize_limit=0"]), "must be from 1 to 1000"),
        (quota(&["cvc_retention=90"]), "must be a time, such as"),
        (quota(&["rate_limit=fast"]), "a factor from `1x` to `100x`"),
        (setting(&["deduplicate=true"]), "is no setting"),
        (setting(&["deduplicate_tokens=yes"]), "`true` or `false`"),
    ] {
        assert!(!outcome.success, "{expected}");
        assert!(
            outcome.stderr.contains(expected),
            "{expected}: {}",
            outcome.stderr
        );
    }
    let doctor = deployment.run(&["doctor"]);
    assert!(doctor.stdout.contains("0 errors"), "{}", doctor.stdout);
}

#[test]
fn members_are_added_invited_and_listed() {
    let (deployment, tenant) = start();
    let with_tenant = |words: &[&str]| {
        let mut words = words.to_vec();
        words.extend(["--tenant", &tenant]);
        deployment.run(&words)
    };
    let run_ok = |words: &[&str]| {
        let outcome = with_tenant(words);
        assert!(outcome.success, "{words:?}: {}", outcome.stderr);
        outcome.stdout
    };

    let owner = run_ok(&["member", "add", "--email", "ada@example.com", "--owner"]);
    let second = with_tenant(&["member", "add", "--email", "eve@example.com", "--owner"]);
    let twice = with_tenant(&["member", "add", "--email", "Ada@example.com"]);
    let invited = run_ok(&[
        "invitation",
        "create",
        "--email",
        "grace@example.com",
        "--role",
        "read-only",
    ]);
    let (id, old_link) = (
        word_after(&invited, "invitation "),
        word_after(&invited, "link "),
    );
    let listed = run_ok(&["invitation", "list"]);
    let resent = run_ok(&["invitation", "resend", "--invitation", &id]);
    let revoked = with_tenant(&["invitation", "accept", "--link", &old_link]);
    let accepted = run_ok(&[
        "invitation",
        "accept",
        "--link",
        &word_after(&resent, "link "),
    ]);
    let members = run_ok(&["member", "list"]);
    let empty = run_ok(&["invitation", "list"]);

    let owner = word_after(&owner, "member ");
    assert!(
        second.stderr.contains("transfer the ownership"),
        "{}",
        second.stderr
    );
    assert!(
        twice.stderr.contains("is a member already"),
        "{}",
        twice.stderr
    );
    assert_eq!(
        line(&listed, &id)[1..],
        ["READ_ONLY", "PENDING", "grace@example.com"]
    );
    assert!(!listed.contains(&old_link), "{listed}");
    assert!(
        revoked.stderr.contains("sent again since"),
        "{}",
        revoked.stderr
    );
    assert_eq!(line(&members, &owner)[1..], ["OWNER", "ada@example.com"]);
    let grace = word_after(&accepted, "member ");
    assert_eq!(
        line(&members, &grace)[1..],
        ["READ_ONLY", "grace@example.com"]
    );
    assert_eq!(empty, "");
}

#[test]
fn a_member_needs_an_email_address() {
    let (deployment, tenant) = start();

    let outcome = deployment.run(&["member", "add", "--email", "ada", "--tenant", &tenant]);

    let reason = outcome.stderr;
    assert!(reason.contains("must be an e-mail address"), "{reason}");
}

#[test]
fn a_requested_deletion_is_listed_and_canceled_by_command() {
    let (deployment, tenant) = start();
    let administrator = deployment.run_ok(&[
        "app",
        "create",
        "--tenant",
        &tenant,
        "--name",
        "Administrator",
        "--type",
        "management",
        "--all-permissions",
    ]);
    let app = word_after(&administrator, "application ");
    let key = deployment.run_ok(&["key", "create", "--tenant", &tenant, "--app", &app]);
    let key = key.lines().next().unwrap().to_owned();
    let cancel = ["tenant", "cancel-deletion", "--tenant", &tenant];

    let none_requested = deployment.run(&cancel);
    let node = deployment.serve();
    let status = runtime().block_on(async {
        let url = format!("{}/tenants/self", node.base_url);
        let client = reqwest::Client::new();
        let request = client.delete(url).header("bt-api-key", &key);
        request.send().await.unwrap().status()
    });
    let requested = deployment.run_ok(&["tenant", "list"]);
    let doctor = deployment.run(&["doctor"]).stdout;
    deployment.run_ok(&cancel);
    let canceled = deployment.run_ok(&["tenant", "list"]);

    assert!(
        none_requested.stderr.contains("no deletion"),
        "{}",
        none_requested.stderr
    );
    assert_eq!(status, 204);
    assert!(requested.contains("deletion requested"), "{requested}");
    assert!(doctor.contains("cancel-deletion"), "{doctor}");
    assert!(!canceled.contains("deletion"), "{canceled}");
}

#[test]
fn doctor_reports_hosted_behaviors_and_tenants_without_an_administrator() {
    let (deployment, tenant) = start();
    let manager = deployment.run_ok(&[
        "app",
        "create",
        "--tenant",
        &tenant,
        "--name",
        "Manager",
        "--type",
        "management",
        "--permission",
        "application:create",
    ]);
    let app = word_after(&manager, "application ");

    let lacking = deployment.run(&["doctor"]).stdout;
    let permit = ["app", "permit", "--tenant", &tenant, "--app", &app];
    deployment.run_ok(&[&permit[..], &["application:grant"]].concat());
    let strict = deployment.run(&["doctor"]).stdout;
    deployment.configure(
        "[sessions]\nrequire_subset = false\n\
         [tenants]\nimmediate_deletion = true\nunrestricted_grants = true",
    );
    let relaxed = deployment.run(&["doctor"]).stdout;

    assert!(
        lacking.contains("has no application with application:grant"),
        "{lacking}"
    );
    for name in ["application:grant", "require_subset", "[tenants]"] {
        assert!(!strict.contains(name), "{strict}");
    }
    for name in [
        "sessions.require_subset",
        "tenants.immediate_deletion",
        "tenants.unrestricted_grants",
    ] {
        assert!(relaxed.contains(name), "{relaxed}");
    }
}
