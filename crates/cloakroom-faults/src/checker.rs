//! Compares the ledger with the vault, through the vault's own interface.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::clients::Load;
use crate::clients::api::{Answer, Api, Question};
use crate::clients::client::{SHARDS, container};
use crate::clients::tally::Rule;
use crate::cluster::Cluster;
use crate::ledger::{Entry, State, read_data};

/// A vault that has just lost its primary may refuse for a while.
const PATIENCE: Duration = Duration::from_secs(60);
/// Tokens that are also read one by one after they were seen in a list.
const SAMPLES: usize = 200;

/// What a page showed: ledger number, id, revision.
type Seen = HashMap<usize, Vec<(Uuid, u32)>>;

/// Looks at every token of a part, and returns how many there are.
pub(crate) async fn check(load: &Load, nodes: &[Api]) -> Result<usize> {
    let seen = list_all(load, &load.api).await?;
    let entries = load.ledger.entries().clone();
    let mut suspects = Vec::new();
    let mut samples = Vec::new();
    for (number, entry) in entries.iter().enumerate() {
        if entry.part != load.part {
            continue;
        }
        let rows = seen.get(&number).map(Vec::as_slice).unwrap_or_default();
        compare(load, number, entry, rows);
        match entry.id {
            Some(id) if rows.is_empty() && entry.must_exist() => suspects.push((number, id)),
            Some(id) => samples.push((number, id)),
            None => {}
        }
    }
    for number in seen.keys().filter(|number| **number >= entries.len()) {
        let what = format!("there is a token of {number}, which nobody made");
        load.tally.violation(Rule::Wrong, what);
    }
    let step = samples.len().div_ceil(SAMPLES).max(1);
    suspects.extend(samples.into_iter().step_by(step));
    for (index, (number, id)) in suspects.iter().enumerate() {
        let api = &nodes[index % nodes.len()];
        read_alone(load, api, (*number, *id), &entries[*number]).await?;
    }
    Ok(seen.values().map(Vec::len).sum())
}

/// What a list showed of one number, against what it may be.
fn compare(load: &Load, number: usize, entry: &Entry, rows: &[(Uuid, u32)]) {
    let tell = |rule, what: String| load.tally.violation(rule, what);
    if rows.len() > 1 {
        tell(
            Rule::Doubled,
            format!("{number} is there {} times", rows.len()),
        );
        return;
    }
    let Some((id, revision)) = rows.first() else {
        if entry.must_exist() {
            tell(Rule::Lost, format!("{number} is in no list; {entry:?}"));
        }
        return;
    };
    if entry.must_be_gone() {
        tell(Rule::Resurrected, format!("{number} is in a list"));
    } else if !entry.may_be(State::Present(*revision)) {
        let what = format!("{number} has revision {revision}; {entry:?}");
        tell(Rule::Wrong, what);
    } else if entry.id.is_some_and(|known| known != *id) {
        tell(Rule::Doubled, format!("{number} is there under another id"));
    }
}

/// What clients knew at three times, around a backup and what was erased since.
pub(crate) struct Times {
    /// When the backup was begun.
    pub(crate) backup: Vec<Entry>,
    /// Before the erasures were written down, and after.
    pub(crate) erasures: (Vec<Entry>, Vec<Entry>),
}

/// How many tokens of this part are in the backup and must be gone now.
pub(crate) fn deleted_since(load: &Load, backup: &[Entry], now: &[Entry]) -> usize {
    let both = backup.iter().zip(now);
    both.filter(|(then, now)| then.part == load.part && then.must_exist() && now.must_be_gone())
        .count()
}

/// Looks at a vault from a backup, in which what was deleted since is erased again.
pub(crate) async fn check_restored(load: &Load, api: &Api, times: &Times) -> Result<()> {
    let seen = list_all(load, api).await?;
    let (erased, kept) = &times.erasures;
    for (number, (erased, kept)) in erased.iter().zip(kept).enumerate() {
        if kept.part != load.part {
            continue;
        }
        let tell = |rule, what: &str| load.tally.violation(rule, format!("{number} {what}"));
        let then = times.backup.get(number).filter(|then| then.must_exist());
        let revision = seen.get(&number).map(|rows| rows[0].1);
        match (revision, then.map(|then| then.acknowledged)) {
            (Some(_), _) if erased.must_be_gone() => tell(Rule::Resurrected, "was restored"),
            (Some(seen), Some(State::Present(then))) if seen < then => {
                tell(Rule::Wrong, "is older than the backup");
            }
            (None, Some(_)) if kept.must_exist() => tell(Rule::Lost, "was not restored"),
            _ => {}
        }
    }
    Ok(())
}

