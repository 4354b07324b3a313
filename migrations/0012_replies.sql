-- Answers to requests that carry an idempotency key, kept for a day so that the same request again gets
-- the same answer and does nothing.
--
-- Whoever works on a request holds a lease. The change that the request makes, the end of its lease and
-- its answer are one commit: `reply_has_lease` refuses all of it once the lease is gone, and the primary
-- key once somebody else has answered. `scope` is a keyed digest of who asks, what for, and the key. An
-- answer ends after a day, or with the token that it shows.
create table reply_lease (
    tenant_id integer not null,
    scope bytea not null,
    fence bigint not null,
    until timestamptz not null,
    primary key (tenant_id, scope)
);
create index reply_lease_by_end on reply_lease (until);

create table reply (
    tenant_id integer not null,
    scope bytea not null,
    fence bigint,
    status smallint not null,
    sealed bytea not null,
    request_mac bytea not null,
    until timestamptz not null,
    primary key (tenant_id, scope),
    constraint reply_has_lease check (fence is not null)
);
alter table reply alter column sealed set storage external;
-- For the sweep alone, which takes the oldest rows of all tenants.
create index reply_by_end on reply (until);
