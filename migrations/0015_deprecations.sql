-- How often each application used something that is deprecated. `name` is the row of the table in the
-- code. Nodes count in memory and add to these rows every few seconds.
create table deprecated_call (
    tenant_id integer not null,
    name text not null,
    application_id uuid not null,
    calls bigint not null,
    first_at timestamptz not null,
    last_at timestamptz not null,
    primary key (tenant_id, name, application_id)
);
