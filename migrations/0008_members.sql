-- Who runs a tenant besides its keys, and how a tenant changes and ends.

-- `created_by` and `modified_by` are applications; what was done by command has none. No right rests on
-- the security contact, so the row's digest leaves it out. `deleted_at` is covered by it.
alter table tenant
    add column created_by uuid,
    add column modified_by uuid,
    add column modified_at timestamptz,
    add column security_contact text,
    add column deleted_at timestamptz,
    add column swept_at timestamptz;
-- For the sweep alone: tenants that are deleted and may still have rows. Their own row stays, so that
-- their number is never given to another.
create index tenant_to_sweep on tenant (tenant_id) where deleted_at is not null and swept_at is null;

-- People. Nobody logs in here, so members have no rights and their rows no digest: they are what the
-- interface keeps for a portal. Roles: 1 owner, 2 admin, 3 read only.
create table member (
    tenant_id integer not null,
    member_id uuid not null,
    user_id uuid not null,
    role smallint not null check (role between 1 and 3),
    email text not null,
    first_name text,
    last_name text,
    created_by uuid,
    created_at timestamptz not null default now(),
    modified_by uuid,
    modified_at timestamptz,
    primary key (tenant_id, member_id)
);
create unique index member_one_owner on member (tenant_id) where role = 1;
create unique index member_email on member (tenant_id, lower(email));
create unique index member_user on member (tenant_id, user_id);
create index member_by_time on member (tenant_id, created_at, member_id);

-- `link_digest` is a digest of the secret that the invited person is given; the secret is not kept.
create table invitation (
    tenant_id integer not null,
    invitation_id uuid not null,
    email text not null,
    role smallint not null check (role between 2 and 3),
    link_digest bytea not null,
    expires_at timestamptz not null,
    created_by uuid,
    created_at timestamptz not null default now(),
    modified_by uuid,
    modified_at timestamptz,
    primary key (tenant_id, invitation_id)
);
create index invitation_by_time on invitation (tenant_id, created_at, invitation_id);
