-- The vault's first shape: who may ask, the keys that seal, and the tokens.
--
-- Rules that keep a distributed PostgreSQL possible: keys start with the tenant, uniqueness is a
-- primary or unique key, and there are no sequences, triggers, foreign keys or stored procedures.
-- Small surrogate numbers stand for tenant and container, because every row and index repeats them.

-- What this database belongs to. A node of another environment refuses to start on it.
create table vault (
    only_row boolean primary key default true check (only_row),
    environment text not null,
    created_at timestamptz not null default now()
);

-- Keys of the whole vault, wrapped by the root key. States: 1 pre-active, 2 active, 3 decrypt-only,
-- 4 destroyed.
create table system_key (
    purpose smallint not null,
    version integer not null check (version > 0),
    state smallint not null check (state between 1 and 4),
    wrapped bytea not null,
    check_value bytea not null,
    created_at timestamptz not null default now(),
    primary key (purpose, version)
);
create unique index system_key_one_active on system_key (purpose) where state = 2;

create table tenant (
    tenant_id integer primary key check (tenant_id > 0),
    public_id uuid not null unique,
    name text not null,
    kind smallint not null,
    settings text not null,
    created_at timestamptz not null default now(),
    row_mac bytea not null
);

-- Keys of one tenant: its key-encryption key wrapped by the root key, the others wrapped by that.
create table tenant_key (
    tenant_id integer not null,
    purpose smallint not null,
    version integer not null check (version > 0),
    state smallint not null check (state between 1 and 4),
    wrapped bytea not null,
    check_value bytea not null,
    created_at timestamptz not null default now(),
    primary key (tenant_id, purpose, version)
);
create unique index tenant_key_one_active on tenant_key (tenant_id, purpose) where state = 2;

-- `grants` holds permissions and access rules as JSON; `row_mac` covers them, so that rights cannot
-- be given by SQL.
create table application (
    tenant_id integer not null,
    application_id uuid not null,
    name text not null,
    kind smallint not null,
    grants text not null,
    created_by uuid,
    created_at timestamptz not null default now(),
    modified_by uuid,
    modified_at timestamptz,
    expires_at timestamptz,
    row_mac bytea not null,
    primary key (tenant_id, application_id)
);

-- `lookup` and `key_digest` are digests of the whole key, of which nothing else is stored. A key is found before its tenant is
-- known, hence the primary key.
create table application_key (
    lookup text primary key,
    tenant_id integer not null,
    application_id uuid not null,
    key_id uuid not null,
    key_digest bytea not null,
    created_by uuid,
    created_at timestamptz not null default now(),
    expires_at timestamptz,
    row_mac bytea not null
);
create unique index application_key_of_application
    on application_key (tenant_id, application_id, key_id);

-- Containers exist by use and are never removed, so nodes may remember them for good.
create table container (
    tenant_id integer not null,
    container_id integer not null check (container_id > 0),
    path text not null,
    primary key (tenant_id, container_id),
    unique (tenant_id, path)
);

-- `alias` is filled only for ids that are not UUIDs. `sealed` is a record envelope; type, container,
-- expiry and row version are authenticated with it.
create table token (
    tenant_id integer not null,
    token_id uuid not null,
    row_version integer not null default 1,
    container_id integer not null,
    kind smallint not null,
    expires_offset_minutes smallint,
    created_at timestamptz not null default now(),
    expires_at timestamptz,
    created_by uuid not null,
    modified_at timestamptz,
    modified_by uuid,
    alias text,
    sealed bytea not null,
    mask text,
    metadata text,
    primary key (tenant_id, token_id)
);
-- Sealed values do not compress: without this, storing a large one wastes a pass over it.
alter table token alter column sealed set storage external;
