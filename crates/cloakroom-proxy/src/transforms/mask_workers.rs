//! Runs masks on threads of their own, with a fair limit between tenants.

use std::time::{Duration, Instant};

use cloakroom_platform::admission::FairSemaphore;
use cloakroom_platform::ids::TenantId;

use super::Reason;
use super::mask::Mask;

/// Masks at a time. A tenant chooses expression and text, so that each may take all of its time.
const WORKERS: usize = 2;
const QUEUE_TIMEOUT: Duration = Duration::from_secs(5);
/// Time for the matches of one mask. The last search may exceed it.
const TIME_MAX: Duration = Duration::from_millis(500);

/// Masks responses without blocking other requests.
pub struct MaskWorkers(FairSemaphore);

impl Default for MaskWorkers {
    fn default() -> Self {
        Self(FairSemaphore::new(WORKERS, QUEUE_TIMEOUT))
    }
}

impl MaskWorkers {
    /// Masks a text. Fails rather than leave a part of it unmasked.
    pub(super) async fn apply(
        &self,
        tenant: TenantId,
        mask: &Mask,
        text: String,
    ) -> Result<String, Reason> {
        let permit = self.0.acquire(tenant.number).await;
        let permit = permit.map_err(|_| Reason::Busy)?;
        let mask = mask.clone();
        let masked = tokio::task::spawn_blocking(move || {
            // Held by the thread, which keeps running if the request is cancelled.
            let _permit = permit;
            mask.apply(&text, Instant::now() + TIME_MAX)
        });
        masked.await.unwrap_or(Err(Reason::Busy))
    }
}
