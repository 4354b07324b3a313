//! Hash chains of audit entries: each entry is signed over the one before it, so that none can be
//! altered, moved or removed unnoticed.
//!
//! A chain belongs to one day and one node and grows by one commit at a time. A node has as many
//! chains as it has concurrent writers: a writer takes a chain and returns it once the commit is
//! known to have succeeded or failed. When the outcome of a commit is unknown, its chain ends at
//! the last entry that is known to be durable.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use cloakroom_platform::clock::Uptime;
use cloakroom_platform::ids;
use cloakroom_platform::storage::{self, DatabaseClock, Db, quote_field};
use jiff::Timestamp;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;
use uuid::Uuid;

use super::entry::{ActorKind, Entry};
use super::operator::Operator;
use super::store::{self, ChainRow};
use crate::keys::AuditKey;

const ENTRY: &str = "log.v1";
const START: &str = "log.chain.start.v1";
const HEAD: &str = "log.chain.head.v1";

/// Number of partitions of `log`; days take turns.
pub(super) const SLOTS: i32 = 100;

/// A signature, truncated. The id of an entry is derived from it.
pub(super) type Mac = [u8; 16];

/// Attempts to open a chain while other nodes open chains at the same time.
const ATTEMPTS: usize = 100;
/// The head of a chain is stored after this many entries, or when unstored entries are this old.
const HEAD_ENTRIES: i32 = 1_000;
const HEAD_AGE: Duration = Duration::from_secs(10);

/// Day of a timestamp, counted from 1970-01-01 in UTC.
pub(super) fn day_of(at: Timestamp) -> i32 {
    let days = at.as_second().div_euclid(24 * 60 * 60);
    i32::try_from(days).unwrap_or(i32::MAX)
}

fn start_of_day(day: i32) -> Timestamp {
    Timestamp::from_second(i64::from(day) * 24 * 60 * 60).unwrap_or_default()
}

pub(super) fn slot_of(day: i32) -> i16 {
    i16::try_from(day.rem_euclid(SLOTS)).unwrap_or_default()
}

/// Identifies a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ChainId {
    /// Days since 1970.
    pub day: i32,
    pub number: i32,
}

/// The last entry of a chain that is known to be durable.
#[derive(Clone, Debug)]
struct Chain {
    day: i32,
    number: i32,
    seq: i32,
    mac: Mac,
    /// Sequence number of the head that is stored in `log_chain`.
    stored_seq: i32,
    stored_at: Uptime,
}

impl Chain {
    fn needs_head_update(&self, now: Uptime) -> bool {
        let unstored = self.seq - self.stored_seq;
        unstored >= HEAD_ENTRIES || (0 < unstored && HEAD_AGE <= self.stored_at.until(now))
    }
}

/// The chains of one node.
pub(super) struct Chains {
    node: Uuid,
    permits: Semaphore,
    permits_max: u32,
    acquire_timeout: Duration,
    /// Chains without a writer at the moment.
    free: Mutex<Vec<Chain>>,
    /// Chains that will not grow any more, and whether their last entry is known to be durable.
    ended: Mutex<Vec<(Chain, bool)>>,
    opening: tokio::sync::Mutex<()>,
    clock: Arc<DatabaseClock>,
    /// The operator who runs a CLI command; `None` in a server.
    pub(super) operator: OnceLock<Operator>,
}

/// Exclusive write access to one chain.
pub struct ChainWriter<'a> {
    chains: &'a Chains,
    key: &'a AuditKey,
    chain: Option<Chain>,
    /// Head of the chain once the appended entries are durable.
    pending: (i32, Mac),
    signed_at: Timestamp,
    _permit: SemaphorePermit<'a>,
}

impl Chains {
    /// At most `permits` chains are written concurrently; acquiring one waits at most
    /// `acquire_timeout`.
    pub(super) fn new(
        clock: Arc<DatabaseClock>,
        permits: usize,
        acquire_timeout: Duration,
    ) -> Self {
        Self {
            node: ids::new_uuid(),
            permits: Semaphore::new(permits),
            permits_max: u32::try_from(permits).unwrap_or(u32::MAX),
            acquire_timeout,
            free: Mutex::default(),
            ended: Mutex::default(),
            opening: tokio::sync::Mutex::default(),
            clock,
            operator: OnceLock::new(),
        }
    }

