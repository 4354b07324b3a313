//! The tables of `engines.md`: support of features and statements by engines.

use std::fmt::Write;

use anyhow::Result;

use super::feature::{FEATURES, SCHEMA_FEATURES};
use super::known::{Known, Verdict};

pub(super) fn markdown(known: &Known, statements: &[(&str, &str)]) -> Result<String> {
    let mut text = String::new();
    totals(&mut text, known, statements)?;
    rejected(&mut text, known, statements)?;
    let names: Vec<&str> = FEATURES.iter().map(|(name, _)| *name).collect();
    writeln!(text, "\nWhat each makes of what our statements use:\n")?;
    support(&mut text, known, &names, true)?;
    let names: Vec<&str> = SCHEMA_FEATURES.iter().map(|(name, _)| *name).collect();
    writeln!(text, "\nAnd of what our tables use:\n")?;
    support(&mut text, known, &names, false)?;
    writeln!(
        text,
        "\nThe statements about tokens, terms, claims, replies and the record:\n"
    )?;
    spread(&mut text, known, statements)?;
    sources(&mut text, known)?;
    Ok(text)
}

/// Numbers of statements that are not fully supported. Supported ones are not counted, so that a new one does not change
/// the page.
fn totals(text: &mut String, known: &Known, statements: &[(&str, &str)]) -> Result<()> {
    writeln!(
        text,
        "Statements that an engine does not accept without a condition today:\n"
    )?;
    writeln!(
        text,
        "| engine | limits | undocumented | rejects |\n|---|---|---|---|"
    )?;
    for engine in &known.engines {
        let verdicts: Vec<Verdict> = statements
            .iter()
            .map(|(name, sql)| known.verdict_of(engine, name, sql))
            .collect();
        let count = |wanted| {
            verdicts
                .iter()
                .filter(|verdict| **verdict == wanted)
                .count()
        };
        writeln!(
            text,
            "| {} | {} | {} | {} |",
            engine.name,
            count(Verdict::Limits),
            count(Verdict::Unknown),
            count(Verdict::Refuses)
        )?;
    }
    Ok(())
}

/// Every rejected statement, of any module.
fn rejected(text: &mut String, known: &Known, statements: &[(&str, &str)]) -> Result<()> {
    for engine in &known.engines {
        let names: Vec<String> = statements
            .iter()
            .filter(|(name, sql)| known.verdict_of(engine, name, sql) == Verdict::Refuses)
            .map(|(name, _)| format!("`{name}`"))
            .collect();
        if !names.is_empty() {
            writeln!(text, "\n{} rejects {}.", engine.name, names.join(", "))?;
        }
    }
    Ok(())
}

fn support(text: &mut String, known: &Known, names: &[&str], of_statements: bool) -> Result<()> {
    let entries = if of_statements {
        &known.features
    } else {
        &known.schema
    };
    header(text, known, &["feature"])?;
    for name in names {
        write!(text, "| {name} |")?;
        for engine in &known.engines {
            let entry = entries
                .get(*name)
                .and_then(|entries| entries.get(&engine.key));
            write!(text, " {} |", entry.map_or("unknown", String::as_str))?;
        }
        writeln!(text)?;
    }
    Ok(())
}

fn spread(text: &mut String, known: &Known, statements: &[(&str, &str)]) -> Result<()> {
    header(text, known, &["statement", "shards"])?;
    for (name, sql) in statements {
        let Some(place) = known.places.get(*name) else {
            continue;
        };
        write!(text, "| `{name}` | {place} |")?;
        for engine in &known.engines {
            let verdict = known.verdict_of(engine, name, sql);
            write!(text, " {} |", verdict.word())?;
        }
        writeln!(text)?;
    }
    Ok(())
}

fn header(text: &mut String, known: &Known, first: &[&str]) -> Result<()> {
    let engines = known.engines.iter().map(|engine| engine.name.as_str());
    let columns: Vec<&str> = first.iter().copied().chain(engines).collect();
    writeln!(text, "| {} |", columns.join(" | "))?;
    writeln!(text, "|{}", "---|".repeat(columns.len()))?;
    Ok(())
}

fn sources(text: &mut String, known: &Known) -> Result<()> {
    writeln!(text, "\nWhere this is documented:\n")?;
    for engine in &known.engines {
        for source in &engine.sources {
            writeln!(text, "- {}: {source}", engine.name)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rejected_statement_is_listed_and_counted() {
        let known = Known::read(&cloakroom_devtools::workspace::root()).unwrap();
        let sweep = "select 1 from token order by expires_at limit $1 for update skip locked";
        let statements = [
            ("tokens::find", "select 1 from token"),
            ("tokens::sweep", sweep),
        ];

        let text = markdown(&known, &statements).unwrap();

        assert!(text.contains("\n| Citus | 0 | 0 | 1 |\n"), "{text}");
        assert!(
            text.contains("\nCitus rejects `tokens::sweep`.\n"),
            "{text}"
        );
        let line = text
            .lines()
            .find(|line| line.starts_with("| `tokens::sweep` |"));
        assert!(line.unwrap().contains(" no |"), "{line:?}");
        let line = text
            .lines()
            .find(|line| line.starts_with("| `tokens::find` |"));
        assert!(!line.unwrap().contains(" no |"), "{line:?}");
    }
}
