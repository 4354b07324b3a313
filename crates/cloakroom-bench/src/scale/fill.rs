//! Fills the tables with COPY. Indexes are dropped before and created afterwards.

use std::pin::pin;
use std::time::{Duration, SystemTime};

use anyhow::Result;
use indicatif::{ProgressBar, ProgressStyle};
use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::database::Database;
use super::shape::{PLACES, Shape, TENANT, mix};

/// Creation time of the first token, in seconds since 1970.
const START_S: u64 = 1_700_000_000;
const FAR_AHEAD_S: u64 = 4_000_000_000;

/// The columns that the service sets for such tokens; the others are null or have defaults.
const COPY: &str = "copy token (tenant_id, token_id, container_id, path, kind, created_at,
    expires_at, expires_offset_minutes, created_by, sealed, metadata, fingerprint, terms)
    from stdin (format binary)";
const TYPES: [Type; 13] = [
    Type::INT4,
    Type::UUID,
    Type::INT4,
    Type::TEXT,
    Type::INT2,
    Type::TIMESTAMPTZ,
    Type::TIMESTAMPTZ,
    Type::INT2,
    Type::UUID,
    Type::BYTEA,
    Type::TEXT,
    Type::BYTEA,
    Type::BYTEA_ARRAY,
];

pub(super) async fn fill(database: &Database, tokens: u64) -> Result<()> {
    for (number, place) in (1_i32..).zip(&PLACES) {
        let path = place.path;
        let sql = format!(
            "insert into container (tenant_id, container_id, path) values ({TENANT}, {number}, '{path}')"
        );
        database.run(&sql).await?;
    }
    let progress = ProgressBar::new(tokens).with_style(ProgressStyle::with_template(
        "{msg:20} {wide_bar} {human_pos}/{human_len} {eta}",
    )?);
    let again = drop_indexes(database, "'token', 'term'", "").await?;
    progress.set_message("tokens");
    copy_tokens(database, tokens, &progress).await?;
    progress.set_message("terms and claims");
    // Derived in the database, with the columns that the service sets. Tokens of one type use deduplication.
    database
        .run(
            "insert into term (tenant_id, term, path, created_at, token_id)
            select tenant_id, unnest(terms), path, created_at, token_id
            from token;
            insert into claim (tenant_id, fingerprint, container_id, token_id)
            select distinct on (fingerprint, container_id)
                   tenant_id, fingerprint, container_id, token_id
            from token
            where kind = 8",
        )
        .await?;
    progress.set_message("indexes, statistics");
    database.run(&again).await?;
    database.run("vacuum analyze").await?;
    progress.finish_and_clear();
    Ok(())
}

async fn copy_tokens(database: &Database, tokens: u64, progress: &ProgressBar) -> Result<()> {
    const STEP: u64 = 1_000;
    let sink = database.session.client.copy_in(COPY).await?;
    let mut writer = pin!(BinaryCopyInWriter::new(sink, &TYPES));
    let by = Uuid::from_u64_pair(7, 7);
    let noise: Vec<u8> = (0..512).flat_map(|n| mix(n).to_be_bytes()).collect();
    for n in 0..tokens {
        let shape = Shape::of(n);
        let id = Uuid::from_u64_pair(mix(n ^ (1 << 62)), mix(n ^ (1 << 63)));
        let created_at = moment(START_S + shape.created_at_s);
        let expires_at = shape.expires_at_s.map(|after| moment(FAR_AHEAD_S + after));
        let offset_minutes = expires_at.map(|_| 0_i16);
        let from = usize::try_from(mix(n) % 3_000)?;
        let sealed = &noise[from..from + shape.sealed_bytes];
        let terms: Vec<&[u8]> = shape.terms.iter().map(|term| &term[..]).collect();
        writer
            .as_mut()
            .write(&[
                &TENANT,
                &id,
                &shape.container,
                &shape.path,
                &shape.kind,
                &created_at,
                &expires_at,
                &offset_minutes,
                &by,
                &sealed,
                &shape.metadata,
                &&shape.fingerprint[..],
                &terms,
            ])
            .await?;
        if n.is_multiple_of(STEP) {
            progress.set_position(n);
        }
    }
    writer.finish().await?;
    Ok(())
}

fn moment(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
}

/// Drops keys and indexes of these tables. Returns the statements that create them again, keys with these storage
/// parameters.
pub(super) async fn drop_indexes(
    database: &Database,
    tables: &str,
    storage: &str,
) -> Result<String> {
    let sql = format!(
        "select
            coalesce(string_agg(format('alter table %s drop constraint %I', class, name), ';'), ''),
            coalesce(string_agg(format('alter table %s add %s {storage}', class, definition), ';'), '')
        from (
            select conrelid::regclass as class, conname as name,
                   pg_get_constraintdef(oid) as definition
            from pg_constraint
            where contype = 'p' and conrelid in (select unnest(array[{tables}])::regclass)
        ) key"
    );
    let keys = database.first_row(&sql).await?.unwrap_or_default();
    let sql = format!(
        "select
            coalesce(string_agg(format('drop index %s', indexrelid::regclass), ';'), ''),
            coalesce(string_agg(pg_get_indexdef(indexrelid), ';'), '')
        from pg_index
        where not indisprimary and indrelid in (select unnest(array[{tables}])::regclass)"
    );
    let indexes = database.first_row(&sql).await?.unwrap_or_default();
    let (Some([drop_keys, add_keys]), Some([drop_indexes, add_indexes])) =
        (keys.first_chunk(), indexes.first_chunk())
    else {
        anyhow::bail!("the catalog query returned no indexes");
    };
    database.run(&format!("{drop_keys};{drop_indexes}")).await?;
    Ok(format!("{add_keys};{add_indexes}"))
}
