//! Identifiers: what names a thing inside the vault, and how new names are made.

use uuid::Uuid;

/// A tenant's two names: the short number that keys its rows, and the UUID that everyone else sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TenantId {
    pub number: i32,
    pub uuid: Uuid,
}

/// A fresh random UUID. Official clients accept versions 1 to 5 only, so this is version 4.
pub fn new_uuid() -> Uuid {
    uuid::Builder::from_random_bytes(cloakroom_crypto::random_bytes()).into_uuid()
}
