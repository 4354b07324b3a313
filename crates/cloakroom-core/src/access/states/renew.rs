//! Writes the state of a bucket again after the control key was replaced.

use cloakroom_platform::storage::{self, Db};

use super::{AccessStates, Bucket, StateRow, store};
use crate::access::AuthenticatedRow as _;
use crate::keys::ControlKey;

/// Writes the state of a bucket of a deleted tenant, whose rows are being deleted and grant nothing: they are not compared
/// with it. False if the state is not authentic.
pub async fn renew_swept(
    db: &Db,
    states: &AccessStates,
    control: &ControlKey,
    (tenant_number, bucket): (i32, Bucket),
) -> Result<bool, storage::Error> {
    let initial = StateRow::empty(tenant_number, bucket);
    let transaction = db.begin().await?;
    let locked = store::lock(&transaction, &initial, &initial.row_mac(control)).await?;
    let genuine = locked.filter(|(state, row_mac)| state.is_genuine(control, row_mac));
    let Some((mut state, _)) = genuine else {
        transaction.roll_back().await;
        return Ok(false);
    };
    state.generation = state.generation.saturating_add(1);
    store::write(&transaction, &state, &state.row_mac(control), &[]).await?;
    transaction.commit().await?;
    states.remember(tenant_number, bucket, state.generation);
    Ok(true)
}
