//! Findings of `cloakroom doctor` and `cloakroom config check`.

use cloakroom_scratch::{Postgres, PostgresOptions};

use crate::support::{Deployment, cloakroom, outcome, query};

/// A world-readable configuration file with a password is a warning, and in production an error.
#[test]
fn world_readable_secrets_are_reported() {
    use std::os::unix::fs::PermissionsExt as _;

    let deployment = Deployment::start();
    deployment.run_ok(&["migrate"]);
    deployment.run_ok(&["tenant", "create", "--name", "Shop", "--type", "test"]);
    let file = deployment.path("cloakroom.toml");
    let set_mode = |mode| {
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    let in_production = || {
        let mut command = deployment.command(&["config", "check"]);
        command.env("CLOAKROOM__VAULT__ENVIRONMENT", "production");
        command.env("CLOAKROOM__ROOT_KEY__ALLOW_FILE_IN_PRODUCTION", "true");
        command.env("CLOAKROOM__AUDIT__KEEP_DAYS", "30");
        outcome(command)
    };

    set_mode(0o644);
    let (open, doctor, rejected) = (
        deployment.run(&["config", "check"]),
        deployment.run(&["doctor"]),
        in_production(),
    );
    set_mode(0o600);
    let (private, accepted) = (deployment.run(&["config", "check"]), in_production());

    let message = "holds a secret and can be read by every user";
    for stdout in [&open.stdout, &rejected.stdout] {
        assert!(stdout.contains(message), "{stdout}");
    }
    assert!(doctor.stdout.contains("can be read"), "{}", doctor.stdout);
    assert!(open.success && !rejected.success);
    assert!(
        !private.stdout.contains("can be read"),
        "{}",
        private.stdout
    );
    assert!(accepted.success, "{}", accepted.stdout);
    assert!(
        accepted.stdout.contains("audit.keep_days: below 90"),
        "{}",
        accepted.stdout
    );
}

#[test]
fn doctor_reports_errors_warnings_and_ok() {
    let deployment = Deployment::start();

    let unmigrated = deployment.run(&["doctor"]);
    deployment.run_ok(&["migrate"]);
    deployment.run_ok(&["tenant", "create", "--name", "Shop", "--type", "test"]);
    let healthy = deployment.run(&["doctor"]);

    assert!(!unmigrated.success);
    let marks = unmigrated.stdout.lines();
    let mut marks = marks.filter_map(|line| line.split_whitespace().next());
    assert!(marks.any(|mark| mark == "error"), "{}", unmigrated.stdout);
    assert!(
        unmigrated.stdout.contains("run `cloakroom migrate`"),
        "{}",
        unmigrated.stdout
    );
    // One cause is one error.
    assert!(
        unmigrated.stdout.contains("1 error,"),
        "{}",
        unmigrated.stdout
    );
    assert!(healthy.success, "{}", healthy.stdout);
    assert!(
        healthy.stdout.contains("9 keys unwrap"),
        "{}",
        healthy.stdout
    );
    assert!(healthy.stdout.contains("0 errors"), "{}", healthy.stdout);
    assert!(
        healthy.stdout.contains("is a superuser"),
        "{}",
        healthy.stdout
    );
}

/// An administrator of the database adds them without touching a row.
#[test]
fn doctor_names_objects_and_settings_that_no_migration_made() {
    let deployment = Deployment::start();
    deployment.run_ok(&["migrate"]);
    let clean = deployment.run(&["doctor"]);
    query(
        &deployment.postgres,
        "create function noop() returns trigger language plpgsql as 'begin return null; end';
         create function keep() returns event_trigger language plpgsql as 'begin end';
         create trigger drop_entries before insert on log for each row execute function noop();
         create event trigger watch on ddl_command_end execute function keep();
         create rule hide as on delete to token do instead nothing;
         create policy hide_token on token using (false);
         alter table token enable row level security;
         create view tokens as select * from token;
         do $$ begin
             execute format('alter role %I set lock_timeout = 1', session_user);
             execute format('alter database %I set default_transaction_read_only = off', current_database());
         end $$",
    );

    let found = deployment.run(&["doctor"]);

    let kept = "no triggers, rules, policies, functions, views or settings but those of migrations";
    assert!(clean.stdout.contains(kept), "{}", clean.stdout);
    for object in [
        "trigger drop_entries on table log",
        "event trigger watch",
        "rule hide on table token",
        "policy hide_token on table token",
        "row-level security on table token",
        "view tokens",
        "function noop()",
        "setting lock_timeout=1 of role",
        "setting default_transaction_read_only=off of the database",
    ] {
        assert!(found.stdout.contains(object), "{object}: {}", found.stdout);
    }
    assert!(!found.stdout.contains("drop_log_days"), "{}", found.stdout);
}

#[test]
fn doctor_reports_unsafe_database_settings() {
    let risky = [
        ("full_page_writes", "off"),
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
    deployment.run_ok(&["migrate"]);

    let found = deployment.run(&["doctor"]);

    assert!(!found.success);
    for expected in ["leave torn pages", "prints whole rows"] {
        assert!(found.stdout.contains(expected), "{}", found.stdout);
    }
}

#[test]
fn doctor_reports_a_wrong_root_key_and_an_unreachable_database() {
    let deployment = Deployment::start();
    deployment.run_ok(&["migrate"]);
    deployment.run_ok(&["tenant", "create", "--name", "Shop", "--type", "test"]);
    let another = deployment.path("another.key");
    deployment.run_ok(&["root-key", "create", &another.display().to_string()]);

    let mut wrong_key = deployment.command(&["doctor"]);
    wrong_key.env("CLOAKROOM__ROOT_KEY__FILE", &another);
    let wrong_key = outcome(wrong_key);
    let mut unreachable = deployment.command(&["doctor"]);
    unreachable.env(
        "CLOAKROOM__DATABASE__URL",
        "postgres://someone:hush@127.0.0.1:1/none",
    );
    let unreachable = outcome(unreachable);

    assert!(!wrong_key.success && !unreachable.success);
    assert!(
        wrong_key.stdout.contains("another root key"),
        "{}",
        wrong_key.stdout
    );
    assert!(
        unreachable.stdout.contains("cannot be reached"),
        "{}",
        unreachable.stdout
    );
    assert!(
        !unreachable.stdout.contains("hush"),
        "{}",
        unreachable.stdout
    );
}

#[test]
fn invalid_configurations_are_reported_before_startup() {
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
