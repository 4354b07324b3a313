//! The scan that proves that no stored digest was made by an old version of a key.
//!
//! Rows do not name the version of their digests. The scan opens each row, computes its digests with the active keys and
//! compares them. It keeps no position outside this process, so that SQL cannot shorten it.

use std::time::Duration;

use cloakroom_core::keys::{ScannedPage, TenantKeys};
use cloakroom_crypto::KeyPurpose;
use cloakroom_tokens::{intents, tokens};
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::advance::Run;
use super::{Error, Rotation};
use crate::node::Node;

/// Rows that are opened before the lease is renewed.
const PAGE: i64 = 500;

/// Rows of each table, and how many of all have other digests. `None` if this node does not have the new version yet, or
/// has lost the lease.
pub(super) type Scan = Option<(Vec<(&'static str, u64)>, u64)>;

pub(super) async fn scan(node: &Node, rotation: &Rotation, run: &mut Run) -> Result<Scan, Error> {
    let keys = node.keys.of(rotation.tenant).await?;
    if keys.active_version(rotation.purpose) != Some(rotation.to) {
        node.keys.replace_stale(rotation.tenant).await;
        return Ok(None);
    }
    let tables: &[&str] = match rotation.purpose {
        KeyPurpose::Fingerprint => &["token", "token_intent"],
        _ => &["token"],
    };
    let (mut scanned, mut found) = (Vec::new(), 0);
    for table in tables {
        let (mut rows, mut after) = (0, Uuid::nil());
        loop {
            let started_at = Instant::now();
            let page = count(node, table, rotation, &keys, after).await?;
            rows += page.rows;
            found += page.found;
            match page.last {
                Some(last) => after = last,
                None => break,
            }
            if !run.renew(node).await? {
                return Ok(None);
            }
            // Leaves half of a core, and of the database, to requests.
            sleep(started_at.elapsed().min(Duration::from_secs(1))).await;
        }
        scanned.push((*table, rows));
    }
    // Only now: with tokens under the old version, these rows are named by them.
    if found == 0 {
        let unnamed = tokens::remove_unnamed_rows(node, rotation.tenant, rotation.purpose).await;
        scanned.extend(unnamed.map_err(|error| failed(&error))?);
    }
    Ok(Some((scanned, found)))
}

async fn count(
    node: &Node,
    table: &str,
    rotation: &Rotation,
    keys: &TenantKeys,
    after: Uuid,
) -> Result<ScannedPage, Error> {
    let tenant = rotation.tenant;
    match table {
        "token" => {
            let page = tokens::count_former(node, tenant, keys, after, PAGE).await;
            page.map_err(|error| failed(&error))
        }
        _ => {
            let page = intents::count_former(node, tenant, keys, after, PAGE).await;
            page.map_err(|error| failed(&error))
        }
    }
}

fn failed(error: &dyn std::error::Error) -> Error {
    Error::Rewrite(error.to_string())
}
