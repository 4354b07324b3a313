//! `cloakroom import` and `cloakroom export`: processes that are killed, two persons, and two vaults.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use memchr::memmem;

use crate::support::{Deployment, each_file, outcome, query, word_after};

/// Lines of the input: several batches.
const LINES: u64 = 6_000;

/// A deployment with a tenant and an application.
struct Vault {
    deployment: Deployment,
    tenant: String,
    app: String,
}

impl Vault {
    fn start() -> Self {
        let deployment = Deployment::start();
        deployment.run_ok(&["migrate"]);
        let tenant = deployment.run_ok(&["tenant", "create", "--name", "T", "--type", "test"]);
        let tenant = word_after(&tenant, "tenant ");
        let app = deployment.run_ok(&[
            "app", "create", "--tenant", &tenant, "--name", "A", "--type", "private",
        ]);
        let app = word_after(&app, "application ");
        Self {
            deployment,
            tenant,
            app,
        }
    }

    fn import(&self, more: &[&str]) -> Command {
        let arguments = ["import", "--tenant", &self.tenant, "--app", &self.app];
        self.deployment.command(&[&arguments[..], more].concat())
    }

    fn count(&self, what: &str) -> u64 {
        let sql = format!("select count({what}) from token");
        query(&self.deployment.postgres, &sql)[0].parse().unwrap()
    }

    fn path(&self, name: &str) -> String {
        self.deployment.path(name).display().to_string()
    }
}

/// A valid card number.
fn card_number(index: u64) -> String {
    let body = format!("411111{index:09}");
    let digits = body.bytes().rev().enumerate().map(|(at, byte)| {
        let digit = u32::from(byte - b'0') * if at % 2 == 0 { 2 } else { 1 };
        digit / 10 + digit % 10
    });
    format!("{body}{}", (10 - digits.sum::<u32>() % 10) % 10)
}

/// Cards as CSV; every thousandth is invalid.
fn card_file() -> String {
    let mut text = "customer,number,expiration\n".to_owned();
    for index in 0..LINES {
        let number = card_number(index);
        let expiration = if index % 1_000 == 999 {
            "13/40"
        } else {
            "12/40"
        };
        text.push_str(&format!("c-{index},{number},{expiration}\n"));
    }
    text
}

/// Searches all files of a folder for card numbers of the input.
fn find_card_numbers(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    each_file(folder, &mut |path, bytes| {
        for index in [0, 1, 999, LINES - 1] {
            if memmem::find(bytes, card_number(index).as_bytes()).is_some() {
                found.push(path.display().to_string());
            }
        }
    });
    found
}

#[test]
fn an_import_that_is_killed_again_and_again_loses_and_doubles_nothing() {
    let vault = Vault::start();
    let file = card_file();
    let rejects = vault.path("rejects.jsonl");
    let ids = vault.path("ids.csv");
    let arguments = [
        "--name",
        "cards",
        "--format",
        "csv",
        "--map",
        "customer=metadata.customer",
        "--new-ids",
        "--id-map",
        &ids,
        "--rejects",
        &rejects,
        "-",
    ];
    // The input comes from a pipe, as from `gpg --decrypt`.
    let run = |command: &mut Command| {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        let text = file.clone();
        let writer = std::thread::spawn(move || {
            // A killed process closes the pipe.
            let _ = std::io::Write::write_all(&mut input, text.as_bytes());
        });
        (child, writer)
    };
    for (failpoint, hits) in [
        ("import.planned", 1),
        ("import.inserted", 2),
        ("import.committed", 2),
        ("import.inserted", 1),
    ] {
        let mut command = vault.import(&arguments);
        command.env("CLOAKROOM_FAILPOINT", format!("{failpoint}={hits}"));
        let (child, writer) = run(&mut command);
        assert!(!child.wait_with_output().unwrap().status.success());
        writer.join().unwrap();
    }
    for milliseconds in [200, 350, 500, 800] {
        let (mut child, writer) = run(&mut vault.import(&arguments));
        std::thread::sleep(Duration::from_millis(milliseconds));
        child.kill().unwrap();
        child.wait().unwrap();
        writer.join().unwrap();
    }

    let (child, writer) = run(&mut vault.import(&arguments));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();

    assert_eq!(output.status.code(), Some(2), "lines were rejected: {text}");
    assert!(
        text.contains("5994 created, 0 duplicates, 6 rejected"),
        "{text}"
    );
    assert_eq!(vault.count("*"), 5_994);
    assert_eq!(vault.count("distinct metadata"), 5_994);
    let rejects = std::fs::read_to_string(&rejects).unwrap();
    assert_eq!(rejects.lines().count(), 6, "{rejects}");
    let first = r#"{"line":1001,"id":null,"reason":"data.expiration_month: "#;
    assert!(rejects.starts_with(first), "{rejects}");
    let ids = std::fs::read_to_string(&ids).unwrap();
    assert_eq!(ids.lines().count(), 5_995);
    assert_eq!(
        find_card_numbers(vault.deployment.folder.path()),
        Vec::<String>::new()
    );

    let (child, writer) = run(&mut vault.import(&arguments));
    let text = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
    writer.join().unwrap();
    assert!(text.contains("nothing to do"), "{text}");
    assert_eq!(vault.count("*"), 5_994);
}

