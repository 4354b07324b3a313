-- Rotation of the keys for fingerprints and search terms.
--
-- `digest_epoch` is the fence for statements that store fingerprints or terms: each carries how many changes of these keys
-- its node had seen, and fails if that is less. It is in the rows of data keys, because these statements look up one of them
-- already. Not authenticated: a wrong one rejects all writes, or accepts a late node's, which a scan finds.
alter table tenant_key add column digest_epoch integer not null default 0;

-- Both fingerprints of a value while its tenant's fingerprint key is replaced, so that a search by either finds the tokens:
-- one row in each direction. `mac` is under the new key. Deleted with the old key.
create table fingerprint_pair (
    tenant_id integer not null,
    fingerprint bytea not null,
    other bytea not null,
    mac bytea not null,
    primary key (tenant_id, fingerprint)
);
