-- The audit log with public-key signatures. Entries of earlier versions, whose keys were symmetric, are dropped:
-- nothing could verify them any more.
drop table log;
drop table log_chain;

-- A day's entries lie in one of a hundred partitions, in turn. The serving role can insert and read, nothing else.
--
-- `created_at` is the database's clock as the node knew it when it signed the entry. An entry belongs to the chain `chain`
-- of its day. `commit` is in the last entry of each batch: the first sequence number of the batch, and the signature of
-- the node over the batch and everything before it in the chain. The public id of an entry is made of its hash.
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
    commit bytea
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

-- The public keys that nodes sign with, one or more per node and day, certified by the audit authority of the vault. The
-- chains of a key have the numbers from 1000 times its own. `day` counts from 1970-01-01.
create table log_key (
    day integer not null,
    number integer not null check (number between 1 and 2000000),
    node uuid not null,
    public_key bytea not null,
    certificate bytea not null,
    primary key (day, number)
);

-- A signed note every few seconds, which commits to the head of every chain and to the note before it. `state` contains
-- what `note` has the root of; it is removed together with the entries of its day, `note` never is.
create table log_checkpoint (
    number bigint primary key check (number > 0),
    day integer not null,
    note text not null,
    state bytea
);

create index log_checkpoint_by_day on log_checkpoint (day, number);

-- The last checkpoint that each sink has received.
create table log_shipment (
    sink text primary key,
    number bigint not null
);

-- How long entries are retained. Only the owner writes it: `cloakroom migrate` sets it from `audit.keep_days`.
create table log_retention (
    only_row boolean primary key default true check (only_row),
    keep_days integer not null check (keep_days between 1 and 92)
);
insert into log_retention (keep_days) values (90);

-- Drops the days that are older than both `log_retention` and `requested` days, and returns them. It runs with the rights
-- of the owner, so that the serving role needs no right to remove entries. Checkpoints remain without their states.
create function drop_log_days(requested integer) returns integer[]
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    keep integer;
    oldest integer;
    dropped integer[];
    part integer;
begin
    select greatest(requested, keep_days, 1) into strict keep from public.log_retention;
    oldest := floor(extract(epoch from clock_timestamp()) / 86400)::integer - keep;
    select array_agg(distinct day order by day) into dropped from public.log_key where day < oldest;
    if dropped is null then
        return array[]::integer[];
    end if;
    for part in select distinct day % 100 from public.log_key where day < oldest loop
        -- A partition that is in use again also holds entries to retain.
        if exists (select from public.log_key where day % 100 = part and day >= oldest) then
            execute format('delete from public.log_%s where created_at < to_timestamp(%s::bigint * 86400)', part, oldest);
        else
            execute format('truncate table only public.log_%s', part);
        end if;
    end loop;
    delete from public.log_key where day < oldest;
    update public.log_checkpoint set state = null where day < oldest - 1 and state is not null;
    return dropped;
end
$$;
revoke execute on function drop_log_days(integer) from public;
