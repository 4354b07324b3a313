//! Chains of records: each signed over the one before, so that none can be changed, moved or lost.
//!
//! A chain belongs to one day and one node, and grows by one commit at a time. A node holds as many
//! as it writes at once; whoever writes takes one, and gives it back when the commit is certain. A
//! commit of unknown outcome ends its chain where it was last certain.

use std::fmt::Write as _;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;
use uuid::Uuid;

use super::clock::DatabaseClock;
use super::entry::Entry;
use super::store::{self, ChainRow};
use crate::clock::Uptime;
use crate::ids;
use crate::keys::AuditKey;
use crate::storage::{self, Db};

const RECORD: &str = "log.v1";
const START: &str = "log.chain.start.v1";
const HEAD: &str = "log.chain.head.v1";

/// Days share this many partitions in turn.
pub(super) const SLOTS: i32 = 100;

/// A signature is as long as this; a record's id is made of it.
pub(super) type Mac = [u8; 16];

/// How many times to try when other nodes open chains at the same moment.
const ATTEMPTS: usize = 100;
/// A chain's head is written down after so many records, or when its last ones are so old.
const HEAD_RECORDS: i32 = 1_000;
const HEAD_AGE: Duration = Duration::from_secs(10);

/// The day of a moment, counted from 1970-01-01.
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

/// The end of a chain, as far as it is certain.
#[derive(Clone, Debug)]
struct Chain {
    day: i32,
    number: i32,
    seq: i32,
    mac: Mac,
    /// How far the table of chains knows it to reach.
    written_down: i32,
    written_down_at: Uptime,
}

impl Chain {
    fn wants_head(&self, now: Uptime) -> bool {
        let ahead = self.seq - self.written_down;
        ahead >= HEAD_RECORDS || (0 < ahead && HEAD_AGE <= self.written_down_at.until(now))
    }
}

/// The chains of one node.
pub(super) struct Chains {
    node: Uuid,
    permits: Semaphore,
    permits_max: u32,
    patience: Duration,
    /// Chains that nobody writes to at the moment.
    free: Mutex<Vec<Chain>>,
    /// Chains that nobody will write to again, and whether their end is certain.
    ended: Mutex<Vec<(Chain, bool)>>,
    opening: tokio::sync::Mutex<()>,
    pub(super) clock: DatabaseClock,
}

/// The right to add to one chain.
pub struct Pen<'a> {
    chains: &'a Chains,
    key: &'a AuditKey,
    chain: Option<Chain>,
    /// Where the chain will end when what was signed is certain.
    ahead: (i32, Mac),
    signed_at: Timestamp,
    _permit: SemaphorePermit<'a>,
}

impl Chains {
    /// As many are written to at once as there are `permits`; nobody waits longer than `patience`.
    pub(super) fn new(permits: usize, patience: Duration) -> Self {
        Self {
            node: ids::new_uuid(),
            permits: Semaphore::new(permits),
            permits_max: u32::try_from(permits).unwrap_or(u32::MAX),
            patience,
            free: Mutex::default(),
            ended: Mutex::default(),
            opening: tokio::sync::Mutex::default(),
            clock: DatabaseClock::default(),
        }
    }

