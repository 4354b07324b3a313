//! Repeats an operation whose values were encrypted under a key that was replaced meanwhile.

use cloakroom_platform::storage;

use crate::caller::Caller;
use crate::keys::Keyring;

/// Errors of an operation that stores encrypted values.
pub trait MayBeStale {
    /// Whether the database rejected a value because its key was replaced. Nothing was changed then.
    fn is_stale_key(&self) -> bool;
}

impl MayBeStale for storage::Error {
    fn is_stale_key(&self) -> bool {
        matches!(self, Self::StaleKey)
    }
}

/// Runs an operation, and once more with current keys if its keys were replaced meanwhile.
pub async fn with_current_keys<T, E, F>(
    keyring: &Keyring,
    caller: &Caller,
    operation: impl Fn() -> F,
) -> Result<T, E>
where
    E: MayBeStale,
    F: Future<Output = Result<T, E>>,
{
    let result = operation().await;
    if !matches!(&result, Err(error) if error.is_stale_key()) {
        return result;
    }
    keyring.replace_stale(caller.tenant).await;
    // The operation reports keys that cannot be loaded.
    let _ignored = caller.current_keys(keyring).await;
    Box::pin(operation()).await
}
