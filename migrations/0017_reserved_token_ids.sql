-- Ids that a new token cannot take: those that clients chose for live tokens, and those of deleted tokens.
--
-- A create with an id of the client's own inserts its row in the statement that inserts the token, so that the primary
-- key also decides between a create and a delete at the same moment. Ids that the vault draws have no row until their
-- token is deleted. An expired token releases its id.
create table reserved_token_id (
    tenant_id integer not null,
    token_id uuid not null,
    deleted_at timestamptz,
    primary key (tenant_id, token_id)
);
-- For the sweep alone, which removes the oldest rows of all tenants.
create index reserved_token_id_by_deletion on reserved_token_id (deleted_at) where deleted_at is not null;
