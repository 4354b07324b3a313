//! Identifiers.

use uuid::Uuid;

/// The two ids of a tenant: a number that keys its database rows, and the UUID in the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TenantId {
    pub number: i32,
    pub uuid: Uuid,
}

/// Generates a random UUID of version 4: the official clients accept only versions 1 to 5.
pub fn new_uuid() -> Uuid {
    uuid::Builder::from_random_bytes(cloakroom_crypto::random_bytes()).into_uuid()
}
