-- Webhooks: endpoints of tenants, and the events that are delivered to them.

-- `row_mac` covers everything but the health of the endpoint, so that SQL neither redirects events nor adds an endpoint.
-- `secret` is encrypted. `failures` and `failing_since` count failed attempts since the last successful one.
create table webhook (
    tenant_id integer not null,
    webhook_id uuid not null,
    name text not null,
    url text not null,
    notify_email text,
    events text[] not null,
    is_enabled boolean not null,
    secret bytea not null,
    created_by uuid,
    created_at timestamptz not null default now(),
    modified_by uuid,
    modified_at timestamptz,
    row_mac bytea not null,
    failures integer not null default 0,
    failing_since timestamptz,
    primary key (tenant_id, webhook_id)
);

-- An event as the statement of a change receives it. Without `occurred_at`, it happens at the time of the commit.
create type webhook_event as (
    tenant_id integer,
    event_id uuid,
    event_type text,
    entity text,
    actor_type text,
    actor_id uuid,
    trace_id text,
    occurred_at timestamptz,
    payload text,
    mac bytea
);

-- One row per webhook and event, inserted by the statement that makes the event true. `payload` contains ids, names and
-- metadata, which other tables hold in clear as well; `mac` covers the event, so that SQL cannot make Cloakroom sign
-- another one. Events with the same `entity` are delivered in the order of `recorded_at`. Retries end 72 hours after
-- `retry_from`, which is the time of the first failed attempt, or of the event or its replay before that. States: 1 pending, 2 delivered, 3 failed.
create table webhook_delivery (
    tenant_id integer not null,
    webhook_id uuid not null,
    event_id uuid not null,
    event_type text not null,
    entity text not null,
    actor_type text not null,
    actor_id uuid,
    trace_id text not null,
    occurred_at timestamptz not null,
    recorded_at timestamptz not null,
    payload text not null,
    mac bytea not null,
    state smallint not null default 1 check (state between 1 and 3),
    attempts integer not null default 0,
    next_at timestamptz not null default now(),
    retry_from timestamptz not null default now(),
    last_status smallint,
    last_error text,
    finished_at timestamptz,
    primary key (tenant_id, event_id, webhook_id)
)
-- Rows change state within seconds of their insert: free space keeps updates on the page, and vacuum runs early.
with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02);
create index webhook_delivery_due on webhook_delivery (tenant_id, webhook_id, next_at) where state = 1;
-- Events that later ones of the same entity wait for.
create index webhook_delivery_order on webhook_delivery (tenant_id, webhook_id, entity, recorded_at, event_id)
    where state = 1 and entity <> '' and attempts < 3;
-- Its condition always holds. It keeps the index from being used to find rows by their key, which it would do slowly.
create index webhook_delivery_log on webhook_delivery (tenant_id, webhook_id, recorded_at, event_id)
    where state >= 1;
-- Few among many delivered ones, for their list and their replay.
create index webhook_delivery_failed on webhook_delivery (tenant_id, webhook_id, recorded_at, event_id)
    where state = 3;
-- For the sweep and the age of the backlog.
create index webhook_delivery_finished on webhook_delivery (state, finished_at) where state > 1;
create index webhook_delivery_overdue on webhook_delivery (tenant_id, webhook_id, retry_from) where state = 1;

-- The keys that sign deliveries, newest version last. `sealed` is the private key (PKCS#8), encrypted with the system
-- key of the same version.
create table webhook_signing_key (
    version integer primary key check (version > 0),
    public_key bytea not null,
    sealed bytea not null,
    created_at timestamptz not null default now()
);
