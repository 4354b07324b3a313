//! Mutations: injected bugs that the checker must detect.

mod apply;

use crate::clients::stats::Invariant;

/// An injected bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mutation {
    FalseAcknowledgement,
    RetriesWithoutKey,
    UnrecordedDelete,
    UnrecordedUpdate,
    ResurrectedToken,
    DeletedAuditEntry,
    EarlyExpiry,
    UngracefulUpgrade,
    NonStrictReplication,
    SlowFailover,
    AsyncCommit,
    UnreachableStandby,
    SkippedErasures,
    ReusableIntents,
    DroppedDeliveries,
    DeletedProxyEntry,
}

/// A mutation, the fault it is combined with, and the invariant that the checker must report.
pub(crate) struct MutationTest {
    pub(crate) name: &'static str,
    pub(crate) what: &'static str,
    pub(crate) mutation: Mutation,
    pub(crate) fault: &'static str,
    pub(crate) invariant: Invariant,
}

const fn test(
    name: &'static str,
    what: &'static str,
    mutation: Mutation,
    fault: &'static str,
    invariant: Invariant,
) -> MutationTest {
    MutationTest {
        name,
        what,
        mutation,
        fault,
        invariant,
    }
}

pub(crate) const MUTATIONS: &[MutationTest] = &[
    test(
        "changed-behind",
        "a token is updated without a history entry",
        Mutation::UnrecordedUpdate,
        "calm",
        Invariant::Wrong,
    ),
    test(
        "deleted-behind",
        "a token is deleted by SQL",
        Mutation::UnrecordedDelete,
        "calm",
        Invariant::Lost,
    ),
    test(
        "brought-back",
        "a deleted token is restored by SQL",
        Mutation::ResurrectedToken,
        "calm",
        Invariant::Resurrected,
    ),
    test(
        "record-removed",
        "the audit log entry of a revealing read is deleted by SQL",
        Mutation::DeletedAuditEntry,
        "calm",
        Invariant::AuditError,
    ),
    test(
        "intents-kept",
        "a used token intent is restored by SQL",
        Mutation::ReusableIntents,
        "calm",
        Invariant::Doubled,
    ),
    test(
        "events-dropped",
        "half of the deliveries of events are dropped by a trigger",
        Mutation::DroppedDeliveries,
        "calm",
        Invariant::Lost,
    ),
    test(
        "proxy-unrecorded",
        "the audit log entry of a proxied request is deleted by SQL",
        Mutation::DeletedProxyEntry,
        "calm",
        Invariant::AuditError,
    ),
    test(
        "early-expiry",
        "the checker assumes an earlier expiry",
        Mutation::EarlyExpiry,
        "clock-jump",
        Invariant::Expired,
    ),
    test(
        "careless-upgrade",
        "nodes are killed instead of drained",
        Mutation::UngracefulUpgrade,
        "rolling-upgrade",
        Invariant::Failed,
    ),
    test(
        "false-acknowledgement",
        "clients record acknowledgements that they did not receive",
        Mutation::FalseAcknowledgement,
        "primary-kill",
        Invariant::Lost,
    ),
    test(
        "retries-without-key",
        "clients retry indeterminate writes without idempotency keys",
        Mutation::RetriesWithoutKey,
        "standby-loss",
        Invariant::Doubled,
    ),
    test(
        "lax-standby",
        "the primary accepts writes without standbys",
        Mutation::NonStrictReplication,
        "standby-loss",
        Invariant::Unconfirmed,
    ),
    test(
        "slow-failover",
        "the leader key of a dead primary expires after a minute",
        Mutation::SlowFailover,
        "machine-death",
        Invariant::Unavailable,
    ),
    test(
        "standby-unknown",
        "nodes cannot connect to the standby",
        Mutation::UnreachableStandby,
        "machine-death",
        Invariant::Unavailable,
    ),
    test(
        "async-commit",
        "commits wait neither for the disk nor for a standby",
        Mutation::AsyncCommit,
        "power-cut",
        Invariant::Lost,
    ),
    test(
        "erasures-forgotten",
        "a backup is restored without applying erasures",
        Mutation::SkippedErasures,
        "old-backup",
        Invariant::Resurrected,
    ),
];

pub(crate) fn find(name: &str) -> Option<&'static MutationTest> {
    MUTATIONS.iter().find(|test| test.name == name)
}
