//! Which checkpoints a sink has not received yet.

use cloakroom_platform::storage;

use crate::audit::store;
use crate::audit::{Audit, checkpoint_line};

/// Checkpoints that are shipped at once.
const PAGE: i64 = 100;

/// A checkpoint for a sink.
pub struct Shipment {
    pub number: i64,
    /// The signed note.
    pub note: String,
}

impl Shipment {
    /// One line of JSON.
    pub fn line(&self) -> String {
        checkpoint_line(self.number, &self.note)
    }
}

/// The first checkpoints after `position`, in order.
pub async fn unshipped(audit: &Audit, position: i64) -> Result<Vec<Shipment>, storage::Error> {
    let rows = store::list_checkpoints(&audit.writers.db, position + 1, position + PAGE).await?;
    let shipment = |row: store::CheckpointRow| Shipment {
        number: row.number,
        note: row.note,
    };
    Ok(rows.into_iter().map(shipment).collect())
}

impl Audit {
    /// Number of the last checkpoint that a sink has received.
    pub async fn shipped(&self, sink: &str) -> Result<i64, storage::Error> {
        let number = store::find_shipment(&self.writers.db, sink).await?;
        Ok(number.unwrap_or_default())
    }

    pub async fn set_shipped(&self, sink: &str, number: i64) -> Result<(), storage::Error> {
        store::set_shipment(&self.writers.db, sink, number).await
    }

    /// Number of the newest checkpoint, 0 if there is none.
    pub async fn newest_checkpoint(&self) -> Result<i64, storage::Error> {
        let newest = store::find_newest_checkpoint(&self.writers.db).await?;
        Ok(newest.map_or(0, |row| row.number))
    }
}
