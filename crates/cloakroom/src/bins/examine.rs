//! What operators ask about the table: which one is kept, and what it says of a number.

use jiff::Timestamp;

use super::{CardDetails, Error, Source, store};
use crate::access::TenantKind;
use crate::vault::Vault;

/// The table that is kept, whether this node has loaded it or not.
#[derive(Clone, Debug)]
pub struct Status {
    pub version: i32,
    pub source: String,
    pub rows: u64,
    pub bytes: u64,
    pub imported_at: Timestamp,
}

/// What is kept; nothing before the first import.
pub async fn status(vault: &Vault) -> Result<Option<Status>, Error> {
    let current = store::find_current(&vault.db).await?;
    Ok(current.map(|current| Status {
        version: current.version,
        source: current.source,
        rows: current.counts.rows.unsigned_abs(),
        bytes: current.counts.bytes.unsigned_abs(),
        imported_at: current.imported_at,
    }))
}

/// What cards show that begin with these digits, and who told it.
///
/// Fewer than twelve digits are a BIN, and stand for its first number of 16 digits.
pub async fn show(
    vault: &Vault,
    tenant_kind: TenantKind,
    digits: &str,
) -> Result<(CardDetails, Source), Error> {
    super::refresh(vault).await?;
    let number = match digits.len() {
        6..=11 => format!("{digits:0<16}"),
        _ => digits.to_owned(),
    };
    CardDetails::explain(&vault.bins, tenant_kind, &number).ok_or(Error::NotDigits)
}
