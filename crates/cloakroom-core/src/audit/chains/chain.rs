//! Hash chains of audit entries: each batch is signed together with everything before it, so that no entry can be
//! altered, moved or removed unnoticed.
//!
//! A chain belongs to one day and one node and grows by one commit at a time. A node has as many
//! chains as it has concurrent writers: a writer takes a chain and returns it once the commit is
//! known to have succeeded or failed. When the outcome of a commit is unknown, its chain ends at
//! the last entry that is known to be durable.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use cloakroom_crypto::{Hash, LogKey, MerkleTree};
use cloakroom_platform::ids;
use cloakroom_platform::storage::{self, DatabaseClock, Db};
use jiff::Timestamp;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;
use uuid::Uuid;

use crate::audit::chain_entry::ChainEntry;
use crate::audit::day::{CHAINS_PER_KEY, ChainId, day_of, start_of_day};
use crate::audit::entry::{ActorKind, Entry};
use crate::audit::link::{Batch, CertifiedKey, Commit, NEXT_KEY_LEAD, certificate_message};
use crate::audit::operator::Operator;
use crate::audit::state::{ChainState, Head};
use crate::audit::store;
use crate::keys::AuditAuthority;

/// Attempts to insert a key while other nodes insert theirs.
const ATTEMPTS: usize = 100;

/// A key of this node, for the chains of one day. Its private half exists only here.
pub(in crate::audit) struct NodeKey {
    pub(in crate::audit) certified: CertifiedKey,
    pub(in crate::audit) pair: LogKey,
}

/// The key that new chains are signed with.
struct CurrentKey {
    key: Arc<NodeKey>,
    /// Chains opened so far.
    chains: i32,
}

/// The keys of this node.
#[derive(Default)]
struct NodeKeys {
    current: Option<CurrentKey>,
    /// The key of the following day, certified before that day begins.
    next: Option<NodeKey>,
}

/// A chain up to its last entry that is known to be durable.
#[derive(Clone)]
struct Chain {
    id: ChainId,
    seq: i32,
    link: Hash,
    key: Arc<NodeKey>,
}

/// The chains of one node.
pub(in crate::audit) struct Chains {
    node: Uuid,
    permits: Semaphore,
    permits_max: u32,
    acquire_timeout: Duration,
    /// Chains without a writer at the moment.
    free: Mutex<Vec<Chain>>,
    /// Keys and durable heads of this node that no checkpoint has closed.
    state: Mutex<ChainState>,
    keys: tokio::sync::Mutex<NodeKeys>,
    clock: Arc<DatabaseClock>,
    authority: Arc<AuditAuthority>,
    /// Set when the log in the database is not the one that this node knows; nothing is written from then on.
    is_halted: AtomicBool,
    /// The operator who runs a CLI command; `None` in a server.
    pub(in crate::audit) operator: OnceLock<Operator>,
}

/// Exclusive write access to one chain.
pub struct ChainWriter<'a> {
    chains: &'a Chains,
    chain: Option<Chain>,
    /// Head of the chain once the appended entries are durable.
    pending: (i32, Hash),
    signed_at: Timestamp,
    _permit: SemaphorePermit<'a>,
}

impl Chains {
    /// At most `permits` chains are written concurrently; acquiring one waits at most
    /// `acquire_timeout`.
    pub(in crate::audit) fn new(
        clock: Arc<DatabaseClock>,
        authority: Arc<AuditAuthority>,
        permits: usize,
        acquire_timeout: Duration,
    ) -> Self {
        Self {
            node: ids::new_uuid(),
            permits: Semaphore::new(permits),
            permits_max: u32::try_from(permits).unwrap_or(u32::MAX),
            acquire_timeout,
            free: Mutex::default(),
            state: Mutex::default(),
            keys: tokio::sync::Mutex::default(),
            clock,
            authority,
            is_halted: AtomicBool::new(false),
            operator: OnceLock::new(),
        }
    }

    pub(in crate::audit) fn authority(&self) -> &AuditAuthority {
        &self.authority
    }

    /// Rejects all further writers.
    pub(in crate::audit) fn halt(&self) {
        self.is_halted.store(true, Ordering::Release);
    }

