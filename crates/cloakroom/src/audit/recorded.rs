//! A transaction that cannot commit without saying what it did.

use std::ops::Deref;

use super::chain::Pen;
use super::entry::{Entry, told_again};
use super::store;
use crate::idempotency::Kept;
use crate::storage::{Error, Transaction};
use crate::vault::Vault;

/// An open transaction, and the pen that records it.
pub struct Recorded<'a> {
    transaction: Transaction,
    pen: Pen<'a>,
}

/// Starts a transaction whose commit is recorded.
///
/// ```ignore
/// let recorded = audit::begin(vault).await?;
/// store::insert_application(&recorded, &row).await?;
/// let entry = Entry::of(caller, Operation::Create, EntityKind::Application, row.id);
/// recorded.commit(&[entry]).await?;
/// ```
pub async fn begin(vault: &Vault) -> Result<Recorded<'_>, Error> {
    // The pen comes first, always: whoever has a connection never waits for a pen.
    let pen = vault.audit.pen().await?;
    let transaction = vault.db.begin().await?;
    Ok(Recorded { transaction, pen })
}

impl Deref for Recorded<'_> {
    type Target = Transaction;

    fn deref(&self) -> &Transaction {
        &self.transaction
    }
}

impl Recorded<'_> {
    /// Makes everything durable, the record of it included.
    pub async fn commit(self, entries: &[Entry]) -> Result<(), Error> {
        self.commit_with(entries, Kept::default()).await
    }

    /// The same, with the answer to the request that asked for it.
    pub async fn commit_with(mut self, entries: &[Entry], kept: Kept<'_>) -> Result<(), Error> {
        let rows = self.pen.sign(entries);
        let written = match kept.rows(&told_again(entries)) {
            Ok(kept) => store::insert_within(&self.transaction, &rows, &kept).await,
            Err(error) => Err(error),
        };
        if let Err(error) = written {
            self.transaction.roll_back().await;
            self.pen.unused();
            return Err(error);
        }
        let committed = self.transaction.commit().await;
        self.pen.settle(&committed, |()| true);
        if committed.is_ok() {
            kept.done();
        }
        committed
    }

    /// Gives everything up.
    pub async fn roll_back(self) {
        self.transaction.roll_back().await;
        self.pen.unused();
    }
}
