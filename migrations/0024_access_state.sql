-- What is current among the rows that grant access: one row per tenant and bucket, rewritten with every change of a row in
-- the bucket. `digest` is SHA-256 over the sorted row MACs of the bucket's rows, `row_mac` covers all other columns. A row
-- that was restored from an older copy has an authentic MAC of its own, but is not in the digest.
--
-- Buckets: 0 the tenant, 1 its deletion, branding and webhooks, 2 to 191 applications with their keys, 192 to 255 proxies.
create table access_state (
    tenant_id integer not null,
    bucket smallint not null check (bucket between 0 and 255),
    generation bigint not null check (generation > 0),
    digest bytea not null,
    row_mac bytea not null,
    primary key (tenant_id, bucket)
);

-- The last byte of a UUID of version 4 is random. An expression, not a column: SQL cannot move a row to another bucket.
create index application_by_bucket
    on application (tenant_id, (2 + get_byte(uuid_send(application_id), 15) % 190));
create index application_key_by_bucket
    on application_key (tenant_id, (2 + get_byte(uuid_send(application_id), 15) % 190));
create index proxy_by_bucket
    on proxy (tenant_id, (192 + get_byte(uuid_send(proxy_id), 15) % 64));
