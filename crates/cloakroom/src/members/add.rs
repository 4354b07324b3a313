//! Making members by command: without a login, nobody else can.

use super::{Error, Member, NewMember, entry, store};
use crate::access::check_name;
use crate::api::Broken;
use crate::audit::{self, EntityKind, Operation};
use crate::ids::TenantId;
use crate::vault::Vault;

/// Adds a member to a tenant.
pub async fn add(vault: &Vault, tenant: TenantId, new: NewMember) -> Result<Member, Error> {
    check(&new)?;
    let recorded = audit::begin(vault).await?;
    match store::insert_member(&recorded, tenant, &new, None).await {
        Ok(member) => {
            let made = (EntityKind::Member, member.id);
            let entry = entry(None, tenant, Operation::Create, made);
            recorded.commit(&[entry]).await?;
            Ok(member)
        }
        Err(error) => {
            recorded.roll_back().await;
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
        Some(Broken::new(path, broken.rule))
    });
    let broken: Vec<Broken> = broken.collect();
    if broken.is_empty() {
        return Ok(());
    }
    Err(Error::Invalid(broken))
}
