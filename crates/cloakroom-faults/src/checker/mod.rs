//! Compares the vault with the history, through the API and the audit log.

mod outbound;

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::clients::Workload;
use crate::clients::api::{Api, ApiRequest, ApiResponse};
use crate::clients::client::{SHARDS, container};
use crate::clients::stats::Invariant;
use crate::cluster::Cluster;
use crate::history::{Entry, State, parse_data};

pub(crate) use self::outbound::{Outbound, check_outbound};

/// Requests may fail for a while after a failover.
const READ_TIMEOUT: Duration = Duration::from_secs(60);
/// Number of listed tokens that are also read individually.
const SAMPLES: usize = 200;

/// What was checked in a part of a run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Checked {
    pub(crate) tokens: usize,
    pub(crate) outbound: Outbound,
}

/// Id and revision of listed tokens, by number in the history.
type ListedTokens = HashMap<usize, Vec<(Uuid, u32)>>;

/// Checks every token of a part of the run. Returns the number of tokens.
pub(crate) async fn check(workload: &Workload, nodes: &[Api]) -> Result<usize> {
    let listed = list_all(workload, &workload.api).await?;
    let entries = workload.history.entries().clone();
    let mut suspects = Vec::new();
    let mut samples = Vec::new();
    for (number, entry) in entries.iter().enumerate() {
        if entry.part != workload.part {
            continue;
        }
        let rows = listed.get(&number).map(Vec::as_slice).unwrap_or_default();
        compare(workload, number, entry, rows);
        match entry.id {
            Some(id) if rows.is_empty() && entry.must_exist() => suspects.push((number, id)),
            Some(id) => samples.push((number, id)),
            None => {}
        }
    }
    for number in listed.keys().filter(|number| **number >= entries.len()) {
        let what = format!("token {number} exists but was never created");
        workload.stats.violation(Invariant::Wrong, what);
    }
    let step = samples.len().div_ceil(SAMPLES).max(1);
    suspects.extend(samples.into_iter().step_by(step));
    for (index, (number, id)) in suspects.iter().enumerate() {
        let api = &nodes[index % nodes.len()];
        check_token(workload, api, *number, *id, &entries[*number]).await?;
    }
    Ok(listed.values().map(Vec::len).sum())
}

/// Compares the listed tokens of one number with its history.
fn compare(workload: &Workload, number: usize, entry: &Entry, rows: &[(Uuid, u32)]) {
    let report = |invariant, what: String| workload.stats.violation(invariant, what);
    if rows.len() > 1 {
        report(
            Invariant::Doubled,
            format!("token {number} exists {} times", rows.len()),
        );
        return;
    }
    let Some((id, revision)) = rows.first() else {
        if entry.must_exist() {
            report(
                Invariant::Lost,
                format!("token {number} is not listed; {entry:?}"),
            );
        }
        return;
    };
    if entry.must_not_exist() {
        report(
            Invariant::Resurrected,
            format!("deleted token {number} is listed"),
        );
    } else if !entry.may_have_state(State::Present(*revision)) {
        let what = format!("token {number} has revision {revision}; {entry:?}");
        report(Invariant::Wrong, what);
    } else if entry.id.is_some_and(|known| known != *id) {
        report(Invariant::Doubled, format!("token {number} has another id"));
    }
}

/// Snapshots of the history around a backup and an export of erasures.
pub(crate) struct RestoreSnapshots {
    /// Before the backup.
    pub(crate) backup: Vec<Entry>,
    /// Before the erasures were exported.
    pub(crate) before_erasures: Vec<Entry>,
    /// After the erasures were exported.
    pub(crate) after_erasures: Vec<Entry>,
}

/// Number of tokens of this part that are in the backup and have since been deleted.
pub(crate) fn count_deleted_since(workload: &Workload, backup: &[Entry], now: &[Entry]) -> usize {
    let both = backup.iter().zip(now);
    both.filter(|(then, now)| {
        then.part == workload.part && then.must_exist() && now.must_not_exist()
    })
    .count()
}

/// Checks a vault restored from a backup, after later erasures were applied to it.
pub(crate) async fn check_restored(
    workload: &Workload,
    api: &Api,
    snapshots: &RestoreSnapshots,
) -> Result<()> {
    let listed = list_all(workload, api).await?;
    let erasures = snapshots.before_erasures.iter();
    for (number, (before, after)) in erasures.zip(&snapshots.after_erasures).enumerate() {
        if after.part != workload.part {
            continue;
        }
        let report = |invariant, what: &str| {
            workload
                .stats
                .violation(invariant, format!("token {number} {what}"))
        };
        let then = snapshots
            .backup
            .get(number)
            .filter(|then| then.must_exist());
        let revision = listed.get(&number).map(|rows| rows[0].1);
        match (revision, then.map(|then| then.acknowledged)) {
            (Some(_), _) if before.must_not_exist() => {
                report(Invariant::Resurrected, "was restored")
            }
            (Some(found), Some(State::Present(then))) if found < then => {
                report(Invariant::Wrong, "is older than the backup");
            }
            (None, Some(_)) if after.must_exist() => report(Invariant::Lost, "was not restored"),
            _ => {}
        }
    }
    Ok(())
}

