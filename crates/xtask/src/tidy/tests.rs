//! Every rule is verified to fail on a small tree with one violation, and to pass without.

use std::path::Path;

use super::tree::Tree;
use super::{Violation, violations};

const CLEAN: &[(&str, &str)] = &[
    ("Cargo.toml", "[workspace]\nmembers = [\"crates/*\"]\n"),
    ("README.md", "A vault.\n"),
    ("migrations/0001_tenants.sql", "create table tenant ();\n"),
    ("migrations/0002_tokens.sql", "create table token ();\n"),
    (
        "crates/cloakroom/Cargo.toml",
        "[dependencies]\nrustls.workspace = true\n",
    ),
    (
        "crates/cloakroom/src/lib.rs",
        "//! The service.\nmod vault;\nuse rustls as _;\nuse crate::router;\n",
    ),
    (
        "crates/cloakroom/src/vault.rs",
        "//! Context.\nuse crate::keys::Keyring;\n",
    ),
    (
        "crates/cloakroom/src/router.rs",
        "//! Every route.\nuse crate::{formulas, tokens};\n",
    ),
    (
        "crates/cloakroom/src/tokens/mod.rs",
        "//! Tokens.\nmod create;\nmod store;\n",
    ),
    (
        "crates/cloakroom/src/tokens/create.rs",
        "//! Creating.\nuse super::store;\nuse crate::{access, keys, vault::Vault};\n",
    ),
    (
        "crates/cloakroom/src/tokens/store.rs",
        "//! Statements.\nconst FIND: &str = \"select id from token\";\n",
    ),
    (
        "crates/cloakroom/src/access/mod.rs",
        "//! Access.\nmod gate;\n",
    ),
    (
        "crates/cloakroom/src/access/gate.rs",
        "//! The gate.\nuse crate::rate_limits;\n",
    ),
    (
        "crates/cloakroom/src/rate_limits/mod.rs",
        "//! Limits.\nuse crate::caller::Caller;\n",
    ),
    ("crates/cloakroom/src/caller.rs", "//! The caller.\n"),
    ("crates/cloakroom/src/keys/mod.rs", "//! Keys.\n"),
    (
        "crates/cloakroom-platform/src/storage/mod.rs",
        "//! Storage.\nconst NOW: &str = \"select now()\";\n",
    ),
    ("crates/cloakroom/tests/it/tokens.rs", "//! Through HTTP.\n"),
    (
        "crates/cloakroom-crypto/Cargo.toml",
        "[dependencies]\naws-lc-rs.workspace = true\n",
    ),
    (
        "crates/cloakroom-crypto/src/lib.rs",
        "//! Ciphers.\nuse aws_lc_rs::aead;\n",
    ),
];

