-- What the operator knows about card numbers: one compiled table, in pieces that nodes load.
--
-- It belongs to the whole vault, not to a tenant, and holds no data of anybody's.

-- One row per import. Chunks are written first; `is_current` and the facts come in one transaction
-- when all of them are there. Digests are made under the control key: `digest` covers version and
-- counts, and each chunk has its own over version, position and content.
create table bin_table (
    version integer primary key check (version > 0),
    is_current boolean not null default false,
    source text not null,
    row_count bigint not null default 0,
    chunk_count integer not null default 0,
    byte_count bigint not null default 0,
    digest bytea,
    imported_at timestamptz not null default now()
);
create unique index bin_table_one_current on bin_table (is_current) where is_current;

create table bin_chunk (
    version integer not null,
    position integer not null,
    content bytea not null,
    digest bytea not null,
    primary key (version, position)
);
-- Already compact, and read by every node after an import: packing it again would cost more.
alter table bin_chunk alter column content set storage external;