/// Reads one token from one node.
async fn read_alone(load: &Load, api: &Api, token: (usize, Uuid), entry: &Entry) -> Result<()> {
    let (number, id) = token;
    let path = format!("/tokens/{id}");
    let answer = ask(api, &path, &load.keys.revealing).await?;
    let tell = |rule, what: &str| load.tally.violation(rule, format!("{number} {what}"));
    if answer.status == 404 {
        if entry.must_exist() {
            tell(Rule::Lost, "is answered with 404");
        }
        return Ok(());
    }
    if entry.must_be_gone() {
        tell(Rule::Resurrected, "is answered");
        return Ok(());
    }
    let text = answer.body.get("data").and_then(Value::as_str);
    let is_right = text
        .and_then(read_data)
        .is_some_and(|(seen, revision)| seen == number && entry.may_be(State::Present(revision)));
    if !is_right {
        tell(Rule::Wrong, "is not what was acknowledged");
    }
    Ok(())
}

async fn list_all(load: &Load, api: &Api) -> Result<Seen> {
    let mut lists = JoinSet::new();
    for shard in 0..SHARDS {
        let (api, key) = (api.clone(), load.keys.revealing.clone());
        let container = container(load.part, shard);
        lists.spawn(async move { list(&api, &key, &container).await });
    }
    let mut seen = Seen::new();
    while let Some(listed) = lists.join_next().await {
        for (id, text) in listed?? {
            let Some((number, revision)) = read_data(&text) else {
                let what = format!("{id} holds what nobody sent");
                load.tally.violation(Rule::Wrong, what);
                continue;
            };
            seen.entry(number).or_default().push((id, revision));
        }
    }
    Ok(seen)
}

/// All tokens of a container, page by page.
async fn list(api: &Api, key: &str, container: &str) -> Result<Vec<(Uuid, String)>> {
    let first = format!("/v2/tokens?container={container}&size=100");
    let mut path = first.clone();
    let mut found = Vec::new();
    loop {
        let answer = ask(api, &path, key).await?;
        let rows = answer.body.get("data").and_then(Value::as_array);
        for row in rows.with_context(|| format!("a page without data: {}", answer.status))? {
            let text = |name| row.get(name).and_then(Value::as_str);
            let id = text("id").and_then(|id| id.parse().ok());
            let id: Uuid = id.context("a token without an id")?;
            found.push((id, text("data").unwrap_or_default().to_owned()));
        }
        let next = answer.body.pointer("/pagination/next");
        match next.and_then(Value::as_str) {
            Some(next) => path = format!("{first}&start={next}"),
            None => return Ok(found),
        }
    }
}

/// Asks until there is an answer that says something.
async fn ask(api: &Api, path: &str, key: &str) -> Result<Answer> {
    let asked_at = Instant::now();
    loop {
        let told = match api.ask(Question::get(path, key)).await {
            Ok(answer) if matches!(answer.status, 200 | 404) => return Ok(answer),
            Ok(answer) => format!("{}: {}", answer.status, answer.body),
            Err(error) => format!("{error:#}"),
        };
        if asked_at.elapsed() > PATIENCE {
            bail!("the checker cannot read {path}: {told}");
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
}

/// Every revealed read that was answered has a record: I20.
pub(crate) async fn check_records(load: &Load, cluster: &Cluster) -> Result<usize> {
    let primary = cluster.wait_for_primary().await?;
    // 4 is `revealed`, as crates/cloakroom/src/audit/entry.rs numbers it.
    let statement = format!(
        "select trace_id from log where outcome = 4 and trace_id like 'part-{}-read-%'",
        load.part
    );
    let told = primary.sql("cloakroom", &statement).await?;
    let recorded: HashSet<&str> = told.lines().collect();
    let revealed = {
        let revealed = load.tally.revealed.lock();
        revealed.map_or_else(|error| error.into_inner().clone(), |reads| reads.clone())
    };
    for read in &revealed {
        let trace = load.trace(*read);
        if !recorded.contains(trace.as_str()) {
            let what = format!("{trace} was answered and has no record");
            load.tally.violation(Rule::Unrecorded, what);
        }
    }
    Ok(revealed.len())
}
