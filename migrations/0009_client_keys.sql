-- Key pairs that clients encrypt to before they send anything.

-- `sealed` is the private half. The key's id, its public half and its expiry are authenticated with it,
-- so that a row which was swapped or prolonged by SQL opens nothing.
create table client_key (
    tenant_id integer not null,
    key_id uuid not null,
    public_key bytea not null,
    sealed bytea not null,
    created_by uuid not null,
    created_at timestamptz not null default now(),
    expires_at timestamptz not null,
    primary key (tenant_id, key_id)
);
-- For the sweep alone, which takes the oldest rows of all tenants.
create index client_key_by_expiry on client_key (expires_at);
