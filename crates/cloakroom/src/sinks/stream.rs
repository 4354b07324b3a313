//! Streams the entries of the audit log to other systems, in order per chain and at least once.
//!
//! Each sink has a task of its own, so that one that is slow or down delays nothing else. What it receives are the lines of an
//! export: entries, the keys that signed them, and checkpoints. `audit verify --stream` verifies them.

use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use cloakroom_core::audit::{self, StreamPage, StreamPosition};
use cloakroom_core::vault::Vault;
use cloakroom_platform::config::Config;
use cloakroom_platform::telemetry::catalog;
use cloakroom_platform::{ids, storage};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, timeout};
use uuid::Uuid;

use super::{Error, blocking, file, post, syslog, tls};

const PERIOD: Duration = Duration::from_secs(2);
/// Time for one page of entries, a few megabytes.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Longer than the period and the timeout together, so that the streaming node renews it.
const LEASE: Duration = Duration::from_secs(60);
/// Size of the body of a request, unless one line is longer.
const BODY_BYTES_MAX: usize = 1024 * 1024;

/// A system that receives entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamSink {
    File,
    Url,
    Syslog,
}

impl StreamSink {
    pub const ALL: [Self; 3] = [Self::File, Self::Url, Self::Syslog];

    /// Name in settings, metrics and the database.
    pub fn name(self) -> &'static str {
        match self {
            Self::File => "stream_file",
            Self::Url => "stream_url",
            Self::Syslog => "stream_syslog",
        }
    }

    pub fn is_configured(self, config: &Config) -> bool {
        match self {
            Self::File => config.audit.stream_file.is_some(),
            Self::Url => config.audit.stream_url.is_some(),
            Self::Syslog => config.audit.stream_syslog.is_some(),
        }
    }
}

/// A sink, as this node feeds it.
pub struct Stream {
    sink: StreamSink,
    holder: Uuid,
    position: tokio::sync::Mutex<Option<StreamPosition>>,
    /// The checkpoint of the position, without waiting for a sink that is slow.
    received: AtomicI64,
}

/// Streams to all configured sinks until it is dropped.
pub(super) async fn run(vault: Vault) {
    let mut tasks = JoinSet::new();
    for sink in StreamSink::ALL {
        if sink.is_configured(&vault.config) {
            let stream = std::sync::Arc::new(Stream::new(sink, ids::new_uuid()));
            tasks.spawn(measure(vault.clone(), stream.clone()));
            tasks.spawn(feed(vault.clone(), stream));
        }
    }
    while let Some(ended) = tasks.join_next().await {
        if let Err(error) = ended
            && let Ok(panic) = error.try_into_panic()
        {
            // Ends this job, and with it the node, like a panic of any other job.
            std::panic::resume_unwind(panic);
        }
    }
}

async fn feed(vault: Vault, stream: std::sync::Arc<Stream>) {
    let mut ticks = interval(PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        if let Err(error) = stream.send_all(&vault).await {
            let sink = stream.sink.name();
            catalog::AUDIT_SINK_FAILURES.with([sink]).increment(1);
            tracing::warn!(
                job = sink,
                error.kind = error.kind(),
                "a sink does not receive the entries of the audit log; the next run retries"
            );
        }
    }
}

/// Measures what a sink lacks, also while it does not respond.
async fn measure(vault: Vault, stream: std::sync::Arc<Stream>) {
    let mut ticks = interval(PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        // The database check reports an error.
        if let Ok(waiting) = stream.waiting(&vault).await {
            catalog::AUDIT_SINK_WAITING
                .with([stream.sink.name()])
                .set(waiting as f64);
        }
    }
}

impl Stream {
    pub fn new(sink: StreamSink, holder: Uuid) -> Self {
        Self {
            sink,
            holder,
            position: tokio::sync::Mutex::default(),
            received: AtomicI64::new(0),
        }
    }

    /// Sends everything that the sink has not received; returns the number of entries. `Ok` if another node does it.
    pub async fn send_all(&self, vault: &Vault) -> Result<usize, Error> {
        let mut position = self.position.lock().await;
        let mut entries = 0;
        loop {
            if self.sink != StreamSink::File
                && !storage::hold_lease(&vault.db, self.sink.name(), self.holder, LEASE).await?
            {
                // Another node continues from the database, and so does this one later.
                *position = None;
                return Ok(entries);
            }
            let known = match position.take() {
                Some(position) => position,
                None => StreamPosition::at(stored_position(vault, self.sink).await?),
            };
            self.received.store(known.checkpoint, Ordering::Release);
            let known = position.insert(known);
            let Some(page) = audit::read_stream_page(&vault.audit, known).await? else {
                super::lacking(vault, known.checkpoint).await?;
                return Ok(entries);
            };
            report_missing(self.sink, page.missing);
            self.send(vault, &page).await?;
            self.store_position(vault, page.next.checkpoint).await?;
            self.received.store(page.next.checkpoint, Ordering::Release);
            entries += page.entries;
            *position = Some(page.next);
        }
    }

