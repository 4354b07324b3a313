//! SQL statements for invitations.

use cloakroom_platform::api::NumberedPage;
use cloakroom_platform::ids::{self, TenantId};
use cloakroom_platform::storage::{Db, Error, Transaction, statements};
use tokio_postgres::Row;
use uuid::Uuid;

use super::role;
use crate::members::invitation::LIFETIME;
use crate::members::{Email, Invitation, NewInvitation, Status};

/// Columns of an invitation in the order that `invitation` reads them.
macro_rules! invitation_columns {
    () => {
        "invitation_id, email, role, expires_at > now(), expires_at, created_by, created_at,
               modified_by, modified_at"
    };
}

/// Filters invitations by status; no status matches all invitations.
macro_rules! filter_invitations {
    () => {
        "
        from invitation
        where tenant_id = $1
          and ($2::boolean is null or (expires_at > now()) = $2)"
    };
}

statements! {
    COUNT_INVITATIONS: "members::count_invitations" =
        concat!("select count(*)", filter_invitations!());
    LIST_INVITATIONS: "members::list_invitations" = concat!(
        "select ", invitation_columns!(), filter_invitations!(), "
        order by created_at desc, invitation_id desc
        limit $3
        offset $4"
    );
    FIND_INVITATION: "members::find_invitation" = concat!(
        "select ", invitation_columns!(), "
        from invitation
        where tenant_id = $1
          and invitation_id = $2"
    );
    INSERT_INVITATION: "members::insert_invitation" = concat!(
        "insert into invitation
            (tenant_id, invitation_id, email, role, link_digest, expires_at, created_by)
        values ($1, $2, $3, $4, $5, now() + make_interval(secs => $6), $7)
        returning ", invitation_columns!()
    );
    RENEW_INVITATION: "members::renew_invitation" = concat!(
        "update invitation
        set link_digest = $3,
            expires_at = now() + make_interval(secs => $4),
            modified_by = $5,
            modified_at = now()
        where tenant_id = $1
          and invitation_id = $2
        returning ", invitation_columns!()
    );
    DELETE_INVITATION: "members::delete_invitation" =
        "delete from invitation
        where tenant_id = $1
          and invitation_id = $2
        returning true";
    ACCEPT_INVITATION: "members::take_invitation" = concat!(
        "delete from invitation
        where tenant_id = $1
          and link_digest = $2
          and expires_at > now()
        returning ", invitation_columns!()
    );
}

pub(crate) async fn count_invitations(
    db: &Db,
    tenant: TenantId,
    status: Option<Status>,
) -> Result<i64, Error> {
    let is_pending = status.map(|status| status == Status::Pending);
    let row = db
        .read_optional(&COUNT_INVITATIONS, &[&tenant.number, &is_pending])
        .await?;
    Ok(row.map_or(0, |row| row.get(0)))
}

pub(crate) async fn list_invitations(
    db: &Db,
    tenant: TenantId,
    status: Option<Status>,
    page: NumberedPage,
) -> Result<Vec<Invitation>, Error> {
    let is_pending = status.map(|status| status == Status::Pending);
    let rows = db
        .read(
            &LIST_INVITATIONS,
            &[&tenant.number, &is_pending, &page.limit(), &page.offset()],
        )
        .await?;
    Ok(rows.iter().map(invitation).collect())
}

pub(crate) async fn find_invitation(
    db: &Db,
    tenant: TenantId,
    id: Uuid,
) -> Result<Option<Invitation>, Error> {
    let row = db
        .read_optional(&FIND_INVITATION, &[&tenant.number, &id])
        .await?;
    Ok(row.as_ref().map(invitation))
}

pub(crate) async fn insert_invitation(
    transaction: &Transaction,
    tenant: TenantId,
    new: &NewInvitation,
    link_digest: &[u8],
    by: Option<Uuid>,
) -> Result<Invitation, Error> {
    let role = new.role as i16;
    let rows = transaction
        .run(
            &INSERT_INVITATION,
            &[
                &tenant.number,
                &ids::new_uuid(),
                &new.email.as_str(),
                &role,
                &link_digest,
                &LIFETIME.as_secs_f64(),
                &by,
            ],
        )
        .await?;
    rows.first().map(invitation).ok_or(Error::RolledBack)
}

pub(crate) async fn renew_invitation(
    transaction: &Transaction,
    tenant: TenantId,
    id: Uuid,
    link_digest: &[u8],
    by: Option<Uuid>,
) -> Result<Option<Invitation>, Error> {
    let rows = transaction
        .run(
            &RENEW_INVITATION,
            &[
                &tenant.number,
                &id,
                &link_digest,
                &LIFETIME.as_secs_f64(),
                &by,
            ],
        )
        .await?;
    Ok(rows.first().map(invitation))
}

pub(crate) async fn delete_invitation(
    transaction: &Transaction,
    tenant: TenantId,
    id: Uuid,
) -> Result<bool, Error> {
    let rows = transaction
        .run(&DELETE_INVITATION, &[&tenant.number, &id])
        .await?;
    Ok(!rows.is_empty())
}

/// Deletes the unexpired invitation with this link.
pub(crate) async fn accept_invitation(
    transaction: &Transaction,
    tenant: TenantId,
    link_digest: &[u8],
) -> Result<Option<Invitation>, Error> {
    let rows = transaction
        .run(&ACCEPT_INVITATION, &[&tenant.number, &link_digest])
        .await?;
    Ok(rows.first().map(invitation))
}

fn invitation(row: &Row) -> Invitation {
    Invitation {
        id: row.get(0),
        email: Email::from_stored(row.get(1)),
        role: role(row.get(2)),
        status: match row.get(3) {
            true => Status::Pending,
            false => Status::Expired,
        },
        expires_at: row.get(4),
        created_by: row.get(5),
        created_at: row.get(6),
        modified_by: row.get(7),
        modified_at: row.get(8),
    }
}
