//! Lists rotations with their progress, for an operator.

use cloakroom_core::vault::Vault;
use cloakroom_crypto::KeyPurpose;
use cloakroom_platform::storage;
use cloakroom_platform::telemetry::catalog;
use jiff::SignedDuration;
use uuid::Uuid;

use super::{Phase, Rotation, proof, remac, rewrite, store};

/// Open rotations that metrics count.
const MEASURED_MAX: i64 = 100;

/// A rotation with figures for people.
#[derive(Clone, Debug)]
pub struct Progress {
    pub rotation: Rotation,
    /// The table that is being rewritten.
    pub table: Option<&'static str>,
    /// How much of all tokens is rewritten, from 0 to 1.
    pub fraction: f64,
    /// Rows per second.
    pub rate: Option<f64>,
    pub time_left: Option<SignedDuration>,
}

/// Lists all rotations, oldest first.
pub async fn status(vault: &Vault) -> Result<Vec<Progress>, storage::Error> {
    let rotations = store::list(&vault.db).await?;
    Ok(rotations.into_iter().map(Progress::of).collect())
}

/// Measures the open rotations.
pub async fn measure(vault: &Vault) -> Result<(), storage::Error> {
    let open = store::list_open(&vault.db, MEASURED_MAX).await?;
    let age = |rotation: &Rotation| rotation.read_at.duration_since(rotation.phase_at);
    // Waiting for rows to expire takes a day or two, and is no stall.
    let advancing = open.iter().filter(|rotation| {
        rotation.phase != Phase::Proving || !proof::waits_for_expiry(rotation.purpose)
    });
    let oldest = advancing.map(age).max().unwrap_or_default();
    catalog::KEY_ROTATIONS_OPEN.set(open.len() as f64);
    catalog::KEY_ROTATION_PHASE_AGE.set(oldest.as_secs_f64());
    Ok(())
}

impl Progress {
    fn of(rotation: Rotation) -> Self {
        let is_rewriting = rotation.phase == Phase::Rewriting;
        let table = rewrite::table(&rotation);
        let fraction = match rotation.phase {
            Phase::Added | Phase::Promoted | Phase::Closed => 0.0,
            Phase::Rewriting if rotation.purpose == KeyPurpose::Control => {
                f64::from(rotation.step) / remac::STEPS.len() as f64
            }
            // Tokens are nearly all rows.
            Phase::Rewriting if rotation.step == 0 => position_in_table(rotation.position),
            _ => 1.0,
        };
        let elapsed = rotation
            .read_at
            .duration_since(rotation.phase_at)
            .as_secs_f64();
        let rate = (is_rewriting && elapsed > 0.0).then(|| rotation.scanned as f64 / elapsed);
        let time_left = (is_rewriting && fraction > 0.0).then(|| {
            let seconds = elapsed * (1.0 - fraction) / fraction;
            SignedDuration::from_secs_f64(seconds.clamp(0.0, 1e9))
        });
        Self {
            table: table.filter(|_| is_rewriting),
            fraction,
            rate,
            time_left,
            rotation,
        }
    }
}

/// The share of rows before an id: ids are random, so their first bytes are evenly distributed.
fn position_in_table(id: Uuid) -> f64 {
    let (high, _) = id.as_u64_pair();
    high as f64 / u64::MAX as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_position_of_an_id_is_its_share_of_all_ids() {
        let at = |text: &str| position_in_table(text.parse().unwrap_or_default());

        assert_eq!(at("00000000-0000-0000-0000-000000000000"), 0.0);
        let half = at("80000000-0000-4000-8000-000000000000");
        assert!((half - 0.5).abs() < 1e-6, "{half}");
        let end = at("ffffffff-ffff-4fff-bfff-ffffffffffff");
        assert!(end > 0.999_999, "{end}");
    }
}
