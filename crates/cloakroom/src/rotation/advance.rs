//! Advances rotations, on one node at a time.

use std::time::Duration;

use cloakroom_core::access::Bucket;
use cloakroom_core::access_change::{self, AccessChange};
use cloakroom_core::audit::Operation;
use cloakroom_core::keys::{self, State, Transition};
use cloakroom_crypto::KeyPurpose;
use cloakroom_platform::failpoint;
use cloakroom_platform::storage::{self, Transaction};
use jiff::Timestamp;
use tokio::time::Instant;
use uuid::Uuid;

use super::store;
use super::{Error, Phase, Rotation, key_entry, proof, remac, rewrite};
use crate::node::Node;

/// Longer than a page takes; renewed with every page, and another node takes over after a crash.
const LEASE: Duration = Duration::from_secs(20);
/// Nodes without a heartbeat for this long do not seal before they have read the generation of keys themselves.
const NODE_TIMEOUT: Duration = Duration::from_secs(30);
/// Rotations that a node looks at in one run.
const ROTATIONS_MAX: i64 = 50;
/// How long a run lasts before the job looks for other rotations.
const RUN_MAX: Duration = Duration::from_secs(5);

/// What a step of a rotation did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The phase changed, or rows have to be rewritten again.
    Changed,
    /// A page was rewritten; the next one follows this position.
    Page { step: i16, position: Uuid },
    /// Nothing: nodes, other statements or expiries are waited for.
    Waiting,
}

/// Advances all rotations as far as possible. Returns whether there is more to do at once; `None` if another node holds the
/// lease.
///
/// An error in one rotation does not delay the others. The first one is returned.
pub async fn work(node: &Node, holder: Uuid) -> Result<Option<bool>, Error> {
    let db = &node.db;
    if store::list_open(db, 1).await?.is_empty() {
        return Ok(Some(false));
    }
    if !storage::hold_lease(db, "rotate_keys", holder, LEASE).await? {
        return Ok(None);
    }
    let mut run = Run {
        holder,
        started_at: Instant::now(),
        renewed_at: Instant::now(),
    };
    let mut failure = None;
    for rotation in store::list_open(db, ROTATIONS_MAX).await? {
        match run.advance_far(node, rotation).await {
            Ok(true) => {}
            Ok(false) => return Ok(Some(true)),
            Err(error) => failure = failure.or(Some(error)),
        }
    }
    match failure {
        Some(error) => Err(error),
        None => Ok(Some(false)),
    }
}

/// A run of the job, which holds its lease.
pub(super) struct Run {
    holder: Uuid,
    started_at: Instant,
    renewed_at: Instant,
}

impl Run {
    /// Advances a rotation until it waits; false if the run ends before that.
    async fn advance_far(&mut self, node: &Node, mut rotation: Rotation) -> Result<bool, Error> {
        loop {
            match self.advance(node, &rotation).await? {
                Step::Waiting => return Ok(true),
                Step::Page { step, position } => {
                    (rotation.step, rotation.position) = (step, position);
                }
                Step::Changed => match store::find(&node.db, &rotation).await? {
                    Some(next) if next.phase < Phase::Proved => rotation = next,
                    _ => return Ok(true),
                },
            }
            if RUN_MAX < self.started_at.elapsed() || !self.renew(node).await? {
                return Ok(false);
            }
        }
    }

    /// Makes the next step of a rotation.
    async fn advance(&mut self, node: &Node, rotation: &Rotation) -> Result<Step, Error> {
        let advanced = match rotation.phase {
            Phase::Added => promote(node, rotation).await,
            Phase::Promoted => close(node, rotation).await,
            Phase::Closed => drain(node, rotation).await,
            Phase::Rewriting if rotation.purpose == KeyPurpose::Control => {
                remac::renew(node, rotation, self).await
            }
            Phase::Rewriting => rewrite::page(node, rotation).await,
            Phase::Proving => proof::prove(node, rotation, self).await,
            Phase::Proved | Phase::Destroyed => Ok(Step::Waiting),
        };
        match advanced {
            // This node has not loaded the keys of the last change yet.
            Err(Error::Storage(storage::Error::StaleKey)) => {
                node.keys.evict(rotation.tenant).await;
                Ok(Step::Waiting)
            }
            advanced => advanced,
        }
    }

    /// Renews the lease, not with every page, because each renewal is a commit; false if another node has it.
    pub(super) async fn renew(&mut self, node: &Node) -> Result<bool, Error> {
        if self.renewed_at.elapsed() < LEASE / 4 {
            return Ok(true);
        }
        self.renewed_at = Instant::now();
        Ok(storage::hold_lease(&node.db, "rotate_keys", self.holder, LEASE).await?)
    }
}

/// Whether every running node has loaded the keys of the rotation's last change.
async fn all_nodes_know(node: &Node, rotation: &Rotation) -> Result<bool, Error> {
    let timeout = NODE_TIMEOUT.as_secs_f64();
    let unaware = store::count_unaware(&node.db, rotation.generation, timeout).await?;
    Ok(unaware == 0)
}

