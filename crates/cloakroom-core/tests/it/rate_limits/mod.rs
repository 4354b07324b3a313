//! Rate limits: what clients observe, across nodes and without Redis.

mod admission;
mod configuration;
mod counters;
mod deployment;
mod nodes;
mod outage;
mod requests;
mod script;

use cloakroom::admin::Readiness;
use cloakroom::jobs;
use cloakroom_testkit::{Client, TestVault};
use http::StatusCode;
use tokio::task::JoinSet;

const OK: StatusCode = StatusCode::OK;
const TOO_MANY: StatusCode = StatusCode::TOO_MANY_REQUESTS;

/// A cheap endpoint that every key may call.
const CHEAP: &str = "/roles";

async fn statuses(client: &Client, count: usize) -> Vec<u16> {
    let mut statuses = Vec::new();
    for _ in 0..count {
        statuses.push(client.get(CHEAP).await.status.as_u16());
    }
    statuses
}

/// Starts the background jobs of a node.
fn run_jobs(node: &TestVault) -> JoinSet<()> {
    let readiness = Readiness::new(jobs::CHECKS);
    jobs::start(&node.vault, &readiness)
}
