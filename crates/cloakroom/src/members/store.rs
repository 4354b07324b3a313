//! Every SQL statement about members and invitations.

use tokio_postgres::Row;
use uuid::Uuid;

use super::invitation::LIFETIME;
use super::{Email, Invitation, Member, NewInvitation, NewMember, Role, Status, User};
use crate::api::NumberedPage;
use crate::caller::Caller;
use crate::ids::{self, TenantId};
use crate::storage::{Db, Error, Transaction, statements};

/// The columns of a member in the order that `member` reads them.
macro_rules! member_columns {
    () => {
        "member_id, role, user_id, email, first_name, last_name, created_by, created_at,
               modified_by, modified_at"
    };
}

/// The columns of an invitation in the order that `invitation` reads them.
macro_rules! invitation_columns {
    () => {
        "invitation_id, email, role, expires_at > now(), expires_at, created_by, created_at,
               modified_by, modified_at"
    };
}

/// Members with one of the wanted user ids; all of them when none is wanted.
macro_rules! wanted_members {
    () => {
        "
        from member
        where tenant_id = $1
          and ($2::uuid[] is null or user_id = any($2))"
    };
}

/// Invitations that are pending or not, as wanted; all of them when neither is.
macro_rules! wanted_invitations {
    () => {
        "
        from invitation
        where tenant_id = $1
          and ($2::boolean is null or (expires_at > now()) = $2)"
    };
}

