//! Pagination cursors of the log list, authenticated.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use cloakroom_platform::ids::TenantId;
use jiff::Timestamp;

use super::list::Filter;
use crate::keys::ControlKey;

const DOMAIN: &str = "log.cursor.v1";
const POSITION_BYTES: usize = 16;

/// The last entry of a page: its time, chain and sequence number.
pub(super) type Position = (Timestamp, i32, i32);

/// Encodes a position, bound to tenant and filter.
pub(super) fn write(
    key: &ControlKey,
    tenant: TenantId,
    filter: &Filter,
    position: Position,
) -> String {
    let mut bytes = Vec::with_capacity(POSITION_BYTES + 32);
    bytes.extend(position.0.as_microsecond().to_be_bytes());
    bytes.extend(position.1.to_be_bytes());
    bytes.extend(position.2.to_be_bytes());
    let digest = key.authenticate(
        DOMAIN,
        &[tenant.uuid.as_bytes(), &filter.canonical(), &bytes],
    );
    bytes.extend(digest);
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Decodes a position; `None` if the text is not a cursor of this tenant and filter.
pub(super) fn read(
    key: &ControlKey,
    tenant: TenantId,
    filter: &Filter,
    text: &str,
) -> Option<Position> {
    let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
    let (position, digest) = bytes.split_at_checked(POSITION_BYTES)?;
    let canonical = filter.canonical();
    let parts: [&[u8]; 3] = [tenant.uuid.as_bytes(), &canonical, position];
    if !key.verifies(DOMAIN, &parts, digest) {
        return None;
    }
    let (micros, rest) = position.split_first_chunk()?;
    let (chain, rest) = rest.split_first_chunk()?;
    let (seq, _) = rest.split_first_chunk()?;
    let at = Timestamp::from_microsecond(i64::from_be_bytes(*micros)).ok()?;
    Some((at, i32::from_be_bytes(*chain), i32::from_be_bytes(*seq)))
}
