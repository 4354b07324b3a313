-- Deletions of tenants that were requested and not executed yet, one per tenant. A second application confirms
-- one; from then on it is executed at `due_at`. Covered by the row's digest: SQL can neither request nor hasten one.
create table tenant_deletion (
    tenant_id integer primary key,
    requested_by uuid not null,
    requested_at timestamptz not null,
    confirmed_by uuid,
    due_at timestamptz,
    row_mac bytea not null
);
