//! Worst cases for lists: very many containers, and expired tokens that are not deleted yet.

use std::time::Duration;

use anyhow::Result;

use super::case::{LIMIT, SIZE, Start, execute, of_kinds, one_kind};
use super::database::Database;
use super::page::median;
use super::shape::{KINDS, RARE, TENANT, TOKEN};

const RUNS: usize = 11;

/// A situation and the cost of an operation in it.
pub(super) struct Hard {
    pub(super) situation: String,
    pub(super) what: &'static str,
    pub(super) median: Duration,
    pub(super) buffers: u64,
}

/// Situations accumulate in this order.
pub(super) async fn measure_all(database: &Database, tokens: u64) -> Result<Vec<Hard>> {
    database
        .run("set plan_cache_mode = force_generic_plan")
        .await?;
    let mut found = Vec::new();
    found.extend(lists(database, "as it was").await?);
    let many = tokens / 10;
    database.run(&empty_containers(many)).await?;
    found.extend(lists(database, &format!("{many} empty containers more")).await?);
    database.run(&own_containers(many)).await?;
    found.extend(lists(database, &format!("{many} containers with a token each")).await?);
    let due = tokens / 100;
    database.run(&expire_first(due)).await?;
    found.extend(lists(database, &format!("the first {due} tokens expired")).await?);
    found.push(sweep(database, due).await?);
    database.run("reset plan_cache_mode").await?;
    Ok(found)
}

async fn lists(database: &Database, situation: &str) -> Result<Vec<Hard>> {
    let top = Start::top();
    let old = format!("{TENANT}, '{{/}}', '{{0}}', {KINDS}, 0, {SIZE}");
    let cases = [
        (
            "list, page 1",
            "token_queries::of_kinds",
            of_kinds(KINDS, &top),
        ),
        (
            "list by a rare type",
            "token_queries::of_kinds",
            of_kinds(&one_kind(RARE), &top),
        ),
        ("older list, page 1", "token_queries::old_page", old),
    ];
    let mut found = Vec::new();
    for (what, statement, arguments) in cases {
        let sql = execute(statement, &arguments);
        let mut times = Vec::with_capacity(RUNS);
        for _ in 0..RUNS {
            times.push(database.time(&sql).await?.0);
        }
        found.push(Hard {
            situation: situation.to_owned(),
            what,
            median: median(times),
            buffers: buffers(database, &sql).await?,
        });
    }
    Ok(found)
}

/// Deletes one batch as the service does; rolled back each time.
async fn sweep(database: &Database, due: u64) -> Result<Hard> {
    let sql = execute("tokens::sweep", "1000");
    let mut times = Vec::with_capacity(RUNS);
    for _ in 0..RUNS {
        database.run("begin").await?;
        times.push(database.time(&sql).await?.0);
        database.run("rollback").await?;
    }
    database.run("begin").await?;
    let buffers = buffers(database, &sql).await?;
    database.run("rollback").await?;
    Ok(Hard {
        situation: format!("the first {due} tokens expired"),
        what: "sweeping a batch of 1000",
        median: median(times),
        buffers,
    })
}

async fn buffers(database: &Database, sql: &str) -> Result<u64> {
    let explained = format!("explain (analyze, buffers, format json) {sql}");
    let row = database.first_row(&explained).await?.unwrap_or_default();
    let json: serde_json::Value = serde_json::from_str(row.first().map_or("[]", String::as_str))?;
    let blocks = |name: &str| json[0]["Plan"][name].as_u64().unwrap_or_default();
    Ok(blocks("Shared Hit Blocks") + blocks("Shared Read Blocks"))
}

/// Scanned before all others, because their paths sort last.
fn empty_containers(count: u64) -> String {
    format!(
        "insert into container (tenant_id, container_id, path)
        select {TENANT}, 1000 + n, format('/zz/empty/%s/', n)
        from generate_series(1, {count}) n;
        analyze container"
    )
}

fn own_containers(count: u64) -> String {
    format!(
        "insert into container (tenant_id, container_id, path)
        select {TENANT}, 10000000 + n, format('/zz/own/%s/', n)
        from generate_series(1, {count}) n;
        insert into token (tenant_id, token_id, container_id, path, kind, created_by, sealed)
        select {TENANT}, gen_random_uuid(), 10000000 + n, format('/zz/own/%s/', n), {TOKEN},
               gen_random_uuid(), sealed
        from generate_series(1, {count}) n
        cross join (select sealed from token limit 1) one;
        analyze container, token"
    )
}

fn expire_first(count: u64) -> String {
    format!(
        "update token
        set expires_at = now() - interval '1 second'
        where token_id in (
            select token_id
            from token
            where tenant_id = {TENANT}
              and kind = {TOKEN}
            order by path desc, created_at desc, token_id desc
            limit {count} + {LIMIT}
        );
        analyze token"
    )
}
