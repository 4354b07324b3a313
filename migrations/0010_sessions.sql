-- Sessions: keys that a public application makes and a private one grants rights to, for minutes or hours.
--
-- `row_mac` covers everything that grants, so that SQL neither authorizes a session nor widens one. Key and
-- nonce are kept as digests only. Found by another digest of the key before the tenant is known.
create table session (
    lookup text primary key,
    tenant_id integer not null,
    application_id uuid not null,
    session_id uuid not null,
    key_digest bytea not null,
    nonce_digest bytea not null,
    grants text,
    authorized_by uuid,
    created_at timestamptz not null default now(),
    expires_at timestamptz not null,
    row_mac bytea not null
);
create unique index session_by_nonce on session (tenant_id, nonce_digest);
create index session_by_expiry on session (expires_at);