    /// Takes a chain of today, opening one if all of them are in use.
    pub(super) async fn acquire<'a>(
        &'a self,
        db: &Db,
        key: &'a AuditKey,
    ) -> Result<ChainWriter<'a>, storage::Error> {
        let permit = timeout(self.acquire_timeout, self.permits.acquire())
            .await
            .map_err(|_| {
                storage::Error::Unavailable("timed out waiting for an audit chain".into())
            })?
            .map_err(|_| storage::Error::Unavailable("the audit log is closed".into()))?;
        let now = self.clock.now().await?;
        let today = day_of(now);
        let chain = match self.take_free(today) {
            Some(chain) => chain,
            None => self.open(db, key, today).await?,
        };
        Ok(ChainWriter {
            chains: self,
            key,
            pending: (chain.seq, chain.mac),
            chain: Some(chain),
            signed_at: now,
            _permit: permit,
        })
    }

    fn take_free(&self, today: i32) -> Option<Chain> {
        let mut free = lock(&self.free);
        while let Some(chain) = free.pop() {
            // A corrected clock may step back over midnight; chains of any other day are closed.
            if chain.day == today {
                return Some(chain);
            }
            lock(&self.ended).push((chain, true));
        }
        None
    }

    async fn open(&self, db: &Db, key: &AuditKey, day: i32) -> Result<Chain, storage::Error> {
        let _guard = self.opening.lock().await;
        for _ in 0..ATTEMPTS {
            let number = store::next_chain(db, day).await?;
            let mac = initial_mac(key, ChainId { day, number }, self.node);
            let row = ChainRow {
                day,
                number,
                node: self.node,
                head_seq: 0,
                head_mac: mac.to_vec(),
                is_closed: false,
            };
            if store::insert_chain(db, &row, &head_mac(key, &row)).await? {
                return Ok(Chain {
                    day,
                    number,
                    seq: 0,
                    mac,
                    stored_seq: 0,
                    stored_at: Uptime::now(),
                });
            }
        }
        Err(storage::Error::Unavailable(
            "no audit chain could be opened".into(),
        ))
    }

    /// Stores the heads of chains. With `all`, also of chains with few and recent entries.
    pub(super) async fn write_heads(
        &self,
        db: &Db,
        key: &AuditKey,
        all: bool,
    ) -> Result<(), storage::Error> {
        let now = Uptime::now();
        let ended = std::mem::take(&mut *lock(&self.ended));
        for (index, (chain, certain)) in ended.iter().enumerate() {
            let written = self.write_head(db, key, chain, *certain).await;
            if let Err(error) = written {
                lock(&self.ended).extend_from_slice(&ended[index..]);
                return Err(error);
            }
        }
        let due: Vec<Chain> = lock(&self.free)
            .iter()
            .filter(|chain| chain.needs_head_update(now) || (all && chain.stored_seq < chain.seq))
            .cloned()
            .collect();
        for chain in due {
            self.write_head(db, key, &chain, false).await?;
            let mut free = lock(&self.free);
            let same = free
                .iter_mut()
                .find(|known| (known.day, known.number) == (chain.day, chain.number));
            // A chain that is in use by now is stored again on a later call.
            if let Some(known) = same {
                known.stored_seq = chain.seq;
                known.stored_at = now;
            }
        }
        Ok(())
    }

    /// Closes every chain, so that `verify` knows their last entries. Waits for current writers.
    pub(super) async fn close(&self, db: &Db, key: &AuditKey) -> Result<(), storage::Error> {
        let _all_permits = timeout(
            self.acquire_timeout,
            self.permits.acquire_many(self.permits_max),
        )
        .await;
        let free = std::mem::take(&mut *lock(&self.free));
        lock(&self.ended).extend(free.into_iter().map(|chain| (chain, true)));
        self.write_heads(db, key, true).await
    }

    async fn write_head(
        &self,
        db: &Db,
        key: &AuditKey,
        chain: &Chain,
        is_closed: bool,
    ) -> Result<(), storage::Error> {
        let row = ChainRow {
            day: chain.day,
            number: chain.number,
            node: self.node,
            head_seq: chain.seq,
            head_mac: chain.mac.to_vec(),
            is_closed,
        };
        store::update_head(db, &row, &head_mac(key, &row)).await
    }
}

