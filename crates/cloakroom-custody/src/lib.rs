//! Custody of the root key, which wraps every other key: wrap and unwrap, wherever it is stored.
//!
//! A provider is one module. It gets a key and the context that it must authenticate, and returns a ciphertext in its own
//! format; [`RootKey`] adds the id of the root key and a binding to the row, limits time, and counts. Nothing else in the
//! service knows which provider is configured.

#[cfg(feature = "aws-kms")]
mod aws_kms;
mod breaker;
mod calls;
mod context;
mod description;
mod failure;
mod file;
#[cfg(feature = "pkcs11")]
mod pkcs11;
mod root_key;
mod root_keys;
mod secret_file;
pub mod shares;
#[cfg(feature = "transit")]
mod transit;

pub use self::description::{Description, Weakness};
pub use self::failure::Failure;
pub use self::file::{create_file, write_key};
#[cfg(feature = "pkcs11")]
pub use self::pkcs11::create_key as create_pkcs11_key;
pub use self::root_key::RootKey;
pub use self::root_keys::RootKeys;
pub use self::secret_file::read as read_secret_file;
