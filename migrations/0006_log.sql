-- What happened: one row per thing that was done to something, and who did it.
--
-- Rows are only ever inserted. A day's rows lie in one of a hundred partitions, in turn, and are removed
-- by emptying that partition: the role that nodes connect as owns nothing, so it may empty a table, but
-- neither drop one nor make tomorrow's.

-- `created_at` is the database's clock as the node knew it when it signed the row. A row belongs to the
-- chain `chain` of its day; `mac` covers the row and the `mac` before it. The row's public id is made of
-- `mac`.
create table log (
    slot smallint not null,
    created_at timestamptz not null,
    tenant_id integer not null,
    actor_kind smallint not null,
    actor_id uuid not null,
    key_id uuid not null,
    entity_kind smallint not null,
    entity_id text not null,
    operation smallint not null,
    outcome smallint not null,
    origin text,
    trace_id text not null,
    chain integer not null,
    seq integer not null,
    mac bytea not null
) partition by list (slot);

create index log_by_time on log (tenant_id, created_at, chain, seq);
create index log_by_entity on log (tenant_id, entity_id, created_at, chain, seq);

do $$
begin
    for slot in 0..99 loop
        execute format('create table log_%s partition of log for values in (%s)', slot, slot);
    end loop;
end
$$;

-- Each chain of rows, and how far it is known to reach. `day` counts from 1970-01-01.
create table log_chain (
    day integer not null,
    chain integer not null check (chain > 0),
    node uuid not null,
    head_seq integer not null,
    head_mac bytea not null,
    is_closed boolean not null,
    row_mac bytea not null,
    primary key (day, chain)
);
