//! Tests of `engines.toml` and of statements.

use super::*;

fn known(places: &str) -> Known {
    let mut text = String::from(
        "functions = [\"now\"]\n[[engine]]\nkey = \"one\"\nname = \"One\"\nsources = []\n",
    );
    for (name, _) in FEATURES {
        let entry = if name.contains("skip") {
            "no: never"
        } else {
            "yes"
        };
        text.push_str(&format!("[feature.{name:?}]\none = {entry:?}\n"));
    }
    for (name, _) in SCHEMA_FEATURES {
        text.push_str(&format!("[schema.{name:?}]\none = \"yes\"\n"));
    }
    text.push_str(&format!("[place]\n{places}"));
    toml::from_str(&text).unwrap()
}

#[test]
fn unlisted_and_forbidden_features_are_errors() {
    let known = known("\"tokens::find\" = \"one\"\n");
    let check = |name: &str, text: &str| {
        let both = [("tokens::find", "select now()"), (name, text)];
        known.errors(&both, &[])
    };

    assert!(check("tenants::find", "select now()").is_empty());
    let errors = check("tenants::find", "select pg_sleep($1)");
    assert!(
        errors[0].starts_with("tenants::find calls pg_sleep:"),
        "{errors:?}"
    );
    let errors = check("tokens::new", "select now()");
    assert!(
        errors[0].starts_with("tokens::new has no place"),
        "{errors:?}"
    );
    let errors = check("tenants::find", "select nextval($1)");
    assert!(errors[0].ends_with("ruled out"), "{errors:?}");
    let errors = known.errors(
        &[("tokens::find", "select 1")],
        &["create trigger x".to_owned()],
    );
    assert_eq!(
        errors,
        ["create trigger x has `create trigger`, which is ruled out"]
    );
    let errors = known.errors(&[], &[]);
    assert!(
        errors[0].contains("places tokens::find, which does not exist"),
        "{errors:?}"
    );
}

#[test]
fn the_worst_verdict_counts() {
    let known = known("");
    let engine = &known.engines[0];

    assert_eq!(known.verdict(engine, &[]), Verdict::Accepts);
    assert_eq!(
        known.verdict(engine, &["`lateral`", "`skip locked`"]),
        Verdict::Refuses
    );
    assert_eq!(known.verdict(engine, &["something else"]), Verdict::Unknown);
    let sweep = |name| known.verdict_of(engine, name, "select 1 for update skip locked");
    assert_eq!(sweep("sessions::sweep"), Verdict::Refuses);
    let engine = &Engine {
        keeps_tables_whole: true,
        key: "one".to_owned(),
        name: String::new(),
        sources: Vec::new(),
    };
    let sweep = |name| known.verdict_of(engine, name, "select 1 for update skip locked");
    assert_eq!(sweep("sessions::sweep"), Verdict::Accepts);
    assert_eq!(sweep("tokens::sweep"), Verdict::Refuses);
}

/// The committed file covers every feature.
#[test]
fn every_feature_is_listed_for_every_engine() {
    let known = Known::read(&cloakroom_devtools::workspace::root()).unwrap();

    assert_eq!(known.missing_entries(), Vec::<String>::new());
    assert!(
        known
            .engines
            .iter()
            .all(|engine| !engine.sources.is_empty())
    );
}
