//! An import, and requested exports: one that is approved, one that is canceled.

use cloakroom::access::Tenant;
use cloakroom::audit::Operator;
use cloakroom::tokens::ExportFilter;
use cloakroom::transfer::PublicKey;
use cloakroom::transfer::export::{self, NewExport};
use cloakroom_testkit::TestVault;
use uuid::Uuid;

use crate::transfer::{import_lines, operator};

const RECEIVER: PublicKey = PublicKey([9; 32]);

pub(super) struct Transfers {
    approved: Uuid,
    canceled: Uuid,
}

impl Transfers {
    pub(super) async fn create(vault: &TestVault, tenant: &Tenant) -> Self {
        for name in ["first", "second"] {
            let lines = r#"{"type": "token", "data": "imported"}"#;
            import_lines(vault, tenant, name, lines).await.unwrap();
        }
        let request = async |reason: &str| {
            let new = NewExport {
                filter: ExportFilter::default(),
                receiver: RECEIVER,
                reason: reason.to_owned(),
            };
            let requested = export::request(&vault.vault, tenant, new, &operator("ada")).await;
            requested.unwrap().id
        };
        Self {
            approved: request("Move").await,
            canceled: request("Copy").await,
        }
    }

    /// Approves one export and cancels the other.
    pub(super) async fn change(&self, vault: &TestVault, tenant: &Tenant) {
        let by: Operator = operator("grace");
        let receiver = RECEIVER.fingerprint();
        let approved = export::approve(&vault.vault, tenant, self.approved, &receiver, &by).await;
        approved.unwrap();
        let canceled = export::cancel(&vault.vault, tenant, self.canceled).await;
        canceled.unwrap();
    }
}