    /// Takes a chain of today, opening one if all of them are in use.
    pub(super) async fn pen<'a>(
        &'a self,
        db: &Db,
        key: &'a AuditKey,
    ) -> Result<Pen<'a>, storage::Error> {
        let permit = timeout(self.patience, self.permits.acquire())
            .await
            .map_err(|_| storage::Error::Unavailable("no record could be begun in time".into()))?
            .map_err(|_| storage::Error::Unavailable("the record is closed".into()))?;
        let now = self.clock.now(db).await?;
        let today = day_of(now);
        let chain = match self.take_free(today) {
            Some(chain) => chain,
            None => self.open(db, key, today).await?,
        };
        Ok(Pen {
            chains: self,
            key,
            ahead: (chain.seq, chain.mac),
            chain: Some(chain),
            signed_at: now,
            _permit: permit,
        })
    }

    fn take_free(&self, today: i32) -> Option<Chain> {
        let mut free = lock(&self.free);
        while let Some(chain) = free.pop() {
            // A clock that is corrected may step back over midnight; such a chain waits.
            if chain.day == today {
                return Some(chain);
            }
            lock(&self.ended).push((chain, true));
        }
        None
    }

    async fn open(&self, db: &Db, key: &AuditKey, day: i32) -> Result<Chain, storage::Error> {
        let _one_at_a_time = self.opening.lock().await;
        for _ in 0..ATTEMPTS {
            let number = store::next_chain(db, day).await?;
            let mac = start_of(key, (day, number), self.node);
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
                    written_down: 0,
                    written_down_at: Uptime::now(),
                });
            }
        }
        Err(storage::Error::Unavailable(
            "no chain of records could be opened".into(),
        ))
    }

    /// Writes down how far chains reach. `all`: also those that had nothing new for a while.
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
        let wanting: Vec<Chain> = lock(&self.free)
            .iter()
            .filter(|chain| chain.wants_head(now) || (all && chain.written_down < chain.seq))
            .cloned()
            .collect();
        for chain in wanting {
            self.write_head(db, key, &chain, false).await?;
            let mut free = lock(&self.free);
            let same = free
                .iter_mut()
                .find(|known| (known.day, known.number) == (chain.day, chain.number));
            // One that is in use by now is written down again when its turn comes.
            if let Some(known) = same {
                known.written_down = chain.seq;
                known.written_down_at = now;
            }
        }
        Ok(())
    }

    /// Ends every chain, so that `verify` knows their last records. Whoever still writes is waited for.
    pub(super) async fn close(&self, db: &Db, key: &AuditKey) -> Result<(), storage::Error> {
        let _nobody_writes =
            timeout(self.patience, self.permits.acquire_many(self.permits_max)).await;
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

impl Pen<'_> {
    /// Signs entries, in this order, as the rows that they are to be kept as.
    pub fn sign<'e>(&mut self, entries: impl IntoIterator<Item = &'e Entry>) -> Vec<String> {
        let Some(chain) = &self.chain else {
            return Vec::new();
        };
        let place = (chain.day, chain.number);
        let (mut seq, mut mac) = self.ahead;
        let mut rows = Vec::new();
        for entry in entries {
            // What was noted before midnight and is recorded after it belongs to the new day.
            let at = entry.at.map(|at| at.max(start_of_day(chain.day)));
            let record = Record::new(entry, place, seq + 1, at.unwrap_or(self.signed_at));
            (seq, mac) = (seq + 1, record.sign(self.key, &mac));
            rows.push(record.row(&mac));
        }
        self.ahead = (seq, mac);
        rows
    }

    /// Decides by the outcome of the write that was to carry it.
    ///
    /// `is_done` tells whether a write that succeeded did anything, and so kept what was signed.
    pub fn settle<T>(self, written: &Result<T, storage::Error>, is_done: impl FnOnce(&T) -> bool) {
        match written {
            Ok(value) if is_done(value) => self.kept(),
            Ok(_) => self.unused(),
            Err(error) if error.is_certain() => self.unused(),
            // Dropped: nobody knows.
            Err(_) => {}
        }
    }

    /// What was signed is durable.
    pub fn kept(mut self) {
        let Some(mut chain) = self.chain.take() else {
            return;
        };
        (chain.seq, chain.mac) = self.ahead;
        lock(&self.chains.free).push(chain);
    }

    /// What was signed is certainly not there.
    pub fn unused(mut self) {
        if let Some(chain) = self.chain.take() {
            lock(&self.chains.free).push(chain);
        }
    }
}

impl Drop for Pen<'_> {
    /// Nobody knows whether what was signed is there: the chain ends where it was last certain.
    fn drop(&mut self) {
        if let Some(chain) = self.chain.take() {
            let certain = self.ahead.0 == chain.seq;
            match certain {
                true => lock(&self.chains.free).push(chain),
                false => lock(&self.chains.ended).push((chain, false)),
            }
        }
    }
}

/// An entry at its place in a chain: everything that is signed.
pub(super) struct Record {
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

impl Record {
    fn new(entry: &Entry, place: (i32, i32), seq: i32, created_at: Timestamp) -> Self {
        Self {
            day: place.0,
            chain: place.1,
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
        start(key.authenticate(RECORD, &self.parts(&numbers, before)))
    }

    pub(super) fn follows(&self, key: &AuditKey, before: &Mac, mac: &Mac) -> bool {
        let numbers = self.numbers();
        key.authenticate_all(RECORD, &self.parts(&numbers, before))
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

    /// Every field of a fixed length, one after the other.
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

    /// The text of a row of `log`, which the database reads as one.
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
        quote(&mut row, &self.entity_id);
        let _ = write!(row, ",{},{},", self.operation, self.outcome);
        if let Some(origin) = &self.origin {
            quote(&mut row, origin);
        }
        row.push(',');
        quote(&mut row, &self.trace_id);
        let mac = hex::encode(mac);
        let _ = write!(row, ",{},{},\"\\\\x{mac}\")", self.chain, self.seq);
        row
    }
}

pub(super) fn to_the_microsecond(at: Timestamp) -> Timestamp {
    Timestamp::from_microsecond(at.as_microsecond()).unwrap_or(at)
}

/// Adds text between quotation marks, as a field of a row.
fn quote(row: &mut String, text: &str) {
    row.push('"');
    for character in text.chars() {
        if matches!(character, '"' | '\\') {
            row.push(character);
        }
        row.push(character);
    }
    row.push('"');
}

/// What the first record of a chain is signed over.
fn start_of(key: &AuditKey, place: (i32, i32), node: Uuid) -> Mac {
    let (day, number) = (place.0.to_be_bytes(), place.1.to_be_bytes());
    start(key.authenticate(START, &[&day, &number, node.as_bytes()]))
}

/// The same under every version of the key.
pub(super) fn starts_of(key: &AuditKey, place: (i32, i32), node: Uuid) -> Vec<Mac> {
    let (day, number) = (place.0.to_be_bytes(), place.1.to_be_bytes());
    key.authenticate_all(START, &[&day, &number, node.as_bytes()])
        .map(start)
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

fn start(digest: [u8; 32]) -> Mac {
    let mut mac = [0; 16];
    mac.copy_from_slice(&digest[..16]);
    mac
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing that is done under these locks can panic halfway.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
