//! The progress of one batch, as stored.

use cloakroom_core::access::AuthenticatedRow;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{BatchReport, Counts, MappedLine, RejectedLine};

/// A committed batch. Its MAC covers all columns.
#[derive(Clone, Debug)]
pub(super) struct StoredBatch {
    pub tenant: i32,
    pub import: Uuid,
    pub first_line: i64,
    pub lines: i32,
    pub created: i32,
    pub dropped_codes: i32,
    /// MAC of the options and lines.
    pub content_mac: Vec<u8>,
    /// [`Outcomes`] as JSON.
    pub outcomes: String,
}

impl AuthenticatedRow for StoredBatch {
    const DOMAIN: &'static str = "row.import_batch.v1";

    fn parts(&self) -> Vec<Vec<u8>> {
        vec![
            self.tenant.to_be_bytes().to_vec(),
            self.import.into_bytes().to_vec(),
            self.first_line.to_be_bytes().to_vec(),
            self.lines.to_be_bytes().to_vec(),
            self.created.to_be_bytes().to_vec(),
            self.dropped_codes.to_be_bytes().to_vec(),
            self.content_mac.clone(),
            self.outcomes.clone().into_bytes(),
        ]
    }
}

/// The lines of a batch that did not become tokens.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Outcomes {
    pub rejected: Vec<RejectedLine>,
    pub duplicates: Vec<MappedLine>,
}

impl StoredBatch {
    /// The report of a batch that an earlier run has committed; `None` if the outcomes cannot be read.
    pub(super) fn report(&self) -> Option<BatchReport> {
        let outcomes: Outcomes = serde_json::from_str(&self.outcomes).ok()?;
        let counts = Counts {
            created: u64::from(self.created.unsigned_abs()),
            duplicates: outcomes.duplicates.len() as u64,
            rejected: outcomes.rejected.len() as u64,
            dropped_codes: u64::from(self.dropped_codes.unsigned_abs()),
            earlier: u64::from(self.lines.unsigned_abs()),
        };
        Some(BatchReport {
            counts,
            rejected: outcomes.rejected,
            mapped: outcomes.duplicates,
        })
    }
}