    /// Takes a chain of today, opening one if all of them are in use.
    pub(in crate::audit) async fn acquire(
        &self,
        db: &Db,
    ) -> Result<ChainWriter<'_>, storage::Error> {
        let permit = timeout(self.acquire_timeout, self.permits.acquire())
            .await
            .map_err(|_| {
                storage::Error::Unavailable("timed out waiting for an audit chain".into())
            })?
            .map_err(|_| storage::Error::Unavailable("the audit log is closed".into()))?;
        if self.is_halted.load(Ordering::Acquire) {
            let reason = "the audit log in the database is not the one that this node wrote to";
            return Err(storage::Error::Unavailable(reason.into()));
        }
        let now = self.clock.now().await?;
        let today = day_of(now);
        let chain = match self.take_free(today) {
            Some(chain) => chain,
            None => self.open(db, today).await?,
        };
        Ok(ChainWriter {
            chains: self,
            pending: (chain.seq, chain.link),
            chain: Some(chain),
            signed_at: now,
            _permit: permit,
        })
    }

    fn take_free(&self, today: i32) -> Option<Chain> {
        let mut free = lock(&self.free);
        while let Some(chain) = free.pop() {
            // A corrected clock may step back over midnight; chains of any other day are closed.
            if chain.id.day == today {
                return Some(chain);
            }
            self.set_closed(&chain);
        }
        None
    }

    async fn open(&self, db: &Db, day: i32) -> Result<Chain, storage::Error> {
        let mut keys = self.keys.lock().await;
        let current = self.key_of_day(&mut keys, db, day).await?;
        current.chains += 1;
        let id = ChainId {
            day,
            number: current.key.certified.number * CHAINS_PER_KEY + current.chains,
        };
        Ok(Chain {
            id,
            seq: 0,
            link: current.key.certified.first_link(id),
            key: current.key.clone(),
        })
    }

    /// The key of this node for a day, which is created first if necessary.
    pub(in crate::audit) async fn key(
        &self,
        db: &Db,
        day: i32,
    ) -> Result<Arc<NodeKey>, storage::Error> {
        let mut keys = self.keys.lock().await;
        let current = self.key_of_day(&mut keys, db, day).await?;
        Ok(current.key.clone())
    }

    /// Keys change daily: a node that is taken over today cannot sign entries of yesterday.
    async fn key_of_day<'k>(
        &self,
        keys: &'k mut NodeKeys,
        db: &Db,
        day: i32,
    ) -> Result<&'k mut CurrentKey, storage::Error> {
        let usable = keys
            .current
            .take()
            .filter(|it| it.key.certified.day == day && it.chains + 1 < CHAINS_PER_KEY);
        let usable = match usable {
            Some(usable) => usable,
            None => {
                let prepared = keys.next.take_if(|next| next.certified.day <= day);
                let key = match prepared.filter(|key| key.certified.day == day) {
                    Some(key) => key,
                    None => self.create_key(db, day).await?,
                };
                lock(&self.state).add_key(&key.certified);
                CurrentKey {
                    key: Arc::new(key),
                    chains: 0,
                }
            }
        };
        Ok(keys.current.insert(usable))
    }

    /// Certifies the key of the following day in the last hours of a day, so that a key provider which is unavailable
    /// at midnight does not stop the log.
    pub(in crate::audit) async fn prepare_next_key(
        &self,
        db: &Db,
        now: Timestamp,
    ) -> Result<(), storage::Error> {
        let day = day_of(now) + 1;
        if now + NEXT_KEY_LEAD < start_of_day(day) {
            return Ok(());
        }
        let keys = self.keys.lock().await;
        if keys
            .next
            .as_ref()
            .is_some_and(|next| next.certified.day == day)
        {
            return Ok(());
        }
        // Writers do not wait for the provider meanwhile.
        drop(keys);
        let key = self.create_key(db, day).await?;
        self.keys.lock().await.next = Some(key);
        Ok(())
    }

    async fn create_key(&self, db: &Db, day: i32) -> Result<NodeKey, storage::Error> {
        let failed = |what: &str| storage::Error::Unavailable(what.into());
        let pair = LogKey::generate().map_err(|_| failed("no audit key could be generated"))?;
        for _ in 0..ATTEMPTS {
            let number = store::next_key(db, day).await?;
            let message = certificate_message(day, number, self.node, pair.public_key());
            let certificate = self.authority.sign(&message).await;
            let certified = CertifiedKey {
                day,
                number,
                node: self.node,
                public_key: *pair.public_key(),
                certificate: certificate
                    .map_err(|_| failed("the audit authority did not certify the key"))?,
            };
            if store::insert_key(db, &certified).await? {
                return Ok(NodeKey { certified, pair });
            }
        }
        Err(failed("no audit key could be stored"))
    }

    /// The keys and heads of this node for a checkpoint. Closes its chains of other days first.
    pub(in crate::audit) fn stated(&self, today: i32) -> ChainState {
        let mut free = lock(&self.free);
        free.retain(|chain| {
            let is_current = chain.id.day == today;
            if !is_current {
                self.set_closed(chain);
            }
            is_current
        });
        drop(free);
        lock(&self.state).clone()
    }

    /// Forgets days that a checkpoint closed.
    pub(in crate::audit) fn drop_days_through(&self, day: i32) {
        lock(&self.state).drop_days_through(day);
    }

    /// Closes every chain. Waits for current writers.
    pub(in crate::audit) async fn close(&self) {
        let _all_permits = timeout(
            self.acquire_timeout,
            self.permits.acquire_many(self.permits_max),
        )
        .await;
        let free = std::mem::take(&mut *lock(&self.free));
        for chain in free {
            self.set_closed(&chain);
        }
    }

    fn set_closed(&self, chain: &Chain) {
        if chain.seq > 0 {
            self.set_head(chain, true);
        }
    }

    fn set_head(&self, chain: &Chain, is_closed: bool) {
        let head = Head {
            seq: chain.seq,
            link: chain.link,
            is_closed,
        };
        lock(&self.state).heads.insert(chain.id, head);
    }
}

