//! Creates tokens with the node's statement, including the audit log entry, one commit each.

use std::time::{Duration, Instant, SystemTime};

use anyhow::Result;
use tokio::task::JoinSet;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use super::super::database::{Database, Session};
use super::super::shape::{CARD, LARGEST, TENANT, mix};
use super::cost::{Cost, counted, median_us, reset};
use super::ids::random;

/// The id of the largest container.
const CONTAINER: i32 = 9;
const SEALED_BYTES: usize = 146;

/// How tokens are created.
pub(super) struct Work<'a> {
    pub(super) text: &'a str,
    pub(super) clients: usize,
    /// Run first on each connection.
    pub(super) settings: &'a str,
}

/// Creates tokens with these ids, directly after a checkpoint.
pub(super) async fn measure(database: &Database, work: &Work<'_>, ids: Vec<Uuid>) -> Result<Cost> {
    let count = ids.len();
    let mut shares: Vec<Vec<Uuid>> = vec![Vec::new(); work.clients];
    for (position, id) in ids.into_iter().enumerate() {
        shares[position % work.clients].push(id);
    }
    let mut sessions = Vec::new();
    for share in shares {
        let session = database.connect().await?;
        session.client.batch_execute(work.settings).await?;
        sessions.push((session, share));
    }
    database.run("truncate log; checkpoint").await?;
    reset(database).await?;
    let started_at = Instant::now();
    let mut running = JoinSet::new();
    for (session, share) in sessions {
        running.spawn(create_all(session, work.text.to_owned(), share));
    }
    let mut times = Vec::with_capacity(count);
    while let Some(done) = running.join_next().await {
        times.extend(done??);
    }
    let whole = started_at.elapsed().as_secs_f64() * 1e6 / count as f64;
    let each = match work.clients {
        1 => median_us(&times),
        _ => whole,
    };
    counted(database, &["tokens::insert"], count as u64, each).await
}

async fn create_all(session: Session, text: String, ids: Vec<Uuid>) -> Result<Vec<Duration>> {
    let statement = session.client.prepare(&text).await?;
    let mut times = Vec::with_capacity(ids.len());
    for id in ids {
        let row = New::of(id);
        let started_at = Instant::now();
        session.client.query_one(&statement, &row.params()).await?;
        times.push(started_at.elapsed());
    }
    Ok(times)
}

/// No key of digests was ever rotated.
const DIGEST_EPOCH: i32 = 0;

/// Names the first version of the key, as the statement requires.
fn sealed(mut noise: Vec<u8>) -> Vec<u8> {
    noise.splice(2..6, 1_i32.to_be_bytes());
    noise
}

/// A card, with the same parameters and nulls as in the service.
struct New {
    id: Uuid,
    by: Uuid,
    at: SystemTime,
    sealed: Vec<u8>,
    fingerprint: Vec<u8>,
    terms: Vec<Vec<u8>>,
    records: Vec<String>,
    intents: Vec<Uuid>,
    kept: Vec<String>,
    /// Empty: the tenant has no webhook.
    events: Vec<String>,
}

impl New {
    fn of(id: Uuid) -> Self {
        // Time-ordered ids have little randomness in their first half.
        let (_, seed) = random().as_u64_pair();
        let noise = |bytes: usize| -> Vec<u8> {
            (0_u64..)
                .flat_map(|part| mix(seed ^ part).to_be_bytes())
                .take(bytes)
                .collect()
        };
        let fingerprint = noise(32);
        Self {
            id,
            by: Uuid::from_u64_pair(7, 7),
            at: SystemTime::now(),
            sealed: sealed(noise(SEALED_BYTES)),
            terms: vec![fingerprint[..16].to_vec()],
            fingerprint,
            records: vec![record(id, seed)],
            intents: Vec::new(),
            kept: Vec::new(),
            events: Vec::new(),
        }
    }

    fn params(&self) -> [&(dyn ToSql + Sync); 27] {
        const NO_TEXT: &Option<String> = &None;
        const NO_BYTES: &Option<Vec<u8>> = &None;
        const NO_TIME: &Option<SystemTime> = &None;
        const NO_OFFSET: &Option<i16> = &None;
        [
            &TENANT,
            &self.id,
            NO_TEXT,
            &CARD,
            &CONTAINER,
            &LARGEST,
            NO_TIME,
            NO_OFFSET,
            &self.sealed,
            NO_TEXT,
            NO_TEXT,
            &self.fingerprint,
            NO_TEXT,
            NO_TEXT,
            &self.by,
            &self.at,
            NO_BYTES,
            NO_BYTES,
            NO_TIME,
            &false,
            &false,
            &DIGEST_EPOCH,
            &self.terms,
            &self.intents,
            &self.records,
            &self.kept,
            &self.events,
        ]
    }
}

/// An audit log entry as text, as long as those that nodes sign.
fn record(id: Uuid, seed: u64) -> String {
    let by = Uuid::from_u64_pair(7, 7);
    let trace = format!("{:016x}{seed:016x}", mix(seed));
    let seq = seed >> 40;
    let mac: String = (0..4)
        .map(|part| format!("{:016x}", mix(seed ^ part)))
        .collect();
    format!(
        "(3,\"2026-01-01 00:00:00+00\",{TENANT},1,{by},{by},1,{id},1,1,,{trace},1,{seq},\"\\\\x{mac}\")"
    )
}
