//! `cloakroom import` and `cloakroom export`: processes that are killed, two persons, and two vaults.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::canaries::text_patterns;
use crate::support::{Deployment, each_file, outcome, query, word_after};

/// Lines of the input: several batches. `CLOAKROOM_TEST_CARDS` sets another number, a multiple of 6,000.
const LINES: u64 = 6_000;
/// Tokens of a chunk of an export.
const CHUNK: u64 = 1_000;

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
        let rule = "/ reveal token:read";
        let app = deployment.run_ok(&[
            "app", "create", "--tenant", &tenant, "--name", "A", "--type", "private", "--rule",
            rule,
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

    /// Files with card numbers of the input in clear: of the commands, and data, WAL and log of the database.
    fn files_with_card_numbers(&self) -> Vec<String> {
        let postgres = &self.deployment.postgres;
        // Writes what is in memory to the data files.
        query(postgres, "checkpoint");
        // Not as packed decimals: four bytes occur in ciphertext by chance.
        let patterns = text_patterns(CARD_PREFIX);
        let mut found = Vec::new();
        let mut search = |path: &Path, bytes: &[u8]| {
            let mut encodings = patterns.iter();
            if let Some(pattern) = encodings.find(|it| it.finder.find(bytes).is_some()) {
                found.push(format!("{} ({})", path.display(), pattern.encoding));
            }
        };
        each_file(self.deployment.folder.path(), &mut search);
        each_file(&postgres.data_folder(), &mut search);
        search(
            &postgres.log_file(),
            &std::fs::read(postgres.log_file()).unwrap(),
        );
        found
    }

    /// Verifies that the search finds a card number in the database.
    fn assert_search_finds_planted_number(&self) {
        let sql = format!("create table planted as select '{}'::text", card_number(7));
        query(&self.deployment.postgres, &sql);
        let found = self.files_with_card_numbers().join(", ");
        assert!(found.contains("pg_wal"), "{found}");
        assert!(found.contains("/base/"), "{found}");
    }
}

/// The first digits of all card numbers, of up to ten million lines.
const CARD_PREFIX: &str = "41111100";

/// A valid card number.
fn card_number(index: u64) -> String {
    let body = format!("{CARD_PREFIX}{index:07}");
    let digits = body.bytes().rev().enumerate().map(|(at, byte)| {
        let digit = u32::from(byte - b'0') * if at % 2 == 0 { 2 } else { 1 };
        digit / 10 + digit % 10
    });
    format!("{body}{}", (10 - digits.sum::<u32>() % 10) % 10)
}

#[expect(
    clippy::disallowed_methods,
    reason = "the environment sets the size of the input"
)]
fn lines() -> u64 {
    let number = std::env::var("CLOAKROOM_TEST_CARDS").ok();
    number.map_or(LINES, |number| number.parse().unwrap())
}

