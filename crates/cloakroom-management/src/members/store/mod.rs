//! SQL statements for members; those for invitations are in `invitations.rs`.

mod invitations;

use cloakroom_core::caller::Caller;
use cloakroom_platform::api::NumberedPage;
use cloakroom_platform::ids::{self, TenantId};
use cloakroom_platform::storage::{Db, Error, Transaction, statements};
use tokio_postgres::Row;
use uuid::Uuid;

pub(crate) use self::invitations::STATEMENTS as INVITATION_STATEMENTS;
pub(super) use self::invitations::{
    accept_invitation, count_invitations, delete_invitation, find_invitation, insert_invitation,
    list_invitations, renew_invitation,
};
use super::{Email, Member, NewMember, Role, User};

/// Columns of a member in the order that `member` reads them.
macro_rules! member_columns {
    () => {
        "member_id, role, user_id, email, first_name, last_name, created_by, created_at,
               modified_by, modified_at"
    };
}

/// Filters members by user ids; no ids match all members.
macro_rules! filter_members {
    () => {
        "
        from member
        where tenant_id = $1
          and ($2::uuid[] is null or user_id = any($2))"
    };
}

// Role 1 is the owner's.
statements! {
    COUNT_MEMBERS: "members::count" = concat!("select count(*)", filter_members!());
    LIST_MEMBERS: "members::list" = concat!(
        "select ", member_columns!(), filter_members!(), "
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
    LOCK_TENANT: "members::hold_tenant" =
        "select true
        from tenant
        where tenant_id = $1
        for no key update";
    DEMOTE_OWNER: "members::step_down" =
        "update member
        set role = 2,
            modified_by = $3,
            modified_at = now()
        where tenant_id = $1
          and member_id <> $2
          and role = 1
        returning member_id";
    PROMOTE_TO_OWNER: "members::raise_to_owner" = concat!(
        "update member
        set role = 1,
            modified_by = $3,
            modified_at = now()
        where tenant_id = $1
          and member_id = $2
        returning ", member_columns!()
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

/// Updates the role of a member that is not the owner.
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

/// Removes a member that is not the owner.
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

/// Locks the tenant's row, so that transfers run one after another and each sees the result of the previous one.
pub(super) async fn lock_tenant(transaction: &Transaction, tenant: TenantId) -> Result<(), Error> {
    transaction.run(&LOCK_TENANT, &[&tenant.number]).await?;
    Ok(())
}

/// Makes the current owner an admin, unless it is `except`, and returns its id.
pub(super) async fn demote_owner(
    transaction: &Transaction,
    caller: &Caller,
    except: Uuid,
) -> Result<Option<Uuid>, Error> {
    let by = &caller.application;
    let rows = transaction
        .run(&DEMOTE_OWNER, &[&caller.tenant.number, &except, by])
        .await?;
    Ok(rows.first().map(|row| row.get(0)))
}

pub(super) async fn promote_to_owner(
    transaction: &Transaction,
    caller: &Caller,
    id: Uuid,
) -> Result<Option<Member>, Error> {
    let by = &caller.application;
    let rows = transaction
        .run(&PROMOTE_TO_OWNER, &[&caller.tenant.number, &id, by])
        .await?;
    Ok(rows.first().map(member))
}

fn member(row: &Row) -> Member {
    Member {
        id: row.get(0),
        role: role(row.get(1)),
        user: User {
            id: row.get(2),
            email: Email::from_stored(row.get(3)),
            first_name: row.get(4),
            last_name: row.get(5),
        },
        created_by: row.get(6),
        created_at: row.get(7),
        modified_by: row.get(8),
        modified_at: row.get(9),
    }
}

/// A role that this version does not know is treated as the least privileged one.
fn role(number: i16) -> Role {
    Role::from_number(number).unwrap_or(Role::ReadOnly)
}