/// Runs as root with the variable of `sudo`, as two persons with their own accounts do.
#[test]
fn two_persons_move_a_tenant_to_another_vault() {
    if !is_root() {
        // Only root can act for two users; the pipeline runs as root.
        return;
    }
    let (source, destination) = (Vault::start(), Vault::start());
    let cards = source.path("cards.csv");
    std::fs::write(&cards, card_file()).unwrap();
    let arguments = [
        "--name",
        "cards",
        "--format",
        "csv",
        "--map",
        "customer=id",
        &cards,
    ];
    let imported = outcome(source.import(&arguments));
    assert!(
        imported.stdout.contains("5994 created"),
        "{}",
        imported.stderr
    );
    std::fs::remove_file(&cards).unwrap();
    let (private, public) = key_pair(&destination);

    let as_user = |uid: &str, arguments: &[&str]| {
        let mut command = source.deployment.command(arguments);
        command.env("SUDO_UID", uid);
        outcome(command)
    };
    let (ada, grace) = ("1", "2");
    let tenant = source.tenant.as_str();
    let requested = as_user(
        ada,
        &[
            "export", "request", "--tenant", tenant, "--to", &public, "--reason", "Move",
        ],
    );
    assert!(requested.success, "{}", requested.stderr);
    let id = word_after(&requested.stdout, "export ");
    let approve = ["export", "approve", "--tenant", tenant, &id];
    let alone = as_user(ada, &[&approve[..], &["--as", "Grace"]].concat());
    assert!(
        alone.stderr.contains("approved by another person"),
        "{}",
        alone.stderr
    );
    let approved = as_user(grace, &approve);
    assert!(approved.success, "{}", approved.stderr);
    let out = source.path("out");
    let run = as_user(
        ada,
        &["export", "run", "--tenant", tenant, "--out", &out, &id],
    );
    assert!(
        run.stdout.contains("5994 tokens in 6 chunks"),
        "{}{}",
        run.stdout,
        run.stderr
    );
    let found = find_card_numbers(source.deployment.folder.path());
    assert_eq!(found, Vec::<String>::new());

    let key = source.deployment.run_ok(&["audit", "public-key"]);
    let verify = [
        "export",
        "verify",
        "--public-key",
        key.trim(),
        "--decrypt-key",
        &private,
        &out,
    ];
    let verified = destination.deployment.run_ok(&verify);
    assert!(
        verified.contains("verified signature, digests, ids and counts"),
        "{verified}"
    );
    let arguments = [
        "--export",
        &out,
        "--decrypt-key",
        &private,
        "--public-key",
        key.trim(),
    ];
    let moved = outcome(destination.import(&arguments));
    assert!(
        moved
            .stdout
            .contains("reconciled with the manifest: 5994 tokens"),
        "{}{}",
        moved.stdout,
        moved.stderr
    );
    assert_eq!(destination.count("*"), 5_994);
    let found = find_card_numbers(destination.deployment.folder.path());
    assert_eq!(found, Vec::<String>::new());
    source.deployment.run_ok(&["audit", "verify"]);
    destination.deployment.run_ok(&["audit", "verify"]);
}

fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|it| std::os::unix::fs::MetadataExt::uid(&it) == 0)
}

/// The files of a key pair that `openssl` creates, as the guide has it.
fn key_pair(vault: &Vault) -> (String, String) {
    let (private, public) = (vault.path("private.pem"), vault.path("public.pem"));
    let openssl = |arguments: &[&str]| {
        let run = Command::new("openssl").args(arguments).output().unwrap();
        assert!(run.status.success(), "{run:?}");
    };
    openssl(&["genpkey", "-algorithm", "X25519", "-out", &private]);
    openssl(&["pkey", "-in", &private, "-pubout", "-out", &public]);
    std::fs::set_permissions(&private, std::fs::Permissions::from_mode(0o600)).unwrap();
    (private, public)
}