    /// The number of checkpoints that the sink has not received with their entries.
    pub async fn waiting(&self, vault: &Vault) -> Result<i64, Error> {
        let received = match self.sink {
            StreamSink::File => self.received.load(Ordering::Acquire),
            StreamSink::Url | StreamSink::Syslog => vault.audit.shipped(self.sink.name()).await?,
        };
        Ok((vault.audit.newest_checkpoint().await? - received).max(0))
    }

    async fn store_position(&self, vault: &Vault, checkpoint: i64) -> Result<(), Error> {
        match &vault.config.audit.stream_file {
            // Written together with the lines.
            Some(_) if self.sink == StreamSink::File => Ok(()),
            _ => Ok(vault
                .audit
                .set_shipped(self.sink.name(), checkpoint)
                .await?),
        }
    }

    async fn send(&self, vault: &Vault, page: &StreamPage) -> Result<(), Error> {
        let settings = &vault.config.audit;
        let checkpoint = page.next.checkpoint;
        match self.sink {
            // A disk that hangs delays this task only.
            StreamSink::File => {
                let path = settings.stream_file.clone().ok_or(Error::Setting)?;
                append(path, page.lines.clone(), checkpoint).await
            }
            StreamSink::Url => {
                let url = settings.stream_url.as_ref().ok_or(Error::Setting)?;
                let posts = posts(&page.lines, checkpoint);
                let sent = post::send(url.reveal(), tls(&vault.config)?, posts);
                in_time(async { sent.await.map(|_bodies| ()) }).await
            }
            StreamSink::Syslog => {
                let address = settings.stream_syslog.as_deref().ok_or(Error::Setting)?;
                let lines = page.lines.iter().map(String::as_str);
                let lines = lines.map(|line| (syslog::ENTRY, line)).collect();
                in_time(syslog::send(address, tls(&vault.config)?, lines)).await
            }
        }
    }
}

/// What a sink lacks, for diagnostics: the number of checkpoints that it has not received with their entries.
pub async fn waiting_stream(vault: &Vault, sink: StreamSink) -> Result<i64, Error> {
    let received = stored_position(vault, sink).await?;
    super::lacking(vault, received).await
}

async fn stored_position(vault: &Vault, sink: StreamSink) -> Result<i64, Error> {
    match &vault.config.audit.stream_file {
        Some(path) if sink == StreamSink::File => {
            let path = path.clone();
            blocking(move || file::read_position(&path)).await
        }
        _ => Ok(vault.audit.shipped(sink.name()).await?),
    }
}

async fn in_time(sent: impl Future<Output = Result<(), Error>>) -> Result<(), Error> {
    timeout(TIMEOUT, sent).await.map_err(|_| Error::Timeout)?
}

/// Appends lines, then stores the position beside the file.
async fn append(path: PathBuf, lines: Vec<String>, checkpoint: i64) -> Result<(), Error> {
    let append = move || {
        file::append_lines(&path, &lines)?;
        file::write_position(&path, checkpoint)
    };
    blocking(append).await
}

/// Splits lines into requests.
fn posts(lines: &[String], checkpoint: i64) -> Vec<post::Post> {
    let mut bodies = vec![String::new()];
    for line in lines {
        if bodies
            .last()
            .is_some_and(|body| !body.is_empty() && BODY_BYTES_MAX < body.len() + line.len())
        {
            bodies.push(String::new());
        }
        if let Some(body) = bodies.last_mut() {
            body.push_str(line);
            body.push('\n');
        }
    }
    let post = |body: String| post::Post {
        checkpoint,
        content_type: "application/x-ndjson",
        body: body.into(),
    };
    bodies.into_iter().map(post).collect()
}

/// Entries that are gone cannot be sent. The sink gets the rest, and its verification finds them missing.
fn report_missing(sink: StreamSink, missing: i64) {
    if let Ok(count @ 1..) = u64::try_from(missing) {
        catalog::AUDIT_ENTRIES_MISSING.increment(count);
        tracing::error!(
            job = sink.name(),
            error.kind = "audit_entries_missing",
            count = missing,
            "entries that a checkpoint states are not in the audit log; run `cloakroom audit verify`"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_split_into_requests_that_have_all_lines() {
        let lines: Vec<String> = (0..5).map(|n| n.to_string().repeat(400 * 1024)).collect();
        let posts = posts(&lines, 7);

        assert_eq!(posts.len(), 3);
        let body: Vec<u8> = posts.iter().flat_map(|post| post.body.to_vec()).collect();
        let received: Vec<&str> = std::str::from_utf8(&body).unwrap().lines().collect();
        assert_eq!(received, lines);
        assert!(posts.iter().all(|post| post.body.len() <= BODY_BYTES_MAX));
    }
}
