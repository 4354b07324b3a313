//! The prepared statements whose plans are checked.

use std::collections::BTreeSet;

use anyhow::{Context, Result, bail};
use cloakroom_devtools::service_sql::ServiceSql;

use super::case::Case;
use super::database::Database;

/// Modules of the service whose statements are checked.
const MODULES: [&str; 2] = ["token_queries::", "tokens::"];
/// The first four have the whole primary key in their conditions, and more parameters than there are plans to choose
/// from.
const UNCHECKED: [&str; 18] = [
    "tokens::insert",
    "tokens::insert_many",
    "tokens::update",
    "tokens::consume",
    // Compare all tokens, or a sample, with the audit log: they read whole tables by design.
    "tokens::list_histories",
    "tokens::sample_histories",
    "tokens::last_tenant",
    // Pages in the order of the primary key, for a rotation of keys.
    "tokens::list_sealed",
    "tokens::replace_sealed",
    "tokens::replace_digests",
    "tokens::remove_unnamed_terms",
    "tokens::remove_unnamed_claims",
    // A few lookups by primary key, while a key is rotated.
    "tokens::claim_others",
    "tokens::delete_stale_claims",
    // Many lookups by primary key at once, for an import.
    "tokens::find_duplicates",
    "tokens::find_taken",
    // Read all tokens of a tenant in one snapshot, for an export.
    "tokens::export",
    "tokens::count_exported",
];

pub(super) async fn prepare_all(sql: &ServiceSql, database: &Database) -> Result<()> {
    for (name, text) in checked(sql) {
        let sql = format!("prepare {} as {text}", prepared_name(name));
        database.run(&sql).await.with_context(|| name.to_owned())?;
    }
    Ok(())
}

/// Fails if a statement of the modules has no case, so that a new statement gets one.
pub(super) fn require_cases(sql: &ServiceSql, cases: &[Case]) -> Result<()> {
    let covered: BTreeSet<&str> = cases.iter().map(|case| case.statement).collect();
    let missing: Vec<&str> = checked(sql)
        .map(|(name, _)| name)
        .filter(|name| !covered.contains(name))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    bail!(
        "no case for {}: add one to scale/case.rs",
        missing.join(", ")
    )
}

fn checked(sql: &ServiceSql) -> impl Iterator<Item = (&str, &str)> {
    sql.statements().filter(|(name, _)| {
        MODULES.iter().any(|module| name.starts_with(module)) && !UNCHECKED.contains(name)
    })
}

/// The name of the prepared statement in the database.
pub(super) fn prepared_name(statement: &str) -> String {
    statement.replace("::", "_")
}
