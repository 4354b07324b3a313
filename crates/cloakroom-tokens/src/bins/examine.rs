//! Status of the imported table, and lookups for the operator.

use cloakroom_core::access::TenantKind;
use cloakroom_core::vault::Vault;
use jiff::Timestamp;

use super::{Bins, CardDetails, Error, Source, store};

/// The imported table, whether or not this node has loaded it.
#[derive(Clone, Debug)]
pub struct Status {
    pub version: i32,
    pub source: String,
    pub rows: u64,
    pub bytes: u64,
    pub imported_at: Timestamp,
}

/// The status of the imported table; `None` before the first import.
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

/// The details of cards with these leading digits, and their source.
///
/// Fewer than twelve digits are a BIN, for which the first 16-digit number is looked up.
pub async fn show(
    vault: &Vault,
    tenant_kind: TenantKind,
    digits: &str,
) -> Result<(CardDetails, Source), Error> {
    let bins = Bins::default();
    super::refresh(vault, &bins).await?;
    let number = match digits.len() {
        6..=11 => format!("{digits:0<16}"),
        _ => digits.to_owned(),
    };
    CardDetails::explain(&bins, tenant_kind, &number).ok_or(Error::NotDigits)
}
