//! Fills the tables inside the server with two connections, without indexes.

use std::ops::Range;
use std::time::Instant;

use anyhow::Result;
use indicatif::{ProgressBar, ProgressStyle};
use tokio::task::JoinSet;

use super::super::database::{Database, Session};
use super::super::fill::drop_indexes;
use super::super::shape::{PLACES, TENANT, mix};
use super::server;

/// Description of the data, printed with the results.
pub(super) const MIX: &str = "random version 4 ids; 12 containers and 6 types, 55 % cards; sealed values of 120 to 179 bytes; \
one of ten tokens has three terms (fingerprint, metadata, search index), one of twenty shares the fingerprint \
of an older token as its only term, the others have none: 0.35 terms per token; 0.6 % have a claim, 2 % expire";

/// Tokens per statement.
const STEP: u64 = 250_000;
const CONNECTIONS: usize = 2;
/// The average fill of pages after random inserts. An index built at once would be fuller and about to split.
const RANDOM_KEYS: &str = "with (fillfactor = 70)";
const TABLES: &str = "'token', 'term', 'claim'";
/// Sealed values are slices of this many random bytes.
const NOISE: u64 = 65_536;
/// Expired tokens to delete at each size.
const DUE: u64 = 20_000;

/// Temporary disk space for sorting indexes.
const ROOM_PERCENT: u64 = 125;
const BYTES_GUESSED: u64 = 600;

/// The id of the token with this digest: 122 random bits, version and variant as in `src/ids.rs`.
fn id(hash: &str) -> String {
    format!(
        "encode(set_byte(set_byte(substr({hash}, 1, 16), 6, get_byte({hash}, 6) & 15 | 64),
            8, get_byte({hash}, 8) & 63 | 128), 'hex')::uuid"
    )
}

/// Ids of `count` random tokens among the first `tokens`, and fingerprints of tokens nearby.
pub(super) fn drawn(count: usize, tokens: u64) -> String {
    let id = id("sha512(int8send(n))");
    format!(
        "select {id}, substr(sha512(int8send(n / 10 * 10 + 3)), 33, 32)
        from (select floor(random() * {tokens})::bigint as n from generate_series(1, {count})) chosen"
    )
}

/// The fingerprint of token `n`, if it has one: one in twenty has that of the seventh token before it.
const FINGERPRINT: &str = "case when n % 10 = 3 then substr(sha512(int8send(n)), 33, 32)
    when n % 20 = 0 then substr(sha512(int8send(greatest(n - 7, 3))), 33, 32) end";

/// Applications that create with and without deduplication.
const DEDUPLICATES: &str = "'00000000-0000-4000-8000-000000000008'::uuid";
const OTHERS: &str = "'00000000-0000-4000-8000-000000000007'::uuid";

/// Half of the metadata.
pub(super) const COMMON_TERM: &str = "substr(sha256('plan gold'), 1, 16)";

pub(super) async fn prepare(database: &Database) -> Result<()> {
    for (number, place) in (1_i32..).zip(&PLACES) {
        let path = place.path;
        let sql = format!(
            "insert into container (tenant_id, container_id, path) values ({TENANT}, {number}, '{path}')"
        );
        database.run(&sql).await?;
    }
    // The key that the data of new tokens names.
    let key = format!(
        "insert into tenant_key (tenant_id, purpose, version, state, wrapped, check_value)
        values ({TENANT}, 3, 1, 2, '', '')"
    );
    database.run(&key).await?;
    Ok(())
}

/// Adds the tokens with these numbers. Returns the seconds for rows and for indexes.
pub(super) async fn add(
    database: &Database,
    tokens: Range<u64>,
    bytes_per_token: Option<u64>,
) -> Result<(f64, f64)> {
    let count = tokens.end - tokens.start;
    let per_token = bytes_per_token.unwrap_or(BYTES_GUESSED);
    server::require_disk_space(database, count * per_token * ROOM_PERCENT / 100)?;
    server::relax(database).await?;
    let progress = ProgressBar::new(count).with_style(ProgressStyle::with_template(
        "{msg:20} {wide_bar} {human_pos}/{human_len} {per_sec} {eta}",
    )?);
    let started_at = Instant::now();
    let again = drop_indexes(database, TABLES, RANDOM_KEYS).await?;
    progress.set_message("tokens");
    add_rows(database, tokens, &progress).await?;
    let rows_s = started_at.elapsed().as_secs_f64();
    progress.set_message("indexes, statistics");
    for sql in again.split(';') {
        server::require_disk_space(database, 0)?;
        database.run(sql).await?;
    }
    for key in ["token_pkey", "term_pkey", "claim_pkey"] {
        // From now on, pages split as usual.
        database
            .run(&format!("alter index {key} reset (fillfactor)"))
            .await?;
    }
    database.run("vacuum (analyze)").await?;
    progress.finish_and_clear();
    Ok((rows_s, started_at.elapsed().as_secs_f64() - rows_s))
}

