//! Writes checkpoints: signed notes that commit to the heads of all chains and to the note before.
//!
//! Every node writes the heads of its own chains, which it knows from memory, and repeats those of the other nodes from
//! the checkpoint before. So no node can state heads for another, and no entry can be removed from the database between
//! its commit and the next checkpoint without leaving a contradiction.

use std::time::Duration;

use cloakroom_crypto::Hash;
use cloakroom_platform::storage;
use cloakroom_platform::telemetry::catalog;
use jiff::Timestamp;

use crate::audit::access_summary::access_summary;
use crate::audit::day::{day_of, start_of_day};
use crate::audit::note::{Checkpoint, note_hash};
use crate::audit::state::ChainState;
use crate::audit::store::{self, CheckpointRow};
use crate::audit::{Audit, close_day};

/// A checkpoint is written at least this often.
const PERIOD: Duration = Duration::from_secs(10);
/// How long after midnight a day is closed. Longer than any commit takes.
const CLOSE_AFTER: Duration = Duration::from_secs(10 * 60);
/// Delay between attempts to close a day whose entries do not verify.
const CLOSE_RETRY: Duration = Duration::from_secs(60 * 60);
/// Attempts while other nodes write checkpoints at the same time.
const ATTEMPTS: usize = 20;
/// Checkpoints that are read at once.
const PAGE: i64 = 1_000;

/// Why this node does not write to the audit log any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Halt {
    /// The newest checkpoint in the database is older than one that this node has seen.
    RolledBack,
    /// A checkpoint in the database is not authentic.
    Forged,
}

impl Halt {
    pub fn reason(self) -> &'static str {
        match self {
            Self::RolledBack => {
                "the audit log was rolled back: the database lacks a checkpoint that this node has seen"
            }
            Self::Forged => "the newest checkpoint of the audit log is not authentic",
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    #[error("{}", .0.reason())]
    Halted(Halt),
    #[error(transparent)]
    Storage(#[from] storage::Error),
}

impl CheckpointError {
    /// The value of `error.kind` in the log.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Halted(Halt::RolledBack) => "audit_log_rolled_back",
            Self::Halted(Halt::Forged) => "audit_checkpoint_forged",
            Self::Storage(error) => error.kind(),
        }
    }
}

/// The newest checkpoint that this node has seen.
#[derive(Clone)]
struct Seen {
    checkpoint: Checkpoint,
    hash: Hash,
    /// Heads and keys, without closed days.
    state: ChainState,
}

/// What a node remembers between checkpoints.
#[derive(Default)]
pub(in crate::audit) struct CheckpointMemory {
    seen: Option<Seen>,
    halted: Option<Halt>,
    /// The next attempt to close a day.
    close_at: Option<Timestamp>,
    /// The day from which retention keeps entries; the next checkpoint states it.
    retained_from: i32,
}

/// When a checkpoint is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::audit) enum Due {
    /// When the last one is old, or when this node has new heads to state.
    Periodically,
    /// When this node has new heads to state.
    IfChanged,
}

impl Audit {
    /// Writes a checkpoint if one is due.
    pub async fn checkpoint(&self) -> Result<(), CheckpointError> {
        self.write_checkpoint(Due::Periodically).await
    }

    /// Certifies the key of the following day in advance, once its time has come.
    pub async fn prepare_next_key(&self) -> Result<(), storage::Error> {
        let now = self.writers.clock.now().await?;
        let chains = &self.writers.chains;
        chains.prepare_next_key(&self.writers.db, now).await
    }

    /// States that entries before a day were removed, before they are.
    pub(in crate::audit) async fn state_retention(
        &self,
        oldest: i32,
    ) -> Result<(), CheckpointError> {
        let mut memory = self.checkpoints.lock().await;
        memory.retained_from = memory.retained_from.max(oldest);
        drop(memory);
        self.write_checkpoint(Due::Periodically).await
    }

    pub(in crate::audit) async fn write_checkpoint(&self, due: Due) -> Result<(), CheckpointError> {
        let mut memory = self.checkpoints.lock().await;
        if let Some(halt) = memory.halted {
            return Err(CheckpointError::Halted(halt));
        }
        for _ in 0..ATTEMPTS {
            if let Err(error) = self.catch_up(&mut memory).await {
                if let CheckpointError::Halted(halt) = &error {
                    memory.halted = Some(*halt);
                    self.writers.chains.halt();
                }
                return Err(error);
            }
            if self.write_next(&mut memory, due).await? {
                return Ok(());
            }
        }
        let what = "other nodes write checkpoints all the time";
        Err(storage::Error::Unavailable(what.into()).into())
    }

    /// Reads the checkpoints that other nodes have written, and verifies that they continue the one seen last.
    async fn catch_up(&self, memory: &mut CheckpointMemory) -> Result<(), CheckpointError> {
        let db = &self.writers.db;
        let Some(seen) = &memory.seen else {
            if let Some(row) = store::find_newest_checkpoint(db).await? {
                memory.seen = Some(self.verify_row(&row).await?);
            }
            return Ok(());
        };
        let mut seen = seen.clone();
        loop {
            let first = seen.checkpoint.number;
            let rows = store::list_checkpoints(db, first, first + PAGE).await?;
            let Some((same, newer)) = rows.split_first() else {
                return Err(CheckpointError::Halted(Halt::RolledBack));
            };
            if same.number != first || note_hash(&same.note) != seen.hash {
                return Err(CheckpointError::Halted(Halt::RolledBack));
            }
            for row in newer {
                let next = self.verify_row(row).await?;
                let follows = next.checkpoint.number == seen.checkpoint.number + 1
                    && next.checkpoint.previous == seen.hash;
                if !follows {
                    return Err(CheckpointError::Halted(Halt::Forged));
                }
                seen = next;
            }
            if newer.len() < PAGE.unsigned_abs() as usize {
                memory.seen = Some(seen);
                return Ok(());
            }
        }
    }

