-- What tokens are found by besides their id: container, type, fingerprint, metadata and search
-- indexes; and what may exist only once.

-- Paths are compared byte by byte, so that a container and everything below it is one range.
alter table container alter column path type text collate "C";

-- `path` is the container's, once more: lists are ordered by it, and only an index that holds it reads a
-- page without looking into containers that have nothing to show. What is authorized is the number's.
-- `fingerprint_expression` and `search_indexes` are filled only when a client gave them; otherwise
-- the type's own apply. `terms` names this token's rows in `term`, so that they can be removed
-- without being derived again. `security_code_until` tells readers when to look for one.
alter table token
    add column path text collate "C",
    add column fingerprint bytea,
    add column fingerprint_expression text,
    add column search_indexes text,
    add column terms bytea[] not null default '{}',
    add column security_code_until timestamptz;

update token
set path = container.path
from container
where container.tenant_id = token.tenant_id
  and container.container_id = token.container_id;
alter table token alter column path set not null;

-- The order of lists, once per type. A list of all types merges them, so that one index serves both.
create index token_by_path on token (tenant_id, kind, path, created_at, token_id);
create index token_by_expiry on token (expires_at) where expires_at is not null;

-- Blind terms: keyed digests of metadata pairs, search indexes and fingerprints. The primary key is
-- the query and its order in one index, path included. Metadata that is not in lower case has two terms:
-- as it is, and in lower case for the older lists.
create table term (
    tenant_id integer not null,
    term bytea not null,
    path text collate "C" not null,
    created_at timestamptz not null,
    token_id uuid not null,
    primary key (tenant_id, term, path, created_at, token_id)
);

-- The one token that deduplication allows for a fingerprint in a container.
create table claim (
    tenant_id integer not null,
    fingerprint bytea not null,
    container_id integer not null,
    token_id uuid not null,
    primary key (tenant_id, fingerprint, container_id)
);

-- Which node does a job that only one may do, and until when.
create table lease (
    name text primary key,
    holder uuid not null,
    until timestamptz not null
);
