//! From nothing to a key, each command saying what comes next.

use cloakroom_scratch::{Postgres, PostgresOptions};

use crate::support::{Deployment, cloakroom, outcome, word_after};

#[test]
fn each_step_prints_the_next_one() {
    let deployment = Deployment::start();

    let too_early = deployment.run(&["tenant", "create", "--name", "Shop", "--type", "test"]);
    let migrated = deployment.must(&["migrate"]);
    let again = deployment.must(&["migrate"]);
    let tenant = deployment.must(&["tenant", "create", "--name", "Shop", "--type", "test"]);
    let tenant_id = word_after(&tenant, "tenant ");
    let app = deployment.must(&[
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
    let key = deployment.must(&["key", "create", "--tenant", &tenant_id, "--app", &app_id]);
    let tenants = deployment.must(&["tenant", "list"]);

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
    assert!(key.contains("the only time the key is shown"), "{key}");
    assert!(
        tenants.contains(&tenant_id) && tenants.contains("Shop"),
        "{tenants}"
    );
}

#[test]
fn applications_and_keys_are_listed_and_deleted_by_command() {
    let (deployment, keys) = Deployment::with_keys(&["/ mask token:create", "/ mask token:read"]);
    let tenants = deployment.must(&["tenant", "list"]);
    let tenant = tenants.split_whitespace().next().unwrap();
    let run = |words: &[&str]| {
        let (command, rest) = words.split_at(2);
        deployment.must(&[command, &["--tenant", tenant], rest].concat())
    };

    let listed = run(&["app", "list"]);
    let newest = listed.split_whitespace().next().unwrap().to_owned();
    run(&["key", "create", "--app", &newest]);
    let two = run(&["key", "list", "--app", &newest]);
    let first = two.split_whitespace().next().unwrap();
    let deleted = run(&["key", "delete", "--app", &newest, "--key", first]);
    let one = run(&["key", "list", "--app", &newest]);
    let gone = run(&["app", "delete", "--app", &newest]);
    let left = run(&["app", "list"]);
    let arguments = ["app", "delete", "--tenant", tenant, "--app", &newest];
    let again = deployment.run(&arguments);
    let healthy = deployment.run(&["doctor"]);

    assert_eq!(listed.lines().count(), 2);
    assert!(listed.contains("  private     1 keys  A"), "{listed}");
    assert_eq!(two.lines().count(), 2);
    assert!(two.contains("  made 2"), "{two}");
    let dead = "dead on every node within five seconds";
    let expected = format!("deleted key {first}; it is {dead}");
    assert!(deleted.contains(&expected), "{deleted}");
    assert!(one.lines().count() == 1 && !one.contains(first), "{one}");
    let expected = format!("deleted application {newest}; its keys are {dead}");
    assert!(gone.contains(&expected), "{gone}");
    assert!(
        left.lines().count() == 1 && !left.contains(&newest),
        "{left}"
    );
    assert!(!again.success && again.stderr.contains("no such application"));
    assert!(healthy.success, "{}", healthy.stdout);
    for key in keys {
        assert!(!format!("{listed}{two}{deleted}{one}{gone}").contains(&key));
    }
}

#[test]
fn mistakes_are_explained_in_plain_words() {
    let deployment = Deployment::start();
    deployment.must(&["migrate"]);
    let tenant = deployment.must(&["tenant", "create", "--name", "Shop", "--type", "test"]);
    let tenant = word_after(&tenant, "tenant ");
    let nobody = "c06d0789-0a38-40be-b7cc-c28a718f76f1";
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
            deployment.run(&["key", "create", "--tenant", nobody, "--app", nobody]),
            "no such tenant",
        ),
        (
            deployment.run(&["key", "create", "--tenant", &tenant, "--app", nobody]),
            "no such application",
        ),
        (
            app("private", "--permission", "token:rea"),
            "no permission `token:rea`",
        ),
        (
            app("public", "--permission", "token:read"),
            "must not hold token:read for a public",
        ),
        (
            app("private", "--rule", "/ reveal"),
            "a rule is three words",
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
fn doctor_says_what_is_wrong_and_what_is_not() {
    let deployment = Deployment::start();

    let unmigrated = deployment.run(&["doctor"]);
    deployment.must(&["migrate"]);
    deployment.must(&["tenant", "create", "--name", "Shop", "--type", "test"]);
    let healthy = deployment.run(&["doctor"]);

    assert!(!unmigrated.success);
    assert!(
        unmigrated.stdout.contains("run `cloakroom migrate`"),
        "{}",
        unmigrated.stdout
    );
    assert!(healthy.success, "{}", healthy.stdout);
    assert!(
        healthy.stdout.contains("7 keys unwrap"),
        "{}",
        healthy.stdout
    );
    assert!(healthy.stdout.contains("0 to mend"), "{}", healthy.stdout);
    assert!(
        healthy.stdout.contains("is a superuser"),
        "{}",
        healthy.stdout
    );
}

#[test]
fn doctor_finds_a_database_that_would_lose_or_leak() {
    let risky = [
        ("synchronous_commit", "off"),
        ("log_error_verbosity", "default"),
    ];
    let settings = risky
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec();
    let mut deployment = Deployment::start();
    let options = PostgresOptions {
        settings,
        ..PostgresOptions::default()
    };
    deployment.postgres = Postgres::start(options).unwrap();
    deployment.configure("");
    deployment.must(&["migrate"]);

    let found = deployment.run(&["doctor"]);

    assert!(!found.success);
    for expected in ["acknowledged before it is durable", "prints whole rows"] {
        assert!(found.stdout.contains(expected), "{}", found.stdout);
    }
}

#[test]
fn doctor_tells_of_a_wrong_root_key_and_an_absent_database() {
    let deployment = Deployment::start();
    deployment.must(&["migrate"]);
    deployment.must(&["tenant", "create", "--name", "Shop", "--type", "test"]);
    let another = deployment.path("another.key");
    deployment.must(&["root-key", "create", &another.display().to_string()]);

    let mut wrong_key = deployment.command(&["doctor"]);
    wrong_key.env("CLOAKROOM__ROOT_KEY__FILE", &another);
    let wrong_key = outcome(wrong_key);
    let mut absent = deployment.command(&["doctor"]);
    absent.env(
        "CLOAKROOM__DATABASE__URL",
        "postgres://someone:hush@127.0.0.1:1/none",
    );
    let absent = outcome(absent);

    assert!(!wrong_key.success && !absent.success);
    assert!(
        wrong_key.stdout.contains("another root key"),
        "{}",
        wrong_key.stdout
    );
    assert!(
        absent.stdout.contains("cannot be reached"),
        "{}",
        absent.stdout
    );
    assert!(!absent.stdout.contains("hush"), "{}", absent.stdout);
}

#[test]
fn configuration_mistakes_are_found_before_anything_starts() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("cloakroom.toml");
    std::fs::write(
        &file,
        "[http]\nlissten = \"127.0.0.1:80\"\nmax_body_bytes = \"many\"\n",
    )
    .unwrap();

    let path = file.display().to_string();
    let checked = outcome(cloakroom(&["--config", &path, "config", "check"]));

    assert!(!checked.success);
    assert!(
        checked.stdout.contains("http.lissten"),
        "{}",
        checked.stdout
    );
    assert!(
        checked.stdout.contains("http.max_body_bytes"),
        "{}",
        checked.stdout
    );
}

#[test]
fn a_key_of_the_older_format_is_imported_from_standard_input() {
    let (deployment, _) = Deployment::with_keys(&["/ mask token:create"]);
    let tenants = deployment.must(&["tenant", "list"]);
    let tenant = tenants.split_whitespace().next().unwrap();
    let apps = deployment.must(&["app", "list", "--tenant", tenant]);
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
    let listed = deployment.must(&["key", "list", "--tenant", tenant, "--app", app]);

    assert!(imported.success, "{}", imported.stderr);
    let id = word_after(&imported.stdout, "key ");
    assert!(listed.contains(&id), "{listed}");
    assert!(!imported.stdout.contains("N88m"), "{}", imported.stdout);
    for (outcome, words) in [
        (again, "is in the vault already"),
        (short, "must be of the older format"),
        (empty, "standard input is empty"),
    ] {
        assert!(!outcome.success, "{words}");
        assert!(outcome.stderr.contains(words), "{}", outcome.stderr);
    }
}
