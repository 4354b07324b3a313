-- 3-D Secure sessions, and the card ranges of directory servers.
--
-- A session is one row. State, times of its end and who created it are bound into `sealed`, which holds
-- everything else: device data, what was asked, and what the network answered. A step from one state to the next is one statement
-- that names the version it starts from. `expires_at` is null once the network has answered, `due_at`
-- is when a step that somebody waits for is late. The other parties of the protocol know a session by
-- its id alone.
create table threeds_session (
    tenant_id integer not null,
    session_id uuid not null,
    version integer not null,
    state smallint not null,
    sealed bytea not null,
    created_by uuid not null,
    created_at timestamptz not null,
    modified_by uuid,
    modified_at timestamptz,
    expires_at timestamptz,
    due_at timestamptz,
    primary key (tenant_id, session_id)
);
alter table threeds_session alter column sealed set storage external;
create unique index threeds_session_by_id on threeds_session (session_id);
-- For the sweep alone.
create index threeds_session_by_expiry on threeds_session (expires_at) where expires_at is not null;
create index threeds_session_by_due on threeds_session (due_at) where due_at is not null;

-- The ranges that a directory server told, as one text: nodes keep them in memory and load a text when
-- its version changes. `digest` authenticates all of it. `asked_at` spreads questions: no directory
-- server is asked more than once per hour.
create table card_range_table (
    directory text primary key,
    version integer not null,
    ranges text not null,
    digest bytea not null,
    refreshed_at timestamptz not null,
    asked_at timestamptz not null
);
