//! Lists the use of deprecated features.

use cloakroom_platform::ids::TenantId;
use cloakroom_platform::storage::{self, Db};
use jiff::Timestamp;
use uuid::Uuid;

use super::store;

/// Calls of one application that used one deprecated feature.
#[derive(Debug)]
pub struct FeatureUsage {
    /// Name of a row of the table, or of one that an earlier version had.
    pub name: String,
    pub application: Uuid,
    /// `None` if the application was deleted.
    pub application_name: Option<String>,
    pub calls: u64,
    pub first_at: Timestamp,
    pub last_at: Timestamp,
}

/// The deprecated features that the applications of a tenant use, by name and then by calls. Calls
/// of the last seconds may be missing.
pub async fn list(db: &Db, tenant: TenantId) -> Result<Vec<FeatureUsage>, storage::Error> {
    store::list(db, tenant.number).await
}
