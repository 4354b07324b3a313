//! Imports and exports of tokens.

mod export;
mod import;
mod input;
mod measure;
mod move_tenant;
mod progress;

use std::io::Cursor;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

use cloakroom::access::Tenant;
use cloakroom::audit::Operator;
use cloakroom::tokens::TokenVault;
use cloakroom::transfer::import::{
    BatchReport, Counts, Error, Format, Options, RejectedLine, Target, run,
};
use cloakroom::transfer::{PrivateKey, PublicKey};
use cloakroom_testkit::TestVault;
use serde_json::{Value, json};
use uuid::Uuid;

/// Batches that imports of this process have repeated.
pub(crate) static REPETITIONS: AtomicU64 = AtomicU64::new(0);
pub(crate) const APPLICATION: Uuid = Uuid::from_u128(7);

pub(crate) fn operator(user: &str) -> Operator {
    Operator::new(None, user, "vault1").unwrap()
}

/// Options of an import of JSON lines in clear.
pub(crate) fn options(name: &str) -> Options {
    Options {
        name: name.to_owned(),
        format: Format::JsonLines,
        key: None,
        chunks: None,
        assigns_ids: false,
        deduplicates: false,
        is_dry_run: false,
        lines: None,
        in_flight: 3,
        before_repetition: |_, _| {
            REPETITIONS.fetch_add(1, Ordering::Relaxed);
        },
    }
}

/// Imports a text; returns counts, and all reports as one.
pub(crate) async fn import_with(
    vault: &TestVault,
    tenant: &Tenant,
    options: Options,
    input: impl Into<Vec<u8>>,
) -> Result<(Counts, BatchReport), Error> {
    let target = Target {
        vault: TokenVault::clone(&vault.vault),
        tenant: tenant.clone(),
        application: APPLICATION,
    };
    let mut all = BatchReport::default();
    let input = Cursor::new(input.into());
    let counts = run(target, options, input, |batch| {
        all.rejected.extend(batch.rejected);
        all.mapped.extend(batch.mapped);
    });
    let counts = counts.await?;
    all.rejected.sort_by_key(|rejected| rejected.line);
    all.mapped.sort_by_key(|mapped| mapped.line);
    Ok((counts, all))
}

pub(crate) async fn import_lines(
    vault: &TestVault,
    tenant: &Tenant,
    name: &str,
    input: impl Into<Vec<u8>>,
) -> Result<(Counts, BatchReport), Error> {
    import_with(vault, tenant, options(name), input).await
}

/// The card number at a position of a sequence of valid ones.
pub(crate) fn card_number(index: u64) -> String {
    let body = format!("424242{index:09}");
    let sum: u32 = body
        .bytes()
        .rev()
        .enumerate()
        .map(|(at, byte)| {
            let digit = u32::from(byte - b'0') * if at % 2 == 0 { 2 } else { 1 };
            digit / 10 + digit % 10
        })
        .sum();
    format!("{body}{}", (10 - sum % 10) % 10)
}

/// JSON lines of cards that all differ.
pub(crate) fn cards(count: u64) -> String {
    let lines = (0..count).map(|index| {
        let data =
            json!({"number": card_number(index), "expiration_month": 12, "expiration_year": 2040});
        json!({"type": "card", "data": data}).to_string() + "\n"
    });
    lines.collect()
}

fn rejected(line: u64, id: Option<&str>, reason: &str) -> RejectedLine {
    RejectedLine {
        line,
        id: id.map(str::to_owned),
        reason: reason.to_owned(),
    }
}

/// A key pair that `openssl` creates: the private key's file and the public key.
pub(crate) fn key_pair(folder: &Path) -> (PathBuf, PublicKey) {
    let (private, public) = (folder.join("private.pem"), folder.join("public.pem"));
    let openssl = |arguments: &[&str]| {
        let run = Command::new("openssl").args(arguments).output().unwrap();
        assert!(run.status.success(), "{run:?}");
    };
    let (private_path, public_path) = (private.to_str().unwrap(), public.to_str().unwrap());
    openssl(&["genpkey", "-algorithm", "X25519", "-out", private_path]);
    openssl(&["pkey", "-in", private_path, "-pubout", "-out", public_path]);
    std::fs::set_permissions(&private, std::fs::Permissions::from_mode(0o600)).unwrap();
    let public = PublicKey::parse(&std::fs::read_to_string(public).unwrap()).unwrap();
    (private, public)
}

pub(crate) fn read_key(path: &Path) -> PrivateKey {
    PrivateKey::read(path).ok().unwrap()
}

async fn count(vault: &TestVault, table: &str) -> i64 {
    let database = vault.database.connect().await;
    let row = database
        .query_one(&format!("select count(*) from {table}"), &[])
        .await
        .unwrap();
    row.get(0)
}

fn without_times(mut token: Value) -> Value {
    for name in ["created_at", "created_by", "tenant_id", "fingerprint"] {
        token.as_object_mut().unwrap().remove(name);
    }
    token
}