// Role 1 is the owner's.
statements! {
    COUNT_MEMBERS: "members::count" = concat!("select count(*)", wanted_members!());
    LIST_MEMBERS: "members::list" = concat!(
        "select ", member_columns!(), wanted_members!(), "
        order by created_at desc, member_id desc
        limit $3
        offset $4"
    );
    FIND_OWNER: "members::find_owner" = concat!(
        "select ", member_columns!(), "
        from member
        where tenant_id = $1
          and role = 1"
    );
    IS_MEMBER: "members::is_member" =
        "select true
        from member
        where tenant_id = $1
          and member_id = $2";
    INSERT_MEMBER: "members::insert" = concat!(
        "insert into member
            (tenant_id, member_id, user_id, role, email, first_name, last_name, created_by)
        values ($1, $2, $3, $4, $5, $6, $7, $8)
        returning ", member_columns!()
    );
    UPDATE_ROLE: "members::update_role" = concat!(
        "update member
        set role = $3,
            modified_by = $4,
            modified_at = now()
        where tenant_id = $1
          and member_id = $2
          and role <> 1
        returning ", member_columns!()
    );
    DELETE_MEMBER: "members::delete" =
        "delete from member
        where tenant_id = $1
          and member_id = $2
          and role <> 1
        returning true";
    HOLD_TENANT: "members::hold_tenant" =
        "select true
        from tenant
        where tenant_id = $1
        for no key update";
    STEP_DOWN: "members::step_down" =
        "update member
        set role = 2,
            modified_by = $3,
            modified_at = now()
        where tenant_id = $1
          and member_id <> $2
          and role = 1
        returning member_id";
    RAISE_TO_OWNER: "members::raise_to_owner" = concat!(
        "update member
        set role = 1,
            modified_by = $3,
            modified_at = now()
        where tenant_id = $1
          and member_id = $2
        returning ", member_columns!()
    );
    COUNT_INVITATIONS: "members::count_invitations" =
        concat!("select count(*)", wanted_invitations!());
    LIST_INVITATIONS: "members::list_invitations" = concat!(
        "select ", invitation_columns!(), wanted_invitations!(), "
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
            (tenant_id, invitation_id, email, role, link_mac, expires_at, created_by)
        values ($1, $2, $3, $4, $5, now() + make_interval(secs => $6), $7)
        returning ", invitation_columns!()
    );
    RENEW_INVITATION: "members::renew_invitation" = concat!(
        "update invitation
        set link_mac = $3,
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
    TAKE_INVITATION: "members::take_invitation" = concat!(
        "delete from invitation
        where tenant_id = $1
          and link_mac = $2
          and expires_at > now()
        returning ", invitation_columns!()
    );
}

pub(super) async fn count_members(
    db: &Db,
    tenant: TenantId,
    users: Option<&[Uuid]>,
) -> Result<i64, Error> {
    let row = db
        .read_optional(&COUNT_MEMBERS, &[&tenant.number, &users])
        .await?;
    Ok(row.map_or(0, |row| row.get(0)))
}

pub(super) async fn list_members(
    db: &Db,
    tenant: TenantId,
    users: Option<&[Uuid]>,
    page: NumberedPage,
) -> Result<Vec<Member>, Error> {
    let rows = db
        .read(
            &LIST_MEMBERS,
            &[&tenant.number, &users, &page.limit(), &page.offset()],
        )
        .await?;
    Ok(rows.iter().map(member).collect())
}

pub(super) async fn find_owner(db: &Db, tenant: TenantId) -> Result<Option<Member>, Error> {
    let row = db.read_optional(&FIND_OWNER, &[&tenant.number]).await?;
    Ok(row.as_ref().map(member))
}

pub(super) async fn is_member(
    transaction: &Transaction,
    tenant: TenantId,
    id: Uuid,
) -> Result<bool, Error> {
    let rows = transaction.run(&IS_MEMBER, &[&tenant.number, &id]).await?;
    Ok(!rows.is_empty())
}

pub(super) async fn insert_member(
    transaction: &Transaction,
    tenant: TenantId,
    new: &NewMember,
    by: Option<Uuid>,
) -> Result<Member, Error> {
    let role = new.role as i16;
    let rows = transaction
        .run(
            &INSERT_MEMBER,
            &[
                &tenant.number,
                &ids::new_uuid(),
                &ids::new_uuid(),
                &role,
                &new.email.as_str(),
                &new.first_name,
                &new.last_name,
                &by,
            ],
        )
        .await?;
    rows.first().map(member).ok_or(Error::RolledBack)
}

/// Gives a member who is not the owner another role.
pub(super) async fn update_role(
    transaction: &Transaction,
    caller: &Caller,
    id: Uuid,
    role: Role,
) -> Result<Option<Member>, Error> {
    let role = role as i16;
    let rows = transaction
        .run(
            &UPDATE_ROLE,
            &[&caller.tenant.number, &id, &role, &caller.application],
        )
        .await?;
    Ok(rows.first().map(member))
}

/// Removes a member who is not the owner.
pub(super) async fn delete_member(
    transaction: &Transaction,
    tenant: TenantId,
    id: Uuid,
) -> Result<bool, Error> {
    let rows = transaction
        .run(&DELETE_MEMBER, &[&tenant.number, &id])
        .await?;
    Ok(!rows.is_empty())
}

/// Lets one transfer of a tenant happen after the other, each seeing what the last one left.
pub(super) async fn hold_tenant(transaction: &Transaction, tenant: TenantId) -> Result<(), Error> {
    transaction.run(&HOLD_TENANT, &[&tenant.number]).await?;
    Ok(())
}

/// Makes the owner an admin, unless the owner is to stay, and tells who that was.
pub(super) async fn step_down(
    transaction: &Transaction,
    caller: &Caller,
    except: Uuid,
) -> Result<Option<Uuid>, Error> {
    let by = &caller.application;
    let rows = transaction
        .run(&STEP_DOWN, &[&caller.tenant.number, &except, by])
        .await?;
    Ok(rows.first().map(|row| row.get(0)))
}

pub(super) async fn raise_to_owner(
    transaction: &Transaction,
    caller: &Caller,
    id: Uuid,
) -> Result<Option<Member>, Error> {
    let by = &caller.application;
    let rows = transaction
        .run(&RAISE_TO_OWNER, &[&caller.tenant.number, &id, by])
        .await?;
    Ok(rows.first().map(member))
}

pub(super) async fn count_invitations(
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

pub(super) async fn list_invitations(
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

pub(super) async fn find_invitation(
    db: &Db,
    tenant: TenantId,
    id: Uuid,
) -> Result<Option<Invitation>, Error> {
    let row = db
        .read_optional(&FIND_INVITATION, &[&tenant.number, &id])
        .await?;
    Ok(row.as_ref().map(invitation))
}

pub(super) async fn insert_invitation(
    transaction: &Transaction,
    tenant: TenantId,
    (id, new): (Uuid, &NewInvitation),
    link_mac: &[u8],
    by: Option<Uuid>,
) -> Result<Invitation, Error> {
    let role = new.role as i16;
    let rows = transaction
        .run(
            &INSERT_INVITATION,
            &[
                &tenant.number,
                &id,
                &new.email.as_str(),
                &role,
                &link_mac,
                &LIFETIME.as_secs_f64(),
                &by,
            ],
        )
        .await?;
    rows.first().map(invitation).ok_or(Error::RolledBack)
}

pub(super) async fn renew_invitation(
    transaction: &Transaction,
    tenant: TenantId,
    id: Uuid,
    link_mac: &[u8],
    by: Option<Uuid>,
) -> Result<Option<Invitation>, Error> {
    let rows = transaction
        .run(
            &RENEW_INVITATION,
            &[&tenant.number, &id, &link_mac, &LIFETIME.as_secs_f64(), &by],
        )
        .await?;
    Ok(rows.first().map(invitation))
}

pub(super) async fn delete_invitation(
    transaction: &Transaction,
    tenant: TenantId,
    id: Uuid,
) -> Result<bool, Error> {
    let rows = transaction
        .run(&DELETE_INVITATION, &[&tenant.number, &id])
        .await?;
    Ok(!rows.is_empty())
}

/// Removes the invitation that this link belongs to, unless it has expired.
pub(super) async fn take_invitation(
    transaction: &Transaction,
    tenant: TenantId,
    link_mac: &[u8],
) -> Result<Option<Invitation>, Error> {
    let rows = transaction
        .run(&TAKE_INVITATION, &[&tenant.number, &link_mac])
        .await?;
    Ok(rows.first().map(invitation))
}

fn member(row: &Row) -> Member {
    Member {
        id: row.get(0),
        role: role(row.get(1)),
        user: User {
            id: row.get(2),
            email: Email::kept(row.get(3)),
            first_name: row.get(4),
            last_name: row.get(5),
        },
        created_by: row.get(6),
        created_at: row.get(7),
        modified_by: row.get(8),
        modified_at: row.get(9),
    }
}

fn invitation(row: &Row) -> Invitation {
    Invitation {
        id: row.get(0),
        email: Email::kept(row.get(1)),
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

/// One that this version does not know is told as the weakest.
fn role(number: i16) -> Role {
    Role::from_number(number).unwrap_or(Role::ReadOnly)
}