impl ChainWriter<'_> {
    /// The key that signs the entries, and their events.
    pub(super) fn key(&self) -> &AuditKey {
        self.key
    }

    /// Signs entries in this order and returns them as rows of `log`.
    pub fn append<'e>(&mut self, entries: impl IntoIterator<Item = &'e Entry>) -> Vec<String> {
        let Some(chain) = &self.chain else {
            return Vec::new();
        };
        let id = ChainId {
            day: chain.day,
            number: chain.number,
        };
        let (mut seq, mut mac) = self.pending;
        let mut rows = Vec::new();
        for entry in entries {
            // An entry that was queued before midnight and is written after it belongs to the new
            // day.
            let at = entry.at.map(|at| at.max(start_of_day(chain.day)));
            let mut record = ChainEntry::new(entry, id, seq + 1, at.unwrap_or(self.signed_at));
            if entry.actor_kind == ActorKind::System {
                let operator = self.chains.operator.get();
                record.origin = operator.map(|operator| operator.as_str().to_owned());
            }
            (seq, mac) = (seq + 1, record.sign(self.key, &mac));
            rows.push(record.row(&mac));
        }
        self.pending = (seq, mac);
        rows
    }

    /// Commits or discards the appended entries, by the outcome of the write that carried them.
    ///
    /// `is_done` returns whether a successful write changed anything, and so inserted the entries.
    pub fn commit_if_written<T>(
        self,
        written: &Result<T, storage::Error>,
        is_done: impl FnOnce(&T) -> bool,
    ) {
        match written {
            Ok(value) if is_done(value) => self.commit(),
            Ok(_) => self.discard(),
            Err(error) if error.is_certain() => self.discard(),
            // Dropped: the outcome is unknown.
            Err(_) => {}
        }
    }

    /// Returns the chain with the appended entries, which are durable.
    pub fn commit(mut self) {
        let Some(mut chain) = self.chain.take() else {
            return;
        };
        (chain.seq, chain.mac) = self.pending;
        lock(&self.chains.free).push(chain);
    }

    /// Returns the chain without the appended entries, which were certainly not written.
    pub fn discard(mut self) {
        if let Some(chain) = self.chain.take() {
            lock(&self.chains.free).push(chain);
        }
    }
}

impl Drop for ChainWriter<'_> {
    /// With entries of unknown outcome, the chain ends at the last entry that is known to be
    /// durable.
    fn drop(&mut self) {
        if let Some(chain) = self.chain.take() {
            let certain = self.pending.0 == chain.seq;
            match certain {
                true => lock(&self.chains.free).push(chain),
                false => lock(&self.chains.ended).push((chain, false)),
            }
        }
    }
}

/// An entry at its position in a chain; everything that is signed.
pub(super) struct ChainEntry {
    pub day: i32,
    pub chain: i32,
    pub seq: i32,
    pub created_at: Timestamp,
    pub tenant_number: i32,
    pub actor_kind: i16,
    pub actor: Uuid,
    pub key: Uuid,
    pub entity: i16,
    pub entity_id: String,
    pub operation: i16,
    pub outcome: i16,
    pub origin: Option<String>,
    pub trace_id: String,
}

impl ChainEntry {
    fn new(entry: &Entry, chain: ChainId, seq: i32, created_at: Timestamp) -> Self {
        Self {
            day: chain.day,
            chain: chain.number,
            seq,
            created_at,
            tenant_number: entry.tenant,
            actor_kind: entry.actor_kind as i16,
            actor: entry.actor,
            key: entry.key,
            entity: entry.entity as i16,
            entity_id: entry.entity_id.clone(),
            operation: entry.operation as i16,
            outcome: entry.outcome as i16,
            origin: entry.origin.map(|origin| origin.to_string()),
            trace_id: entry.trace_id.to_string(),
        }
    }

