//! Signatures of deliveries: RSA-PSS over the canonical body with a key of the vault, and HMAC as Standard Webhooks
//! specifies with the secret of the webhook.

mod canonical;
mod headers;
mod keys;
mod secret;

pub(crate) use self::canonical::canonical;
pub(crate) use self::headers::{SignedBody, sign};
pub(crate) use self::keys::SigningKeys;
pub use self::keys::{ensure_key, rotate_key};
pub(crate) use self::secret::Secret;
