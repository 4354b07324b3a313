//! Plans what a ledger would delete from this database, and checks it against limits.

use std::fmt;

use cloakroom_core::access;
use cloakroom_core::access::Tenant;
use cloakroom_core::audit::EntityKind;
use cloakroom_management::{applications, tenants};
use cloakroom_tokens::tokens;
use cloakroom_tokens::tokens::TokenVault;

use super::{Erasure, Error, Ledger};

/// Numbers of entities by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub tokens: u64,
    pub applications: u64,
    pub application_keys: u64,
    pub tenants: u64,
}

impl Counts {
    fn add(&mut self, kind: EntityKind) {
        match kind {
            EntityKind::Tenant => self.tenants += 1,
            EntityKind::Application => self.applications += 1,
            EntityKind::ApplicationKey => self.application_keys += 1,
            _ => self.tokens += 1,
        }
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            tokens,
            applications,
            application_keys,
            tenants,
        } = self;
        write!(
            f,
            "tokens: {tokens}, applications: {applications}, application keys: {application_keys}, tenants: {tenants}"
        )
    }
}

/// Maximum numbers of entities that one ledger may delete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub tokens: u64,
    /// Limits applications and their keys separately.
    pub applications: u64,
    pub tenants: u64,
}

impl Default for Limits {
    /// Deleting a tenant destroys its keys and cannot be undone, so the default allows none.
    fn default() -> Self {
        Self {
            tokens: 10_000,
            applications: 100,
            tenants: 0,
        }
    }
}

impl Limits {
    /// Rejects a plan that exceeds the limits, and names the options that allow it.
    pub(super) fn check(&self, counts: &Counts) -> Result<(), Error> {
        let applications = counts.applications.max(counts.application_keys);
        let all = [
            ("--max-tokens", counts.tokens, self.tokens),
            ("--max-applications", applications, self.applications),
            ("--max-tenants", counts.tenants, self.tenants),
        ];
        let options: Vec<String> = all
            .into_iter()
            .filter(|(_, count, limit)| count > limit)
            .map(|(option, count, _)| format!("{option} {count}"))
            .collect();
        match options.is_empty() {
            true => Ok(()),
            false => Err(Error::OverLimit {
                counts: *counts,
                options: options.join(" "),
            }),
        }
    }
}

/// The erasures of a ledger whose entities still exist in this database.
pub struct Plan<'a> {
    pub counts: Counts,
    /// Erasures whose entities do not exist.
    pub absent: u64,
    pub(super) present: Vec<(Tenant, &'a Erasure)>,
}

/// Determines what a ledger would delete. Changes nothing.
pub async fn plan<'a>(vault: &TokenVault, ledger: &'a Ledger) -> Result<Plan<'a>, Error> {
    let tenants = tenants::list(vault).await?;
    let mut plan = Plan {
        counts: Counts::default(),
        absent: 0,
        present: Vec::new(),
    };
    for erasure in &ledger.erasures {
        let tenant = tenants.iter().find(|it| it.id.uuid == erasure.tenant);
        match tenant {
            Some(tenant) if is_present(vault, tenant, erasure).await? => {
                plan.counts.add(erasure.kind);
                plan.present.push((tenant.clone(), erasure));
            }
            _ => plan.absent += 1,
        }
    }
    Ok(plan)
}

async fn is_present(vault: &TokenVault, tenant: &Tenant, erasure: &Erasure) -> Result<bool, Error> {
    let id = erasure.id.as_str();
    Ok(match erasure.kind {
        // Already found in the list of tenants.
        EntityKind::Tenant => true,
        EntityKind::Application => access::application_exists(&vault.db, tenant.id, id).await?,
        EntityKind::ApplicationKey => applications::key_exists(vault, tenant.id, id).await?,
        EntityKind::Token | EntityKind::Card | EntityKind::Bank => {
            tokens::is_erasable(vault, tenant.id, id, erasure.at).await?
        }
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_over_a_limit_names_the_options_that_allow_it() {
        let limits = Limits::default();
        let cases = [
            ((10_000, 100, 100, 0), None),
            ((10_001, 0, 0, 0), Some("--max-tokens 10001")),
            ((0, 0, 101, 0), Some("--max-applications 101")),
            ((0, 0, 0, 1), Some("--max-tenants 1")),
            (
                (20_000, 7, 300, 2),
                Some("--max-tokens 20000 --max-applications 300 --max-tenants 2"),
            ),
        ];
        for ((tokens, applications, application_keys, tenants), expected) in cases {
            let counts = Counts {
                tokens,
                applications,
                application_keys,
                tenants,
            };
            let options = match limits.check(&counts) {
                Ok(()) => None,
                Err(Error::OverLimit { options, .. }) => Some(options),
                Err(error) => panic!("{error}"),
            };
            assert_eq!(options.as_deref(), expected);
        }
    }
}