/// Cards as CSV; every thousandth is invalid.
fn card_file() -> String {
    let mut text = "customer,number,expiration\n".to_owned();
    for index in 0..lines() {
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

/// Runs an import whose input comes from a pipe, as from `gpg --decrypt`.
struct PipedImport {
    child: Child,
    writer: JoinHandle<()>,
}

impl PipedImport {
    fn start(mut command: Command, text: &str) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        let text = text.to_owned();
        let writer = std::thread::spawn(move || {
            // A killed process closes the pipe.
            let _ = std::io::Write::write_all(&mut input, text.as_bytes());
        });
        Self { child, writer }
    }

    /// Waits for the end; returns the exit code and the standard output.
    fn finish(self) -> (Option<i32>, String) {
        let output = self.child.wait_with_output().unwrap();
        self.writer.join().unwrap();
        (
            output.status.code(),
            String::from_utf8(output.stdout).unwrap(),
        )
    }

    fn kill_after(mut self, milliseconds: u64) {
        std::thread::sleep(Duration::from_millis(milliseconds));
        self.child.kill().unwrap();
        self.finish();
    }
}

#[test]
fn an_import_that_is_killed_again_and_again_loses_and_doubles_nothing() {
    let vault = Vault::start();
    let file = card_file();
    let rejected = lines() / 1_000;
    let valid = lines() - rejected;
    let (rejects, ids) = (vault.path("rejects.jsonl"), vault.path("ids.csv"));
    let words = "--name cards --format csv --map customer=metadata.customer --new-ids";
    let words = format!("{words} --id-map {ids} --rejects {rejects} -");
    let words: Vec<&str> = words.split(' ').collect();
    for failpoint in [
        "import.planned=1",
        "import.inserted=2",
        "import.committed=2",
        "import.inserted=1",
    ] {
        let mut command = vault.import(&words);
        command.env("CLOAKROOM_FAILPOINT", failpoint);
        let (code, text) = PipedImport::start(command, &file).finish();
        assert_eq!(code, None, "{failpoint}: {text}");
    }
    for milliseconds in [200, 350, 500, 800] {
        PipedImport::start(vault.import(&words), &file).kill_after(milliseconds * lines() / LINES);
    }

    let (code, text) = PipedImport::start(vault.import(&words), &file).finish();

    assert_eq!(code, Some(2), "lines were rejected: {text}");
    let counts = format!("{valid} created, 0 duplicates, {rejected} rejected");
    assert!(text.contains(&counts), "{text}");
    assert!(text.contains("earlier run"), "{text}");
    assert_eq!(vault.count("*"), valid);
    assert_eq!(vault.count("distinct metadata"), valid);
    let rejects = std::fs::read_to_string(&rejects).unwrap();
    assert_eq!(rejects.lines().count() as u64, rejected, "{rejects}");
    let first = r#"{"line":1001,"id":null,"reason":"data.expiration_month: "#;
    assert!(rejects.starts_with(first), "{rejects}");
    let ids = std::fs::read_to_string(&ids).unwrap();
    assert_eq!(ids.lines().count() as u64, valid + 1);
    let found = vault.files_with_card_numbers();
    assert_eq!(found, Vec::<String>::new());
    let (_, text) = PipedImport::start(vault.import(&words), &file).finish();
    assert!(text.contains("nothing to do"), "{text}");
    assert_eq!(vault.count("*"), valid);
    vault.assert_search_finds_planted_number();
}

#[test]
fn options_that_do_not_apply_to_the_input_are_rejected() {
    let vault = Vault::start();
    let file = vault.path("tokens.jsonl");
    std::fs::write(&file, "{\"type\": \"token\", \"data\": 1}\n").unwrap();
    for (words, expected) in [
        ("--map a=id", "add --format csv"),
        ("--processor stripe", "add --format csv"),
    ] {
        let words: Vec<&str> = words.split(' ').collect();
        let run = outcome(vault.import(&[&["--name", "a", &file][..], &words].concat()));
        assert!(
            !run.success && run.stderr.contains(expected),
            "{}",
            run.stderr
        );
        assert_eq!(vault.count("*"), 0);
    }
}

/// Runs as root with the variable of `sudo`, as two persons with their own accounts do.
#[test]
fn two_persons_move_a_tenant_to_another_vault() {
    if !is_root() {
        // Only root can act for two users; the pipeline runs as root.
        return;
    }
    let (source, destination) = (Vault::start(), Vault::start());
    let valid = lines() - lines() / 1_000;
    let cards = source.path("cards.csv");
    std::fs::write(&cards, card_file()).unwrap();
    let words = format!("--name cards --format csv --map customer=id {cards}");
    let words: Vec<&str> = words.split(' ').collect();
    let imported = outcome(source.import(&words));
    assert!(
        imported.stdout.contains(&format!("{valid} created")),
        "{}",
        imported.stderr
    );
    std::fs::remove_file(&cards).unwrap();
    let (private, public) = key_pair(&destination);

    let out = export(&source, &public);

    let found = source.files_with_card_numbers();
    assert_eq!(found, Vec::<String>::new());
    let key = source.deployment.run_ok(&["audit", "public-key"]);
    let words = format!("--public-key {} --decrypt-key {private}", key.trim());
    let words: Vec<&str> = words.split(' ').collect();
    let verify = [&["export", "verify"][..], &words, &[&out]].concat();
    let verified = destination.deployment.run_ok(&verify);
    let how = format!("verified signature, digests, ids and counts: {valid} tokens");
    assert!(verified.contains(&how), "{verified}");
    let moved = outcome(destination.import(&[&["--export", &out][..], &words].concat()));
    let reconciled = format!("reconciled with the manifest: {valid} tokens");
    assert!(
        moved.stdout.contains(&reconciled),
        "{}{}",
        moved.stdout,
        moved.stderr
    );
    assert_eq!(destination.count("*"), valid);
    let found = destination.files_with_card_numbers();
    assert_eq!(found, Vec::<String>::new());
    source.deployment.run_ok(&["audit", "verify"]);
    destination.deployment.run_ok(&["audit", "verify"]);
}

#[test]
fn an_export_that_is_killed_again_and_again_is_complete_or_absent() {
    if !is_root() {
        return;
    }
    let vault = Vault::start();
    let valid = lines() - lines() / 1_000;
    let words = "--name cards --format csv --map customer=id -";
    let words: Vec<&str> = words.split(' ').collect();
    let (_, text) = PipedImport::start(vault.import(&words), &card_file()).finish();
    assert!(text.contains(&format!("{valid} created")), "{text}");
    let (private, public) = key_pair(&vault);
    let id = approved_export(&vault, &public);
    let (out, again) = (vault.path("out"), vault.path("again"));
    let run = |out: &str| export_command(&vault, ADA, &format!("run {id} --out {out}"));
    let last = valid.div_ceil(CHUNK);
    for chunk in [1, 3, last] {
        let mut command = run(&out);
        command.env("CLOAKROOM_FAILPOINT", format!("export.written={chunk}"));
        assert_killed(command);
        assert!(!Path::new(&out).exists(), "{chunk} of {last} chunks");
    }
    for milliseconds in [50, 150, 250] {
        let mut child = run(&out).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(milliseconds * lines() / LINES));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!Path::new(&out).exists(), "after {milliseconds} ms");
    }
    let mut command = run(&out);
    command.env("CLOAKROOM_FAILPOINT", "export.published=1");
    assert_killed(command);
    assert_exports(run(&again));

    // The one that was killed when it was complete, and the one that ended.
    for folder in [&out, &again] {
        let key = vault.deployment.run_ok(&["audit", "public-key"]);
        let words = ["export", "verify", "--public-key", key.trim(), folder];
        let verify = [&words[..], &["--decrypt-key", &private]].concat();
        let verified = vault.deployment.run_ok(&verify);
        let how = format!("verified signature, digests, ids and counts: {valid} tokens");
        assert!(verified.contains(&how), "{verified}");
    }
    let more = outcome(run(&vault.path("more")));
    assert!(!more.success, "a request runs once: {}", more.stdout);
    let found = vault.files_with_card_numbers();
    assert_eq!(found, Vec::<String>::new());
    vault.deployment.run_ok(&["audit", "verify"]);
}