    fn sign(&self, key: &AuditKey, before: &Mac) -> Mac {
        let numbers = self.numbers();
        truncate(key.authenticate(ENTRY, &self.parts(&numbers, before)))
    }

    pub(super) fn follows(&self, key: &AuditKey, before: &Mac, mac: &Mac) -> bool {
        let numbers = self.numbers();
        key.authenticate_all(ENTRY, &self.parts(&numbers, before))
            .any(|digest| digest.starts_with(mac))
    }

    fn parts<'a>(&'a self, numbers: &'a [u8], before: &'a Mac) -> [&'a [u8]; 7] {
        [
            before,
            numbers,
            self.actor.as_bytes(),
            self.key.as_bytes(),
            self.entity_id.as_bytes(),
            self.origin.as_deref().unwrap_or_default().as_bytes(),
            self.trace_id.as_bytes(),
        ]
    }

    /// All fields of fixed length, concatenated.
    fn numbers(&self) -> Vec<u8> {
        let mut numbers = Vec::with_capacity(36);
        for number in [self.day, self.chain, self.seq, self.tenant_number] {
            numbers.extend(number.to_be_bytes());
        }
        for number in [self.actor_kind, self.entity, self.operation, self.outcome] {
            numbers.extend(number.to_be_bytes());
        }
        numbers.extend(self.created_at.as_microsecond().to_be_bytes());
        numbers
    }

    /// A row of `log` as a composite literal of PostgreSQL.
    fn row(&self, mac: &Mac) -> String {
        let mut row = String::with_capacity(300);
        let (slot, created_at) = (slot_of(self.day), self.created_at);
        let (actor, key) = (self.actor, self.key);
        let numbers = (self.tenant_number, self.actor_kind, self.entity);
        // Writing to a string cannot fail.
        let _ = write!(
            row,
            "({slot},{created_at},{},{},{actor},{key},{},",
            numbers.0, numbers.1, numbers.2
        );
        quote_field(&mut row, &self.entity_id);
        let _ = write!(row, ",{},{},", self.operation, self.outcome);
        if let Some(origin) = &self.origin {
            quote_field(&mut row, origin);
        }
        row.push(',');
        quote_field(&mut row, &self.trace_id);
        let mac = hex::encode(mac);
        let _ = write!(row, ",{},{},\"\\\\x{mac}\")", self.chain, self.seq);
        row
    }
}

/// The value that the first entry of a chain is signed over.
fn initial_mac(key: &AuditKey, chain: ChainId, node: Uuid) -> Mac {
    let (day, number) = (chain.day.to_be_bytes(), chain.number.to_be_bytes());
    truncate(key.authenticate(START, &[&day, &number, node.as_bytes()]))
}

/// [`initial_mac`] under every version of the key.
pub(super) fn initial_macs(key: &AuditKey, chain: ChainId, node: Uuid) -> Vec<Mac> {
    let (day, number) = (chain.day.to_be_bytes(), chain.number.to_be_bytes());
    key.authenticate_all(START, &[&day, &number, node.as_bytes()])
        .map(truncate)
        .collect()
}

fn head_mac(key: &AuditKey, row: &ChainRow) -> [u8; 32] {
    key.authenticate(HEAD, &slices(&row.parts()))
}

pub(super) fn is_genuine_head(key: &AuditKey, row: &ChainRow, row_mac: &[u8]) -> bool {
    key.verifies(HEAD, &slices(&row.parts()), row_mac)
}

fn slices(parts: &[Vec<u8>; 6]) -> [&[u8]; 6] {
    parts.each_ref().map(Vec::as_slice)
}

fn truncate(digest: [u8; 32]) -> Mac {
    let mut mac = [0; 16];
    mac.copy_from_slice(&digest[..16]);
    mac
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No code under these locks panics halfway through an update.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
