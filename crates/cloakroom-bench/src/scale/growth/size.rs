//! Bytes per token in each table and index.

use anyhow::Result;
use serde::Serialize;

use super::super::database::Database;

/// A table, an index, or a TOAST table.
#[derive(Clone, Serialize)]
pub(super) struct Part {
    pub(super) name: String,
    pub(super) bytes_per_token: f64,
}

pub(super) async fn measure(database: &Database, tokens: u64) -> Result<Vec<Part>> {
    let sql = "select part.relname, pg_relation_size(part.oid)
        from pg_class class
        cross join lateral (
            select class.oid as oid, class.relname::text as relname, 1 as place
            union all
            select class.reltoastrelid, class.relname || ' toast', 2
            where pg_relation_size(class.reltoastrelid) > 0
            union all
            select indexrelid, indexrelid::regclass::text, 3
            from pg_index
            where indrelid = class.oid
        ) part
        where class.oid in ('token'::regclass, 'term'::regclass, 'claim'::regclass)
        order by class.relname desc, part.place, part.relname";
    let parts = database.rows(sql).await?;
    Ok(parts
        .iter()
        .filter_map(|row| {
            let bytes: f64 = row.get(1)?.parse().ok()?;
            Some(Part {
                name: row.first()?.clone(),
                bytes_per_token: bytes / tokens as f64,
            })
        })
        .collect())
}

pub(super) fn total(parts: &[Part]) -> f64 {
    parts.iter().map(|part| part.bytes_per_token).sum()
}