    async fn verify_row(&self, row: &CheckpointRow) -> Result<Seen, CheckpointError> {
        let forged = CheckpointError::Halted(Halt::Forged);
        let authority = self.writers.chains.authority();
        let mut authorities = authority.public_keys();
        if Checkpoint::verify(&row.note, &authorities).is_none() && authority.reload().await.is_ok()
        {
            // The authority was replaced, and this node has not learned of it yet.
            authorities = authority.public_keys();
        }
        let state = row.state.as_deref().and_then(ChainState::decode);
        let checkpoint = Checkpoint::verify(&row.note, &authorities);
        match (checkpoint, state) {
            (Some(checkpoint), Some(mut state))
                if checkpoint.number == row.number && checkpoint.root == state.root() =>
            {
                state.drop_days_through(checkpoint.closed_through);
                Ok(Seen {
                    hash: note_hash(&row.note),
                    checkpoint,
                    state,
                })
            }
            _ => Err(forged),
        }
    }

    /// Writes the checkpoint after the one seen last; false if another node has written it meanwhile.
    async fn write_next(
        &self,
        memory: &mut CheckpointMemory,
        due: Due,
    ) -> Result<bool, CheckpointError> {
        let db = &self.writers.db;
        let now = self.writers.clock.now().await?;
        let today = day_of(now);
        let seen = memory.seen.clone();
        let closed = seen
            .as_ref()
            .map_or(today - 2, |it| it.checkpoint.closed_through);
        let before = seen.as_ref().map(|it| it.state.clone()).unwrap_or_default();
        let state = self.next_state(&before, today, closed);
        let (closed_through, final_heads) = match due {
            Due::Periodically => self.close_days(memory, &state, closed, now).await?,
            Due::IfChanged => (closed, ChainState::default()),
        };
        let retained_from = seen.as_ref().map_or(0, |it| it.checkpoint.retained_from);
        let retained_from = retained_from.max(memory.retained_from);
        let is_old = seen.as_ref().is_none_or(|it| {
            it.checkpoint.at + PERIOD <= now || it.checkpoint.retained_from < retained_from
        });
        let is_due = state != before || (due == Due::Periodically && is_old);
        if !is_due && closed_through == closed {
            return Ok(true);
        }
        // The key may be new, and is part of the state then.
        let key = self.writers.chains.key(db, today).await?;
        let mut state = self.next_state(&before, today, closed);
        state.merge(final_heads);
        let checkpoint = Checkpoint {
            environment: self.environment.clone(),
            number: seen.as_ref().map_or(1, |it| it.checkpoint.number + 1),
            root: state.root(),
            previous: seen.as_ref().map_or([0; 32], |it| it.hash),
            at: now,
            access: db.with_connection(access_summary).await?,
            retained_from,
            closed_through,
            key: key.certified.clone(),
        };
        let row = CheckpointRow {
            number: checkpoint.number,
            note: checkpoint.sign(&key.pair),
            state: Some(state.encode()),
        };
        if !store::insert_checkpoint(db, &row, today).await? {
            return Ok(false);
        }
        catalog::AUDIT_CHECKPOINTS.increment(1);
        state.drop_days_through(closed_through);
        self.writers.chains.drop_days_through(closed_through);
        memory.seen = Some(Seen {
            hash: note_hash(&row.note),
            checkpoint,
            state,
        });
        Ok(true)
    }

    /// The state of the checkpoint before with the current heads of this node.
    fn next_state(&self, before: &ChainState, today: i32, closed: i32) -> ChainState {
        let mut state = before.clone();
        let mut own = self.writers.chains.stated(today);
        own.drop_days_through(closed);
        state.merge(own);
        state
    }

    /// Closes the days before today some time after midnight. Returns the last closed day, and the last heads of chains
    /// whose nodes did not close them.
    async fn close_days(
        &self,
        memory: &mut CheckpointMemory,
        state: &ChainState,
        closed: i32,
        now: Timestamp,
    ) -> Result<(i32, ChainState), CheckpointError> {
        let unchanged = (closed, ChainState::default());
        let yesterday = day_of(now) - 1;
        let is_time = start_of_day(yesterday + 1) + CLOSE_AFTER <= now
            && memory.close_at.is_none_or(|at| at <= now);
        if !is_time || yesterday <= closed {
            return Ok(unchanged);
        }
        let stated = memory.seen.as_ref().map(|it| it.checkpoint.retained_from);
        let retained_from = stated.unwrap_or_default().max(memory.retained_from);
        let days = closed + 1..=yesterday;
        match close_day::final_state(self, state, days, retained_from).await? {
            Some(heads) => Ok((yesterday, heads)),
            None => {
                memory.close_at = Some(now + CLOSE_RETRY);
                catalog::AUDIT_UNCLOSED_DAYS.increment(1);
                tracing::error!(
                    error.kind = "audit_log_altered",
                    "a day of the audit log cannot be closed: its entries do not verify; run `cloakroom audit verify`"
                );
                Ok(unchanged)
            }
        }
    }

    /// Why this node does not write to the log, if so.
    pub async fn halted(&self) -> Option<Halt> {
        self.checkpoints.lock().await.halted
    }
}
