//! Which deprecated things a request has used.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::table::{ALL, Deprecated};
use crate::api::ApiError;
use crate::config;

/// What one request has used so far; a copy is the same.
#[derive(Clone, Debug, Default)]
pub struct Uses(Arc<AtomicU32>);

impl Uses {
    /// The request uses this.
    pub fn note(&self, deprecated: Deprecated) {
        self.0.fetch_or(bit(deprecated), Ordering::Relaxed);
    }

    /// The request asks for a deprecated operation: noted, and refused where a setting says so.
    pub fn ask_for(
        &self,
        deprecated: Deprecated,
        config: &config::Deprecated,
    ) -> Result<(), ApiError> {
        match deprecated.row().is_gone(config) {
            true => Err(self.refuse(deprecated)),
            false => {
                self.note(deprecated);
                Ok(())
            }
        }
    }

    /// The request asks for an operation that is gone: noted, with what to answer.
    pub fn refuse(&self, deprecated: Deprecated) -> ApiError {
        self.note(deprecated);
        deprecated.row().gone()
    }

    /// What was used, in the order of the table.
    pub(super) fn noted(&self) -> impl Iterator<Item = Deprecated> {
        let noted = self.0.load(Ordering::Relaxed);
        ALL.iter()
            .copied()
            .filter(move |deprecated| noted & bit(*deprecated) != 0)
    }
}

/// The table is far shorter than the number of bits; a test counts it.
fn bit(deprecated: Deprecated) -> u32 {
    1 << (deprecated as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_a_bit_of_its_own() {
        assert!(ALL.len() <= u32::BITS as usize);
        let uses = Uses::default();
        for (count, deprecated) in ALL.iter().enumerate() {
            assert_eq!(uses.noted().count(), count);
            uses.clone().note(*deprecated);
        }
        assert!(uses.noted().eq(ALL.iter().copied()));
    }
}
