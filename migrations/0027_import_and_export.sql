-- Imports and exports of tokens.

-- Batches of an import that are committed, each with the tokens of its lines. `content_mac` is the MAC of the lines, so that
-- another input is rejected under the same name; `outcomes` lists rejected lines and duplicates, without data.
create table import_batch (
    tenant_id integer not null,
    import_id uuid not null,
    first_line bigint not null check (first_line > 0),
    lines integer not null check (lines > 0),
    created integer not null,
    dropped_codes integer not null,
    content_mac bytea not null,
    outcomes text not null,
    row_mac bytea not null,
    primary key (tenant_id, import_id, first_line)
);

-- Requested exports that have not run yet. A second person approves one. `row_mac` covers all columns, and the row is in the
-- bucket of the tenant's resources: SQL can neither request nor approve an export, nor restore one that has run.
create table export_request (
    tenant_id integer not null,
    export_id uuid not null,
    container text,
    kind smallint,
    receiver bytea not null,
    reason text not null,
    requested_by text not null,
    requested_at timestamptz not null,
    approved_by text,
    approved_at timestamptz,
    row_mac bytea not null,
    primary key (tenant_id, export_id)
);
