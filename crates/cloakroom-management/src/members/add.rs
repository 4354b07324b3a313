//! Adds members with the CLI. There is no login, so only the operator can.

use cloakroom_core::access::check_name;
use cloakroom_core::audit::{self, EntityKind, Operation};
use cloakroom_core::vault::Vault;
use cloakroom_platform::api::FieldError;
use cloakroom_platform::ids::TenantId;

use super::{Error, Member, NewMember, entry, store};

/// Adds a member to a tenant.
pub async fn add(vault: &Vault, tenant: TenantId, new: NewMember) -> Result<Member, Error> {
    check(&new)?;
    let transaction = audit::begin(&vault.audit).await?;
    match store::insert_member(&transaction, tenant, &new, None).await {
        Ok(member) => {
            let (operation, entity) = (Operation::Create, EntityKind::Member);
            let entry = entry(None, tenant, operation, entity, member.id)
                .with_event(member.created_event());
            transaction.commit(&[entry]).await?;
            Ok(member)
        }
        Err(error) => {
            transaction.roll_back().await;
            Err(Error::of_write(error))
        }
    }
}

fn check(new: &NewMember) -> Result<(), Error> {
    let names = [
        ("first_name", &new.first_name),
        ("last_name", &new.last_name),
    ];
    let broken = names.into_iter().filter_map(|(path, name)| {
        let broken = check_name(name.as_ref()?).err()?;
        Some(FieldError::new(path, broken.rule))
    });
    let broken: Vec<FieldError> = broken.collect();
    if broken.is_empty() {
        return Ok(());
    }
    Err(Error::Invalid(broken))
}
