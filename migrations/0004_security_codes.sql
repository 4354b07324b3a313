-- Security codes of cards, apart from their tokens: each is sealed under a key that is in no table and
-- dies soon after the code does, so that no backup of this table can be opened later.

-- `key_id` names that key in the memory of nodes and in Redis.
create table security_code (
    tenant_id integer not null,
    token_id uuid not null,
    key_id bytea not null,
    sealed bytea not null,
    expires_at timestamptz not null,
    primary key (tenant_id, token_id)
);
-- For the sweep alone, which takes the oldest rows of all tenants.
create index security_code_by_expiry on security_code (expires_at);
