-- Pre-configured proxies.
--
-- `sealed` holds the key, the configuration values, the transforms and the switches of a proxy. `key_digest` is the
-- digest of the key, by which an invocation finds its proxy. `row_mac` authenticates every column that decides where data
-- goes and with which permissions, together with `sealed`: a row that was written or changed by SQL is not used.
create table proxy (
    tenant_id integer not null,
    proxy_id uuid not null,
    row_version integer not null,
    name text not null,
    destination_url text not null,
    application_id uuid,
    key_digest bytea not null,
    sealed bytea not null,
    row_mac bytea not null,
    created_by uuid not null,
    created_at timestamptz not null default now(),
    modified_by uuid,
    modified_at timestamptz,
    primary key (tenant_id, proxy_id)
);
create unique index proxy_by_key on proxy (key_digest);