impl ChainWriter<'_> {
    /// Signs entries in this order, as one batch, and returns them as rows of `log`.
    pub fn append<'e>(&mut self, entries: impl IntoIterator<Item = &'e Entry>) -> Vec<String> {
        let Some(chain) = &self.chain else {
            return Vec::new();
        };
        let (mut seq, link) = self.pending;
        let first = seq + 1;
        let mut tree = MerkleTree::default();
        let mut buffer = Vec::with_capacity(300);
        let mut rows: Vec<String> = Vec::new();
        for entry in entries {
            // An entry that was queued before midnight and is written after it belongs to the new
            // day.
            let at = entry.at.map(|at| at.max(start_of_day(chain.id.day)));
            seq += 1;
            let mut record = ChainEntry::new(entry, chain.id, seq, at.unwrap_or(self.signed_at));
            if entry.actor_kind == ActorKind::System {
                let own = self.chains.operator.get();
                let operator = entry.operator.as_deref().or(own);
                record.origin = operator.map(|operator| operator.as_str().to_owned());
            }
            tree.push(record.leaf(&mut buffer));
            if let Some(before) = rows.last_mut() {
                before.push(')');
            }
            rows.push(record.open_row());
        }
        if let Some(last) = rows.last_mut() {
            let batch = Batch {
                chain: chain.id,
                first,
                last: seq,
                root: tree.root(),
            };
            let link = batch.link(&link);
            let commit = Commit::sign(&chain.key.pair, first, &link).to_bytes();
            // Writing to a string cannot fail.
            let _ = write!(last, "\"\\\\x{}\")", hex::encode(commit));
            self.pending = (seq, link);
        }
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
        (chain.seq, chain.link) = self.pending;
        if chain.seq > 0 {
            self.chains.set_head(&chain, false);
        }
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
    /// With entries of unknown outcome, the chain is not used again. Its head stays open: whether the entries were
    /// written is determined when the day is closed.
    fn drop(&mut self) {
        if let Some(chain) = self.chain.take()
            && self.pending.0 == chain.seq
        {
            lock(&self.chains.free).push(chain);
        }
    }
}

pub(in crate::audit) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No code under these locks panics halfway through an update.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
