//! SQL that seals stored rows again, for the stores of their tables.

/// SQL for a page of a tenant's rows with sealed data, after the id `$2`.
#[macro_export]
macro_rules! sealed_page {
    ($table:literal, $id:literal, $columns:expr) => {
        concat!(
            "select ",
            $columns,
            "
        from ",
            $table,
            "
        where ",
            $table,
            ".tenant_id = $1
          and ",
            $table,
            ".",
            $id,
            " > $2
        order by ",
            $table,
            ".",
            $id,
            "
        limit $3"
        )
    };
}

/// SQL that replaces sealed values, each only if it is still the one that was opened. No other column changes, so that
/// concurrent changes of a row do not conflict with it.
///
/// Commits asynchronously: nothing is promised to a client, and a lost commit is repeated. Commits are
/// ordered in the WAL, so that a later, durable commit makes this one durable too.
#[macro_export]
macro_rules! replace_sealed {
    ($table:literal, $id:literal) => {
        concat!(
            "with at_once as materialized (
            select set_config('synchronous_commit', 'off', true)
        )
        update ",
            $table,
            "
        set sealed = ",
            $crate::fenced!("$1", "resealed.sealed"),
            "
        from at_once, unnest($2::uuid[], $3::bytea[], $4::bytea[]) as resealed (id, opened, sealed)
        where ",
            $table,
            ".tenant_id = $1
          and ",
            $table,
            ".",
            $id,
            " = resealed.id
          and substring(",
            $table,
            ".sealed from 3 for 20) = resealed.opened
        returning true"
        )
    };
}