/// Whether every running node has loaded the keys of the rotation's last change, and nothing is written with older ones.
///
/// Values under sealing keys name their version, so that a late one is rejected, or opened and rewritten. Digests do not:
/// a claim under one version does not exclude a claim under another. Therefore each step waits until no statement with
/// keys of the step before it can commit.
async fn is_settled(node: &Node, rotation: &Rotation) -> Result<bool, Error> {
    if !all_nodes_know(node, rotation).await? {
        return Ok(false);
    }
    if !is_fenced_by_epoch(rotation.purpose) {
        return Ok(true);
    }
    let transaction = node.db.begin().await?;
    match raise_fence(&transaction, rotation).await {
        Ok(true) => {
            transaction.commit().await?;
            Ok(false)
        }
        Ok(false) => {
            transaction.roll_back().await;
            has_drained(node, rotation).await
        }
        Err(error) => {
            transaction.roll_back().await;
            Err(error)
        }
    }
}

/// Raises the fence for digests to the present keys; false if it is there already.
async fn raise_fence(transaction: &Transaction, rotation: &Rotation) -> Result<bool, Error> {
    let is_raised = keys::raise_digest_fence(transaction, rotation.tenant).await?;
    if is_raised {
        store::forget_closed(transaction, rotation.tenant).await?;
    }
    Ok(is_raised)
}

/// Whether statements carry the age of the keys of this purpose.
fn is_fenced_by_epoch(purpose: KeyPurpose) -> bool {
    matches!(purpose, KeyPurpose::Fingerprint | KeyPurpose::Index)
}

/// Whether all statements and transactions have ended that started before the fence was raised.
async fn has_drained(node: &Node, rotation: &Rotation) -> Result<bool, Error> {
    let closed = match rotation.closed_xid {
        None => store::mark_closed(&node.db, rotation).await?,
        closed => closed,
    };
    match closed {
        Some(xid) => Ok(store::count_old_sessions(&node.db, xid).await? == 0),
        None => Ok(false),
    }
}

/// Activates the new version once all nodes can open what is sealed under it, and look up digests under it.
async fn promote(node: &Node, rotation: &Rotation) -> Result<Step, Error> {
    if !is_settled(node, rotation).await? {
        return Ok(Step::Waiting);
    }
    // The old one first: only one version may be active.
    let transitions = [
        (rotation.from, State::Retiring),
        (rotation.to, State::Active),
    ];
    let entry = (Operation::Activate, rotation.to);
    change_states(node, rotation, &transitions, Phase::Promoted, entry).await
}

/// Closes the old version once all nodes write under the new one.
async fn close(node: &Node, rotation: &Rotation) -> Result<Step, Error> {
    if !is_settled(node, rotation).await? {
        return Ok(Step::Waiting);
    }
    let transitions = [(rotation.from, State::DecryptOnly)];
    let entry = (Operation::Retire, rotation.from);
    change_states(node, rotation, &transitions, Phase::Closed, entry).await
}

/// Waits for statements that started before the old version was closed: they may still store values under it.
async fn drain(node: &Node, rotation: &Rotation) -> Result<Step, Error> {
    let is_over = match is_fenced_by_epoch(rotation.purpose) {
        true => is_settled(node, rotation).await?,
        false => has_drained(node, rotation).await?,
    };
    if !is_over {
        return Ok(Step::Waiting);
    }
    failpoint("rotation.drained")?;
    // Stored responses, what identifies their requests, and keys of security codes expire by themselves. Certificates of
    // the audit authority are verified by its public key.
    let next = match rotation.purpose {
        KeyPurpose::Reply
        | KeyPurpose::Request
        | KeyPurpose::AuditAuthority
        | KeyPurpose::SecurityCodeWrap => Phase::Proving,
        _ => Phase::Rewriting,
    };
    store::move_to(&node.db, rotation, next).await?;
    Ok(Step::Changed)
}

/// Changes states of keys and the phase in one transaction.
async fn change_states(
    node: &Node,
    rotation: &Rotation,
    transitions: &[(u32, State)],
    next: Phase,
    (operation, version): (Operation, u32),
) -> Result<Step, Error> {
    failpoint("rotation.before_change")?;
    // Before the transaction: nothing that holds a connection waits for another one.
    let at = node.clock.now().await?;
    let mut change = access_change::begin(node, rotation.tenant, &[Bucket::KEYS]).await?;
    match write(&mut change, rotation, transitions, next, at).await {
        Ok(()) => {
            let entry = key_entry(rotation.tenant, rotation.purpose, operation, version);
            change.commit(&[entry]).await?;
            node.keys.evict(rotation.tenant).await;
            failpoint("rotation.after_change")?;
            Ok(Step::Changed)
        }
        Err(Error::Contended) => {
            change.roll_back().await;
            Ok(Step::Waiting)
        }
        Err(error) => {
            change.roll_back().await;
            Err(error)
        }
    }
}

async fn write(
    change: &mut AccessChange<'_>,
    rotation: &Rotation,
    transitions: &[(u32, State)],
    next: Phase,
    at: Timestamp,
) -> Result<(), Error> {
    for (version, to) in transitions {
        let transition = Transition {
            purpose: rotation.purpose,
            version: *version,
            to: *to,
        };
        let keys = keys::change_state(change, rotation.tenant, transition, at).await?;
        change.change_keys(keys)?;
    }
    failpoint("rotation.within_change")?;
    let generation = Some(keys::count_change(change).await?);
    match store::set_phase(change, rotation, next, generation).await? {
        true => Ok(()),
        false => Err(Error::Contended),
    }
}
