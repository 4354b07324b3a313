//! Deprecated features that a request has used.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use cloakroom_platform::api::ApiError;
use cloakroom_platform::config;

use super::table::{ALL, DeprecatedFeature};

/// Deprecated features used by one request so far; clones share state.
#[derive(Clone, Debug, Default)]
pub struct FeatureMarks(Arc<AtomicU32>);

impl FeatureMarks {
    /// Marks a deprecated feature as used.
    pub fn mark(&self, deprecated: DeprecatedFeature) {
        self.0.fetch_or(bit(deprecated), Ordering::Relaxed);
    }

    /// Marks a deprecated operation as used; fails with 410 if a setting disables it.
    pub fn mark_or_reject(
        &self,
        deprecated: DeprecatedFeature,
        config: &config::Deprecated,
    ) -> Result<(), ApiError> {
        match deprecated.row().is_gone(config) {
            true => Err(self.reject(deprecated)),
            false => {
                self.mark(deprecated);
                Ok(())
            }
        }
    }

    /// Marks a removed operation as used and returns the 410.
    pub fn reject(&self, deprecated: DeprecatedFeature) -> ApiError {
        self.mark(deprecated);
        deprecated.row().gone()
    }

    /// The features used, in the order of the table.
    pub fn marked(&self) -> impl Iterator<Item = DeprecatedFeature> {
        let marked = self.0.load(Ordering::Relaxed);
        ALL.iter()
            .copied()
            .filter(move |deprecated| marked & bit(*deprecated) != 0)
    }
}

/// The table is far shorter than the number of bits; a test checks it.
fn bit(deprecated: DeprecatedFeature) -> u32 {
    1 << (deprecated as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_its_own_bit() {
        assert!(ALL.len() <= u32::BITS as usize);
        let marks = FeatureMarks::default();
        for (count, deprecated) in ALL.iter().enumerate() {
            assert_eq!(marks.marked().count(), count);
            marks.clone().mark(*deprecated);
        }
        assert!(marks.marked().eq(ALL.iter().copied()));
    }
}
