//! SQL statements that delete the rows of a deleted tenant, in batches.
//!
//! The tables belong to other modules, which do not handle the deletion of tenants. A test compares this list with the
//! schema: a table with a tenant column is either in it or listed there with the reason why not.

use cloakroom_platform::ids::TenantId;
use cloakroom_platform::storage::{Db, Error, Statement, statements};

/// Deletes up to `$2` rows of a tenant, found by the rest of their primary key.
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
    PROXY: "tenants::remove_proxy" = remove!("proxy", "proxy_id");
    CLIENT_KEY: "tenants::remove_client_key" = remove!("client_key", "key_id");
    SECURITY_CODE: "tenants::remove_security_code" = remove!("security_code", "token_id");
    REPLY: "tenants::remove_reply" = remove!("reply", "scope");
    REPLY_LEASE: "tenants::remove_reply_lease" = remove!("reply_lease", "scope");
    TOKEN_INTENT: "tenants::remove_token_intent" = remove!("token_intent", "intent_id");
    THREEDS_SESSION: "tenants::remove_threeds_session" = remove!("threeds_session", "session_id");
    TOKEN: "tenants::remove_token" = remove!("token", "token_id");
    RESERVED_TOKEN_ID: "tenants::remove_reserved_token_id" =
        remove!("reserved_token_id", "token_id");
    TERM: "tenants::remove_term" = remove!("term", "term, path, created_at, token_id");
    CLAIM: "tenants::remove_claim" = remove!("claim", "fingerprint, container_id");
    FINGERPRINT_PAIR: "tenants::remove_fingerprint_pair" = remove!("fingerprint_pair", "fingerprint");
    SEARCH_EXPRESSION: "tenants::remove_search_expression" = remove!("search_expression", "number");
    CONTAINER: "tenants::remove_container" = remove!("container", "container_id");
    DEPRECATED_CALL: "tenants::remove_deprecated_call" =
        remove!("deprecated_call", "name, application_id");
    MEMBER: "tenants::remove_member" = remove!("member", "member_id");
    INVITATION: "tenants::remove_invitation" = remove!("invitation", "invitation_id");
    WEBHOOK: "tenants::remove_webhook" = remove!("webhook", "webhook_id");
    WEBHOOK_DELIVERY: "tenants::remove_webhook_delivery" =
        remove!("webhook_delivery", "event_id, webhook_id");
    BRANDING: "tenants::remove_branding" = remove!("branding", "branding_id");
    CHECKOUT_SESSION: "tenants::remove_checkout_session" = remove!("checkout_session", "session_id");
    IMPORT_BATCH: "tenants::remove_import_batch" = remove!("import_batch", "import_id, first_line");
    EXPORT_REQUEST: "tenants::remove_export_request" = remove!("export_request", "export_id");
    TENANT_DELETION: "tenants::remove_tenant_deletion" =
        remove!("tenant_deletion", "requested_by");
}

/// The statements, in the order in which they run.
pub(crate) const REMOVALS: &[Statement] = STATEMENTS;

/// Deletes a batch and returns its number of rows.
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
