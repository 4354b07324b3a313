//! What connections and failures are counted by.

use std::sync::Arc;

use cloakroom_platform::ids::TenantId;

use crate::DestinationUrl;

/// A tenant and a destination.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct DestinationKey {
    pub(crate) tenant: i32,
    /// Host and port.
    pub(crate) authority: Arc<str>,
}

impl DestinationKey {
    pub(crate) fn new(tenant: TenantId, url: &DestinationUrl) -> Self {
        Self {
            tenant: tenant.number,
            authority: url.authority().into(),
        }
    }
}
