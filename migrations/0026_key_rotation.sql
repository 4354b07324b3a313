-- Rotation of keys while the vault serves.
--
-- The keys of a tenant are bucket 256 of its access states: digest and MAC cover purpose, version, state, check value and
-- times of every row of `tenant_key`. Bucket 256 of tenant 0 covers the keys of the vault (`system_key`). A key that SQL
-- inserts, restores or activates is not in the digest, and no key of that tenant is used until it matches again.
--
-- States: 1 pre-active (opens), 2 active (seals), 3 decrypt-only (opens), 4 destroyed, 5 retiring (opens; statements of nodes
-- that have not learned of its successor are still accepted).
alter table tenant_key drop constraint tenant_key_state_check;
alter table tenant_key add constraint tenant_key_state_check check (state between 1 and 5);
alter table tenant_key add column activated_at timestamptz;
alter table system_key drop constraint system_key_state_check;
alter table system_key add constraint system_key_state_check check (state between 1 and 5);
alter table system_key add column activated_at timestamptz;

alter table access_state drop constraint access_state_bucket_check;
alter table access_state add constraint access_state_bucket_check check (bucket between 0 and 256);

-- Counts changes of keys. Nodes read it with their heartbeat and acknowledge what they have loaded. Neither is
-- authenticated: a node that is misled is stopped by the statements that write encrypted values.
alter table vault add column keys_generation bigint not null default 0;
alter table node add column keys_generation bigint not null default 0;

-- Rotations and their progress. What may be done to a key follows from the authenticated keys above, never from here.
--
-- Phases: 1 added, 2 promoted, 3 closed, 4 rewriting, 5 proving, 6 proved, 7 destroyed. `position` is the id of the last row
-- that was rewritten in the table number `step`. `closed_xid` is a transaction that
-- started after the old version was closed for writes.
create table key_rotation (
    tenant_id integer not null,
    purpose smallint not null,
    to_version integer not null check (to_version > 0),
    from_version integer not null check (from_version > 0),
    phase smallint not null check (phase between 1 and 7),
    step smallint not null default 0,
    position uuid not null default '00000000-0000-0000-0000-000000000000',
    scanned bigint not null default 0,
    rewritten bigint not null default 0,
    unreadable bigint not null default 0,
    closed_xid bigint,
    generation bigint not null,
    requested_by text not null,
    started_at timestamptz not null default now(),
    phase_at timestamptz not null default now(),
    primary key (tenant_id, purpose, to_version)
);
create index key_rotation_by_generation on key_rotation (generation);

-- What a full scan proved about a key before it was destroyed. `statement` is signed by the audit authority.
create table key_proof (
    tenant_id integer not null,
    purpose smallint not null,
    version integer not null check (version > 0),
    statement text not null,
    signature bytea not null,
    primary key (tenant_id, purpose, version)
);