async fn add_rows(database: &Database, tokens: Range<u64>, progress: &ProgressBar) -> Result<()> {
    let end = tokens.end;
    let due_every = ((end - tokens.start) / 50 / DUE).max(1);
    let sql = rows(due_every);
    let mut starts: Vec<u64> = tokens.step_by(usize::try_from(STEP)?).collect();
    starts.reverse();
    let mut running = JoinSet::new();
    for _ in 0..CONNECTIONS {
        if let Some(start) = starts.pop() {
            let session = database.connect().await?;
            session
                .client
                .batch_execute("set work_mem = '256MB'; set jit = off")
                .await?;
            running.spawn(add_step(session, sql.clone(), start, end));
        }
    }
    while let Some(done) = running.join_next().await {
        let (session, added) = done??;
        progress.inc(added);
        server::require_disk_space(database, 0)?;
        if let Some(start) = starts.pop() {
            running.spawn(add_step(session, sql.clone(), start, end));
        }
    }
    Ok(())
}

async fn add_step(session: Session, sql: String, start: u64, to: u64) -> Result<(Session, u64)> {
    let end = to.min(start + STEP);
    let noise: Vec<u8> = (0..NOISE / 8).flat_map(|n| mix(n).to_be_bytes()).collect();
    let bounds = [i64::try_from(start)?, i64::try_from(end - 1)?];
    session
        .client
        .execute(&sql, &[&bounds[0], &bounds[1], &noise])
        .await?;
    Ok((session, end - start))
}

/// Inserts the tokens from `$1` to `$2` and their dependent rows, with sealed values from the random bytes `$3`. One in
/// `due_every` of those with an expiry has expired.
fn rows(due_every: u64) -> String {
    let numbers: Vec<String> = (1..)
        .zip(&PLACES)
        .flat_map(|(number, place): (usize, _)| {
            std::iter::repeat_n(
                number.to_string(),
                usize::try_from(place.permille).unwrap_or(0),
            )
        })
        .collect();
    let numbers = numbers.join(",");
    let paths: Vec<String> = PLACES
        .iter()
        .map(|place| format!("'{}'", place.path))
        .collect();
    let paths = paths.join(",");
    let kinds: Vec<String> = PLACES.iter().map(|place| place.kind.to_string()).collect();
    let kinds = kinds.join(",");
    let window = NOISE - 256;
    let id = id("hash");
    format!(
        "with fresh as (
            insert into token (tenant_id, token_id, container_id, path, kind, created_at, expires_at,
                expires_offset_minutes, created_by, sealed, metadata, fingerprint, terms)
            select {TENANT}, token_id, container_id, (array[{paths}])[container_id],
                   case when n % 7 = 0 and container_id in (8, 9, 10) then 3
                        else ('{{{kinds}}}'::smallint[])[container_id] end,
                   to_timestamp(1700000000 + n / 3.0),
                   case when n % 50 <> 0 then null
                        when n / 50 % {due_every} = 0 then to_timestamp(1750000000 + n / 3)
                        else to_timestamp(4000000000 + n) end,
                   case when n % 50 = 0 then 0::smallint end,
                   case when container_id = 11 and n % 10 = 3 then {DEDUPLICATES} else {OTHERS} end,
                   sealed,
                   case when n % 20 = 3 then '{{\"plan\":\"gold\"}}'
                        when n % 20 = 13 then format('{{\"customer\":\"customer %s\"}}', n) end,
                   fingerprint,
                   case when n % 20 = 3
                        then array[substr(fingerprint, 1, 16), {COMMON_TERM}, substr(hash, 20, 16)]
                        when n % 20 = 13
                        then array[substr(fingerprint, 1, 16), substr(hash, 1, 16), substr(hash, 20, 16)]
                        when n % 20 = 0 then array[substr(fingerprint, 1, 16)]
                        else '{{}}' end
            from (
                select n, hash, {id} as token_id, {FINGERPRINT} as fingerprint,
                       ('{{{numbers}}}'::int[])
                           [1 + (get_byte(hash, 16) * 256 + get_byte(hash, 17)) % 1000] as container_id,
                       substr($3::bytea, (1 + n * 7919 % {window})::int,
                              120 + get_byte(hash, 18) % 60) as sealed
                from generate_series($1::bigint, $2::bigint) n
                cross join lateral (select sha512(int8send(n)) as hash offset 0) hashed
                offset 0
            ) made
            returning token_id, container_id, path, created_at, created_by, fingerprint, terms
        ), termed as (
            insert into term (tenant_id, term, path, created_at, token_id)
            select {TENANT}, unnest(terms), path, created_at, token_id
            from fresh
        )
        insert into claim (tenant_id, fingerprint, container_id, token_id)
        select {TENANT}, fingerprint, container_id, token_id
        from fresh
        where created_by = {DEDUPLICATES}"
    )
}
