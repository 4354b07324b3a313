//! Statements that remove what a deleted tenant has left, a batch at a time.
//!
//! The tables belong to other rooms, which know nothing of a tenant's end. A test compares this list
//! with the schema: a table that names a tenant is in it, or says there why not.

use crate::ids::TenantId;
use crate::storage::{Db, Error, Statement, statements};

/// Removes up to `$2` rows of a tenant, found by the rest of their primary key.
macro_rules! remove {
    ($table:literal, $key:literal) => {
        concat!(
            "with gone as (
            delete from ",
            $table,
            "
            where tenant_id = $1
              and (",
            $key,
            ") in (
                select ",
            $key,
            "
                from ",
            $table,
            "
                where tenant_id = $1
                limit $2
              )
            returning 1
        )
        select count(*)
        from gone"
        )
    };
}

statements! {
    APPLICATION_KEY: "tenants::remove_application_key" = remove!("application_key", "lookup");
    SESSION: "tenants::remove_session" = remove!("session", "lookup");
    APPLICATION: "tenants::remove_application" = remove!("application", "application_id");
    CLIENT_KEY: "tenants::remove_client_key" = remove!("client_key", "key_id");
    SECURITY_CODE: "tenants::remove_security_code" = remove!("security_code", "token_id");
    REPLY: "tenants::remove_reply" = remove!("reply", "scope");
    REPLY_LEASE: "tenants::remove_reply_lease" = remove!("reply_lease", "scope");
    TOKEN_INTENT: "tenants::remove_token_intent" = remove!("token_intent", "intent_id");
    THREEDS_SESSION: "tenants::remove_threeds_session" = remove!("threeds_session", "session_id");
    TOKEN: "tenants::remove_token" = remove!("token", "token_id");
    TERM: "tenants::remove_term" = remove!("term", "term, path, created_at, token_id");
    CLAIM: "tenants::remove_claim" = remove!("claim", "fingerprint, container_id");
    CONTAINER: "tenants::remove_container" = remove!("container", "container_id");
    DEPRECATED_CALL: "tenants::remove_deprecated_call" =
        remove!("deprecated_call", "name, application_id");
    MEMBER: "tenants::remove_member" = remove!("member", "member_id");
    INVITATION: "tenants::remove_invitation" = remove!("invitation", "invitation_id");
}

/// What is removed of a tenant, in this order.
pub(crate) const REMOVALS: &[Statement] = STATEMENTS;

/// Removes a batch, and tells how many rows it had.
pub(crate) async fn remove(
    db: &Db,
    removal: &Statement,
    tenant: TenantId,
    limit: i64,
) -> Result<u64, Error> {
    let rows = db.write(removal, &[&tenant.number, &limit]).await?;
    let count: i64 = rows.first().map_or(0, |row| row.get(0));
    Ok(count.unsigned_abs())
}