/// Reads a token from a node and compares it with its history.
async fn check_token(
    workload: &Workload,
    api: &Api,
    number: usize,
    id: Uuid,
    entry: &Entry,
) -> Result<()> {
    let path = format!("/tokens/{id}");
    let response = read(api, &path, &workload.keys.reveal).await?;
    let report = |invariant, what: &str| {
        workload
            .stats
            .violation(invariant, format!("token {number} {what}"))
    };
    if response.status == 404 {
        if entry.must_exist() {
            report(Invariant::Lost, "is not found");
        }
        return Ok(());
    }
    if entry.must_not_exist() {
        report(Invariant::Resurrected, "is found after its deletion");
        return Ok(());
    }
    let text = response.body.get("data").and_then(Value::as_str);
    let is_right = text.and_then(parse_data).is_some_and(|(found, revision)| {
        found == number && entry.may_have_state(State::Present(revision))
    });
    if !is_right {
        report(Invariant::Wrong, "differs from the acknowledged data");
    }
    Ok(())
}

async fn list_all(workload: &Workload, api: &Api) -> Result<ListedTokens> {
    let mut lists = JoinSet::new();
    for shard in 0..SHARDS {
        let (api, key) = (api.clone(), workload.keys.reveal.clone());
        let container = container(workload.part, shard);
        lists.spawn(async move { list(&api, &key, &container).await });
    }
    let mut tokens = ListedTokens::new();
    while let Some(list) = lists.join_next().await {
        for (id, text) in list?? {
            let Some((number, revision)) = parse_data(&text) else {
                let what = format!("token {id} has data that was never written");
                workload.stats.violation(Invariant::Wrong, what);
                continue;
            };
            tokens.entry(number).or_default().push((id, revision));
        }
    }
    Ok(tokens)
}

/// Lists all tokens of a container.
async fn list(api: &Api, key: &str, container: &str) -> Result<Vec<(Uuid, String)>> {
    let first = format!("/v2/tokens?container={container}&size=100");
    let mut path = first.clone();
    let mut found = Vec::new();
    loop {
        let response = read(api, &path, key).await?;
        let rows = response.body.get("data").and_then(Value::as_array);
        for row in rows.with_context(|| format!("a list page has no data: {}", response.status))? {
            let text = |name| row.get(name).and_then(Value::as_str);
            let id = text("id").and_then(|id| id.parse().ok());
            let id: Uuid = id.context("a token has no id")?;
            found.push((id, text("data").unwrap_or_default().to_owned()));
        }
        let next = response.body.pointer("/pagination/next");
        match next.and_then(Value::as_str) {
            Some(next) => path = format!("{first}&start={next}"),
            None => return Ok(found),
        }
    }
}

/// Retries until the response is 200 or 404.
async fn read(api: &Api, path: &str, key: &str) -> Result<ApiResponse> {
    let started_at = Instant::now();
    loop {
        let failure = match api.send(ApiRequest::get(path, key)).await {
            Ok(response) if matches!(response.status, 200 | 404) => return Ok(response),
            Ok(response) => format!("{}: {}", response.status, response.body),
            Err(error) => format!("{error:#}"),
        };
        if started_at.elapsed() > READ_TIMEOUT {
            bail!("the checker cannot read {path}: {failure}");
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
}

/// Checks that every successful revealing read has an audit log entry (I20).
pub(crate) async fn check_audit_log(workload: &Workload, cluster: &Cluster) -> Result<usize> {
    let recorded = revealing_traces(workload, cluster).await?;
    let revealed = {
        let revealed = workload.stats.revealed.lock();
        revealed.map_or_else(|error| error.into_inner().clone(), |reads| reads.clone())
    };
    for read in &revealed {
        let trace = workload.trace(*read);
        if !recorded.contains(trace.as_str()) {
            let what = format!("{trace} succeeded without an audit log entry");
            workload.stats.violation(Invariant::AuditError, what);
        }
    }
    Ok(revealed.len())
}

/// Trace ids of audit log entries for revealed data.
async fn revealing_traces(workload: &Workload, cluster: &Cluster) -> Result<HashSet<String>> {
    let primary = cluster.wait_for_primary().await?;
    // 4 is `revealed`, as crates/cloakroom-core/src/audit/entry.rs numbers it.
    let statement = format!(
        "select trace_id from log where outcome = 4 and trace_id like '{}%'",
        workload.trace_prefix()
    );
    let output = primary.sql("cloakroom", &statement).await?;
    Ok(output.lines().map(str::to_owned).collect())
}
