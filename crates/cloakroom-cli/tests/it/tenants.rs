//! What an operator does with a tenant that is there: settings, quotas, people.

use crate::support::{Deployment, word_after};

fn start() -> (Deployment, String) {
    let deployment = Deployment::start();
    deployment.must(&["migrate"]);
    let tenant = deployment.must(&["tenant", "create", "--name", "Shop", "--type", "test"]);
    let tenant = word_after(&tenant, "tenant ");
    (deployment, tenant)
}

/// The words of the line that starts with this one.
fn line<'a>(output: &'a str, name: &str) -> Vec<&'a str> {
    let line = output.lines().find(|line| line.starts_with(name));
    let line = line.unwrap_or_else(|| panic!("no {name} in {output}"));
    line.split_whitespace().collect()
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
    let kept = setting(&[]).stdout;

    let default = ["the", "deployment's"];
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
    let own = ["the", "tenant's", "own"];
    assert_eq!(
        line(&changed, "tokenize_limit")[1..],
        [&["20"], &own[..]].concat()
    );
    assert_eq!(line(&changed, "cvc_retention")[1], "1h30m");
    assert_eq!(line(&changed, "rate_limit")[1], "unlimited");
    assert!(changed.contains("within five seconds"), "{changed}");
    assert_eq!(
        line(&back, "cvc_retention")[1..],
        [&["1h"], &default[..]].concat()
    );
    assert_eq!(line(&back, "tokenize_limit")[1], "20");
    assert_eq!(line(&settings, "deduplicate_tokens")[1], "true");
    assert_eq!(line(&kept, "deduplicate_tokens")[1], "true");
    assert_eq!(
        line(&kept, "token_deduplication_behavior")[1],
        "read_existing"
    );
    for (outcome, expected) in [
        (quota(&["tokenize_limit"]), "not written NAME=VALUE"),
        (quota(&["tokenize=5"]), "tokenize is no quota"),
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
    assert!(doctor.stdout.contains("0 to mend"), "{}", doctor.stdout);
}

#[test]
fn people_are_added_invited_and_listed() {
    let (deployment, tenant) = start();
    let with_tenant = |words: &[&str]| {
        let mut words = words.to_vec();
        words.extend(["--tenant", &tenant]);
        deployment.run(&words)
    };
    let must = |words: &[&str]| {
        let outcome = with_tenant(words);
        assert!(outcome.success, "{words:?}: {}", outcome.stderr);
        outcome.stdout
    };

    let owner = must(&["member", "add", "--email", "ada@example.com", "--owner"]);
    let second = with_tenant(&["member", "add", "--email", "eve@example.com", "--owner"]);
    let twice = with_tenant(&["member", "add", "--email", "Ada@example.com"]);
    let invited = must(&[
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
    let listed = must(&["invitation", "list"]);
    let resent = must(&["invitation", "resend", "--invitation", &id]);
    let dead = with_tenant(&["invitation", "accept", "--link", &old_link]);
    let accepted = must(&[
        "invitation",
        "accept",
        "--link",
        &word_after(&resent, "link "),
    ]);
    let members = must(&["member", "list"]);
    let empty = must(&["invitation", "list"]);

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
    assert!(dead.stderr.contains("sent again since"), "{}", dead.stderr);
    assert_eq!(line(&members, &owner)[1..], ["OWNER", "ada@example.com"]);
    let grace = word_after(&accepted, "member ");
    assert_eq!(
        line(&members, &grace)[1..],
        ["READ_ONLY", "grace@example.com"]
    );
    assert_eq!(empty, "");
    let wrong = with_tenant(&["member", "add", "--email", "ada"]);
    assert!(
        wrong.stderr.contains("must be an e-mail address"),
        "{}",
        wrong.stderr
    );
}
