//! Each rule is shown to fail on a small tree with one thing wrong, and to pass when nothing is.

use std::path::Path;

use super::exceptions::{Exception, apply};
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
        "//! Every route.\nuse crate::{proxy, tokens};\n",
    ),
    (
        "crates/cloakroom/src/tokens/mod.rs",
        "//! Tokens.\nmod create;\nmod store;\n",
    ),
    (
        "crates/cloakroom/src/tokens/create.rs",
        "//! Creating.\nuse super::store;\nuse crate::{access, events, vault::Vault};\n",
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
    ("crates/cloakroom/src/caller.rs", "//! Who asks.\n"),
    ("crates/cloakroom/src/keys/mod.rs", "//! Keys.\n"),
    (
        "crates/cloakroom/src/storage/mod.rs",
        "//! Storage.\nconst NOW: &str = \"select now()\";\n",
    ),
    (
        "crates/cloakroom/src/config/mod.rs",
        "//! Settings.\nmod http;\n",
    ),
    ("crates/cloakroom/src/config/http.rs", "//! One section.\n"),
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

/// What the checks find in the clean tree with `planted` added to it, or laid over it.
fn found(planted: &[(&str, &str)]) -> Vec<Violation> {
    let root = tempfile::tempdir().unwrap();
    for (path, text) in CLEAN.iter().chain(planted) {
        let path = root.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    violations(&Tree::read(root.path()).unwrap())
}

/// Asserts that planting `text` in `path` is found by `rule`, on `line`, and nothing else is.
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
fn a_violation_prints_its_place_its_rule_and_what_to_do() {
    let found = found(&[("migrations/0004_late.sql", "")]);

    assert_eq!(
        found[0].to_string(),
        "migrations/0004_late.sql:1: migration-number: number it 0003"
    );
}

#[test]
fn the_grammar_of_rooms_is_checked() {
    let room = "crates/cloakroom/src";
    let cases = [
        ("webhooks/endpoint.rs", "room-grammar"),
        ("billing/mod.rs", "room-grammar"),
        ("billing.rs", "room-grammar"),
        ("tokens/gate.rs", "room-grammar"),
        ("tokens/service.rs", "room-grammar"),
        ("tokens/errors.rs", "room-grammar"),
        ("tokens/find.sql", "sql-place"),
    ];
    for (path, rule) in cases {
        assert_found(&format!("{room}/{path}"), "//! Planted.\n", rule, 1);
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
fn a_room_that_looks_up_is_found() {
    let cases = [
        ("events/mod.rs", "use crate::tokens::Token;"),
        ("keys/mod.rs", "use crate::{ids, access::Permission};"),
        ("tokens/find.rs", "fn f() { crate::webhooks::deliver(); }"),
        ("tokens/find.rs", "use super::super::token_queries;"),
        ("storage/pool.rs", "use crate::keys;"),
        ("proxy/mod.rs", "use crate::router;"),
    ];
    for (path, line) in cases {
        let text = format!("//! Planted.\n\n{line}\n");
        assert_found(
            &format!("crates/cloakroom/src/{path}"),
            &text,
            "room-order",
            3,
        );
    }
}

#[test]
fn what_looks_up_only_in_tests_comments_or_texts_passes() {
    let text = "//! Events, as crate::tokens records them.\nconst A: &str = \"crate::tokens\";\n\
                #[cfg(test)]\nmod tests {\n    use crate::tokens;\n}\n";

    assert!(found(&[("crates/cloakroom/src/events/mod.rs", text)]).is_empty());
}

#[test]
fn rooms_of_one_row_that_use_each_other_are_found() {
    let found = found(&[(
        "crates/cloakroom/src/rate_limits/mod.rs",
        "//! Limits.\nuse crate::access::Application;\n",
    )]);

    let places: Vec<_> = found
        .iter()
        .map(|it| (it.rule, it.path.to_str().unwrap(), it.line))
        .collect();
    assert_eq!(
        places,
        [
            ("room-circle", "crates/cloakroom/src/access/gate.rs", 2),
            ("room-circle", "crates/cloakroom/src/rate_limits/mod.rs", 2),
        ]
    );
}

#[test]
fn anothers_store_is_found() {
    let cases = [
        "use crate::tokens::store;",
        "use crate::tokens::{self, store::find};",
        "fn f() { tokens::store::find(); }",
    ];
    for line in cases {
        let text = format!("//! Planted.\n{line}\n");
        assert_found(
            "crates/cloakroom/src/proxy/mod.rs",
            &text,
            "foreign-store",
            2,
        );
    }
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
    let function = format!("//! Long.\n\nfn f() {{\n{}}}\n", "    g();\n".repeat(71));

    assert_found("crates/cloakroom/src/tokens/find.rs", &long, "file-size", 1);
    assert_found(
        "crates/cloakroom/src/tokens/find.rs",
        &function,
        "function-size",
        3,
    );
    assert!(found(&[("crates/cloakroom/src/tokens/find.rs", &tested)]).is_empty());
}

#[test]
fn a_room_of_many_files_is_found() {
    let names: Vec<String> = (0..13)
        .map(|number| format!("crates/cloakroom/src/tokens/verb_{number}.rs"))
        .collect();
    let planted: Vec<_> = names
        .iter()
        .map(|name| (name.as_str(), "//! A verb.\n"))
        .collect();

    let found = found(&planted);

    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!(found[0].rule, "room-size");
}

#[test]
fn a_file_without_its_sentence_is_found() {
    assert_found("crates/cloakroom/src/ids.rs", "struct Id;\n", "opening", 1);
    assert_found(
        "crates/cloakroom/tests/it/main.rs",
        "mod tokens;\n",
        "opening",
        1,
    );
}

#[test]
fn a_name_that_says_nothing_is_found() {
    let cases = [
        "crates/cloakroom/tests/it/helpers.rs",
        "web/sdk/src/utils/dates.ts",
        "docs/misc.md",
    ];
    for path in cases {
        assert_found(path, "//! Planted.\n", "empty-name", 1);
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
fn what_was_left_for_later_is_found() {
    let later = concat!("//! Ids.\n// TO", "DO: more\n");
    let broken = concat!("-- FIX", "ME\n");

    assert_found("crates/cloakroom/src/ids.rs", later, "left-for-later", 2);
    assert_found("migrations/0003_more.sql", broken, "left-for-later", 1);
    assert_found(
        "crates/cloakroom/src/ids.rs",
        "//! Ids.\nfn f() { dbg!(1); }\n",
        "debug-print",
        2,
    );
}

#[test]
fn log_messages_are_constant() {
    let file = "crates/cloakroom/src/ids.rs";
    let spliced = "//! Ids.\nfn f(id: &str) {\n    tracing::warn!(\n        count = 1,\n        \"lost {id}\"\n    );\n}\n";
    assert_found(file, spliced, "spliced-message", 5);

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

#[test]
fn an_exception_covers_one_rule_in_one_file_and_must_be_needed() {
    let later = concat!("-- TO", "DO\n");
    let found = found(&[("migrations/0004_late.sql", later), ("docs/misc.md", "")]);
    let late = Exception {
        path: "migrations/0004_late.sql",
        rule: "migration-number",
        reason: "a",
    };
    let gone = Exception {
        path: "migrations/0009_gone.sql",
        rule: "migration-number",
        reason: "b",
    };

    let left = apply(&[late, gone], found);

    let rules: Vec<_> = left.iter().map(|violation| violation.rule).collect();
    assert_eq!(rules, ["empty-name", "left-for-later", "unused-exception"]);
}