/// The violations in the clean tree with the files of `planted` added or replaced.
fn found(planted: &[(&str, &str)]) -> Vec<Violation> {
    let root = tempfile::tempdir().unwrap();
    for (path, text) in CLEAN.iter().chain(planted) {
        let path = root.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    violations(&Tree::read(root.path()).unwrap())
}

/// Asserts that `text` in `path` violates `rule` on `line`, and no other rule.
fn assert_found(path: &str, text: &str, rule: &str, line: usize) {
    let found = found(&[(path, text)]);
    let [violation] = found.as_slice() else {
        panic!("one violation expected for {rule} in {path}, found: {found:#?}");
    };
    assert_eq!(
        (violation.rule, violation.line),
        (rule, line),
        "{violation}"
    );
    let folder = violation.path.as_path();
    assert!(Path::new(path).starts_with(folder), "{violation}");
    assert!(!violation.advice.is_empty());
}

#[test]
fn a_clean_tree_passes() {
    assert!(found(&[]).is_empty(), "{:#?}", found(&[]));
}

#[test]
fn a_violation_prints_its_position_rule_and_advice() {
    let found = found(&[("migrations/0004_late.sql", "")]);

    assert_eq!(
        found[0].to_string(),
        "migrations/0004_late.sql:1: migration-number: number it 0003"
    );
}

#[test]
fn the_layout_of_modules_is_checked() {
    let source = "crates/cloakroom/src";
    let cases = [
        ("tokens/service.rs", "module-layout"),
        ("tokens/errors.rs", "module-layout"),
        ("tokens/find.sql", "sql-place"),
    ];
    for (path, rule) in cases {
        assert_found(&format!("{source}/{path}"), "//! Planted.\n", rule, 1);
    }
}

#[test]
fn a_statement_outside_a_store_is_found() {
    let text = "//! Creating.\n\nfn f() {\n    query(\"insert into token (id) values ($1)\");\n}\n";

    assert_found(
        "crates/cloakroom/src/tokens/create.rs",
        text,
        "sql-place",
        4,
    );
    assert_found("crates/cloakroom-cli/src/main.rs", text, "sql-place", 4);
}

#[test]
fn dependencies_of_tests_comments_and_literals_are_ignored() {
    let text = "//! Keys, as crate::tokens uses them.\nconst A: &str = \"crate::tokens\";\n\
                #[cfg(test)]\nmod tests {\n    use crate::tokens;\n}\n";

    assert!(found(&[("crates/cloakroom/src/keys/mod.rs", text)]).is_empty());
}

#[test]
fn cycles_of_modules_are_found() {
    let found = found(&[(
        "crates/cloakroom/src/keys/mod.rs",
        "//! Keys.\n\nuse crate::{bins::{Bin, Row}, router, tokens::Token};\n",
    )]);

    let places: Vec<_> = found
        .iter()
        .map(|it| (it.rule, it.path.to_str().unwrap(), it.line))
        .collect();
    let expected = [("module-cycle", "crates/cloakroom/src/keys/mod.rs", 3)];
    assert_eq!(places, expected);
    assert_eq!(
        found[0].advice,
        "keys, router, tokens, vault use each other: remove one direction"
    );
}

#[test]
fn sizes_are_checked_without_tests() {
    let lines = |count: usize| "const A: u8 = 1;\n".repeat(count);
    let long = format!("//! Long.\n{}", lines(500));
    let tested = format!(
        "//! Long.\n{}#[cfg(test)]\nmod tests {{\n{}}}\n",
        lines(400),
        lines(400)
    );

    assert_found("crates/cloakroom/src/tokens/find.rs", &long, "file-size", 1);
    assert!(found(&[("crates/cloakroom/src/tokens/find.rs", &tested)]).is_empty());
}

#[test]
fn modules_of_many_files_are_found() {
    let names: Vec<String> = (0..13)
        .map(|number| format!("crates/cloakroom/src/tokens/operation_{number}.rs"))
        .collect();
    let planted: Vec<_> = names
        .iter()
        .map(|name| (name.as_str(), "//! An operation.\n"))
        .collect();

    let found = found(&planted);

    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!(found[0].rule, "module-size");
}

#[test]
fn files_without_module_doc_are_found() {
    assert_found(
        "crates/cloakroom/src/caller.rs",
        "struct Id;\n",
        "module-doc",
        1,
    );
    assert_found(
        "crates/cloakroom/tests/it/main.rs",
        "mod tokens;\n",
        "module-doc",
        1,
    );
}

#[test]
fn vague_names_are_found() {
    let cases = [
        "crates/cloakroom/tests/it/helpers.rs",
        "web/sdk/src/utils/dates.ts",
        "docs/misc.md",
    ];
    for path in cases {
        assert_found(path, "//! Planted.\n", "vague-name", 1);
    }
}

#[test]
fn a_cipher_outside_its_crate_and_an_unused_crate_are_found() {
    let manifest = "crates/cloakroom-cli/Cargo.toml";
    let cipher = [
        (
            manifest,
            "[dependencies]\nclap.workspace = true\naws-lc-rs.workspace = true\n",
        ),
        (
            "crates/cloakroom-cli/src/main.rs",
            "//! A command.\nuse {aws_lc_rs, clap};\n",
        ),
    ];
    let unused = [
        (
            manifest,
            "[dependencies]\nclap.workspace = true\n\n[dev-dependencies]\ninsta = \"1\"\n",
        ),
        (
            "crates/cloakroom-cli/src/main.rs",
            "//! A command.\nuse clap;\n",
        ),
    ];

    for (planted, rule, line) in [(cipher, "cipher-crate", 3), (unused, "unused-crate", 5)] {
        let found = found(&planted);
        assert_eq!(found.len(), 1, "{found:#?}");
        assert_eq!((found[0].rule, found[0].line), (rule, line));
    }
}

#[test]
fn ciphers_are_allowed_in_tests_of_listed_crates_only() {
    for (crate_name, section, cipher, is_allowed) in [
        ("cloakroom-custody", "dev-dependencies", "aws-lc-rs", true),
        ("cloakroom-custody", "dependencies", "aws-lc-rs", false),
        (
            "cloakroom-custody",
            "build-dependencies",
            "aws-lc-rs",
            false,
        ),
        ("cloakroom-custody", "dev-dependencies", "ring", false),
        ("cloakroom-cli", "dev-dependencies", "aws-lc-rs", false),
    ] {
        let manifest = format!("crates/{crate_name}/Cargo.toml");
        let text = format!("[{section}]\n{cipher}.workspace = true\n");
        let test = format!("crates/{crate_name}/src/lib.rs");
        let code = format!("//! A crate.\nuse {};\n", cipher.replace('-', "_"));

        let found = found(&[(&manifest, &text), (&test, &code)]);

        let rules: Vec<_> = found.iter().map(|violation| violation.rule).collect();
        let expected: &[&str] = if is_allowed { &[] } else { &["cipher-crate"] };
        assert_eq!(rules, expected, "{crate_name} {section} {cipher}");
    }
}

#[test]
fn unfinished_work_is_found() {
    let later = concat!("//! Ids.\n// TO", "DO: more\n");
    let broken = concat!("-- FIX", "ME\n");

    assert_found("crates/cloakroom/src/caller.rs", later, "unfinished", 2);
    assert_found("migrations/0003_more.sql", broken, "unfinished", 1);
}

#[test]
fn log_messages_are_constant() {
    let file = "crates/cloakroom/src/caller.rs";
    let spliced = "//! Ids.\nfn f(id: &str) {\n    tracing::warn!(\n        count = 1,\n        \"lost {id}\"\n    );\n}\n";
    assert_found(file, spliced, "interpolated-message", 5);

    let constant =
        "//! Ids.\nfn f() { tracing::warn!(count = 1, \"lost\"); let _ = \"{}\".len(); }\n";
    let elsewhere = constant.replace(" let _", "\n let _");
    assert!(found(&[(file, &elsewhere)]).is_empty());
}

#[test]
fn migrations_are_numbered_without_gaps() {
    for name in [
        "0004_late.sql",
        "0002_again.sql",
        "3_short.sql",
        "0003.sql",
        "0003_Loud.sql",
        "x.txt",
    ] {
        let found = found(&[(&format!("migrations/{name}"), "")]);
        assert!(!found.is_empty(), "{name}");
        assert!(
            found
                .iter()
                .all(|violation| violation.rule == "migration-number"),
            "{found:#?}"
        );
    }
}
