//! Verifies the states of all tenants against their rows.

use cloakroom_platform::ids::TenantId;
use cloakroom_platform::storage::{self, Db};

use super::store::{self, ListedBucket, Member};
use super::{Bucket, digest};
use crate::access::AuthenticatedRow as _;
use crate::access::store::list_tenants;
use crate::keys::{ControlKey, VAULT};

const PAGE: i64 = 500;
/// Rows that one finding names.
const NAMED_MAX: usize = 20;

/// Verifies that the rows of every bucket are the current ones. Returns one sentence for each bucket that differs; it
/// names the rows that were restored or added, as far as the digest shows.
pub async fn verify_states(db: &Db, control: &ControlKey) -> Result<Vec<String>, storage::Error> {
    let mut findings = Vec::new();
    for (bucket, listed) in store::list(db, VAULT).await? {
        findings.extend(examine(control, VAULT, bucket, &listed));
    }
    let mut after = 0;
    loop {
        let page = list_tenants(db, after, PAGE).await?;
        let Some((last, _)) = page.last() else { break };
        after = last.id.number;
        for (tenant, _) in page {
            let is_deleted = tenant.deleted_at.is_some();
            for (bucket, listed) in store::list(db, tenant.id).await? {
                if is_deleted && bucket.ends_with_tenant() {
                    continue;
                }
                findings.extend(examine(control, tenant.id, bucket, &listed));
            }
        }
    }
    for number in store::list_orphans(db).await? {
        findings.push(format!(
            "the row of tenant number {number} was deleted outside the vault"
        ));
    }
    Ok(findings)
}

/// Describes how a bucket differs from its state; `None` if it does not.
fn examine(
    control: &ControlKey,
    tenant: TenantId,
    bucket: Bucket,
    listed: &ListedBucket,
) -> Option<String> {
    let owner = match tenant == VAULT {
        true => "the vault".to_owned(),
        false => format!("tenant {}", tenant.uuid),
    };
    let place = format!("{owner}, bucket {}", bucket.number());
    let members = &listed.members;
    let Some((state, row_mac)) = &listed.state else {
        let named = name_all(members);
        return Some(format!(
            "{place}: the access state is missing; rows in it: {named}"
        ));
    };
    if !state.is_genuine(control, row_mac) {
        return Some(format!(
            "{place}: the access state was changed outside the vault"
        ));
    }
    let all: Vec<&Member> = members.iter().collect();
    if digest_of(&all).as_slice() == state.digest {
        return None;
    }
    let difference = match added(&state.digest, members) {
        Some(added) => format!(
            "{} was restored or added outside the vault",
            added.join(" and ")
        ),
        None if members.is_empty() => "its rows were deleted outside the vault".to_owned(),
        None => format!(
            "an earlier version was restored or a row was deleted outside the vault; rows in it: {}",
            name_all(members)
        ),
    };
    Some(format!(
        "{place}, generation {}: {difference}",
        state.generation
    ))
}

/// Finds one or two rows without which the others match the digest: a restored key, or an application with its key.
fn added(expected: &[u8], members: &[Member]) -> Option<Vec<String>> {
    let without = |left_out: &[usize]| {
        let rest = members.iter().enumerate();
        let rest = rest.filter(|(index, _)| !left_out.contains(index));
        let rest: Vec<&Member> = rest.map(|(_, member)| member).collect();
        digest_of(&rest).as_slice() == expected
    };
    let indexes = || 0..members.len();
    let one = indexes().find(|one| without(&[*one])).map(|one| vec![one]);
    let found = one.or_else(|| {
        let mut pairs = indexes().flat_map(|one| (0..one).map(move |other| vec![other, one]));
        pairs.find(|pair| without(pair))
    });
    let named = found?
        .into_iter()
        .filter_map(|index| members.get(index))
        .map(name);
    Some(named.collect())
}

fn digest_of(members: &[&Member]) -> [u8; 32] {
    let macs: Vec<Vec<u8>> = members.iter().map(|it| it.row_mac.clone()).collect();
    digest(&macs)
}

fn name(member: &Member) -> String {
    match member.id {
        Some(id) => format!("the {} {id}", member.kind),
        None => format!("the {}", member.kind),
    }
}

fn name_all(members: &[Member]) -> String {
    let named: Vec<String> = members.iter().take(NAMED_MAX).map(name).collect();
    match members.len().checked_sub(NAMED_MAX) {
        Some(more @ 1..) => format!("{} and {more} more", named.join(", ")),
        _ => named.join(", "),
    }
}