fn assert_killed(mut command: Command) {
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), None, "{output:?}");
}

/// Exports all tokens, by two persons; returns the folder.
fn export(source: &Vault, public: &str) -> String {
    let id = approved_export(source, public);
    let out = source.path("out");
    assert_exports(export_command(
        source,
        ADA,
        &format!("run {id} --out {out}"),
    ));
    out
}

/// Users of two persons.
const ADA: &str = "1";
const GRACE: &str = "2";

/// A request to export all tokens, that another person has approved; returns its id.
fn approved_export(source: &Vault, public: &str) -> String {
    let as_user = |uid, words: &str| outcome(export_command(source, uid, words));
    let unknown = as_user("4242424", &format!("request --to {public} --reason Move"));
    let denied = "user 4242424 has no account on this host";
    assert!(unknown.stderr.contains(denied), "{}", unknown.stderr);
    let requested = as_user(ADA, &format!("request --to {public} --reason Move"));
    assert!(requested.success, "{}", requested.stderr);
    let id = word_after(&requested.stdout, "export ");
    let listed = outcome(export_command(source, GRACE, "list"));
    let receiver = word_after(&listed.stdout, "encrypted to: ");
    let by = word_after(&listed.stdout, " by ");
    let unproven = format!("{by} (no login session)");
    assert!(listed.stdout.contains(&unproven), "{}", listed.stdout);
    let alone = as_user(
        ADA,
        &format!("approve {id} --receiver {receiver} --as Grace"),
    );
    let denied = "must be approved by another person";
    assert!(alone.stderr.contains(denied), "{}", alone.stderr);
    let other = "0".repeat(64);
    let other = as_user(GRACE, &format!("approve {id} --receiver {other}"));
    let denied = "has another fingerprint than --receiver";
    assert!(other.stderr.contains(denied), "{}", other.stderr);
    let approved = as_user(GRACE, &format!("approve {id} --receiver {receiver}"));
    assert!(approved.success, "{}", approved.stderr);
    id
}

/// `cloakroom export WORDS`, by a user with `sudo`.
fn export_command(source: &Vault, uid: &str, words: &str) -> Command {
    let (verb, rest) = words.split_once(' ').unwrap_or((words, ""));
    let mut arguments = vec!["export", verb, "--tenant", &source.tenant];
    arguments.extend(rest.split_whitespace());
    source.deployment.sudo(uid, &arguments)
}

fn assert_exports(run: Command) {
    let run = outcome(run);
    let valid = lines() - lines() / 1_000;
    let counts = format!("{valid} tokens in {} chunks", valid.div_ceil(CHUNK));
    assert!(run.stdout.contains(&counts), "{}{}", run.stdout, run.stderr);
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
